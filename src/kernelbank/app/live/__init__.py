"""The live page of a run: a server process, and the run's side of it."""
