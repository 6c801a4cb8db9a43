"""Where predictions go: CSV files, Parquet folders, Redis streams."""
