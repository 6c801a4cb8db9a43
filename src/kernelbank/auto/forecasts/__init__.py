"""Forecasts at several horizons; `forecaster` is the way in."""
