"""Arithmetic that does not depend on the processor."""
