"""The live page of a run: the run writes report parts to a folder, a server process serves them."""
