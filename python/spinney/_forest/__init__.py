"""Forests: trees grown on samples of the rows, and what their samples and leaves tell."""
