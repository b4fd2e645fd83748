"""Weak learners for functional boosting; `spinney.learners` is their public name."""
