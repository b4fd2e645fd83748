"""Boosters and their rounds: who learns from what, when it ends, what it leaves."""
