"""Reproducible experiments: the paper's, and the Lorenz benchmark of the KAF toolbox."""
