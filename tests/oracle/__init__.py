"""Slow NumPy reference implementations of the engine: obvious, float64, one idea per function."""
