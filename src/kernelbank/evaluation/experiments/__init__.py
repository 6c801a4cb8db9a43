"""Experiments that a person runs and looks at."""
