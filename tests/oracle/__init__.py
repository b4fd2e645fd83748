"""Slow NumPy twins of the engine: obvious, float64, one idea per function."""
