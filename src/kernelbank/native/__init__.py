"""Compiled code: typed arguments, functions and their library, phases, vectors, mathematics.

Compiled functions work on numbers and arrays only: no `self`, no dictionaries, no Python objects.
"""
