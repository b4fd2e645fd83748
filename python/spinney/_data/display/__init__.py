"""Numbers as short text, results as frames."""
