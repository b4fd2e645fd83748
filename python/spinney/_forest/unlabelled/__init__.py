"""Forests without a target."""
