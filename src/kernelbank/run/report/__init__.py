"""The report of a run as an HTML page: a file to keep, or a page that follows the run."""
