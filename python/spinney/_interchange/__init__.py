"""Models of other libraries in, and models of spinney out in other formats."""
