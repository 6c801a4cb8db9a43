"""Compiled code: vectors of four, arguments, compilation and caching, small dense matrices.

Compiled functions work on numbers and arrays only: no `self`, no dictionaries, no Python objects.
"""
