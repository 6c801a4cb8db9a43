"""What a user gives, as numbers: columns with names, categories, targets and class labels."""
