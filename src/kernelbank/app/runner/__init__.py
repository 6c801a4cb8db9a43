"""A run over a source: rows in, answers out, nothing lost.

What belongs together (the bank, where the source stands, how much of every output is written, the
history) is written to one file at once; after a crash everything goes back to what it says.
"""
