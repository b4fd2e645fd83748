"""Bagging: members fitted to samples of the rows and columns, their votes or means."""
