"""The live page of a run: the run writes reports to a folder, a server process serves them."""
