"""Rows that are near each other in a forest."""
