"""Comparing methods: competitors, significance, data sets, experiments, plots."""
