"""Where predictions and bad rows are written: CSV, JSON lines, Parquet, Redis streams."""
