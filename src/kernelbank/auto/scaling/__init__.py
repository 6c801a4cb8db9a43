"""Rows and targets scaled by running statistics; `scaling` is the way in."""
