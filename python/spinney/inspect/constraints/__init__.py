"""Proofs that a fitted model keeps its monotonic and interaction constraints."""
