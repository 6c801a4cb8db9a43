"""Pictures of a run in a page: a file to keep, or a page that follows the run."""
