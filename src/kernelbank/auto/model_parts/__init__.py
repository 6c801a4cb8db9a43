"""What the models of both tasks are made of."""
