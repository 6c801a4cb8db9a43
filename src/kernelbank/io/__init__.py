"""Sources of rows, sinks of predictions, and the files in which banks are saved."""
