"""Jitted loops: plain functions on plain arrays. No `self`, no dictionaries, no Python objects."""
