"""Forests: trees grown on samples of the rows, and what follows from their samples and leaves."""
