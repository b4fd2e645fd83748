"""Gradient boosting: trees fitted, round by round, to the gradient of a loss."""
