"""Models of other libraries, read as models of spinney."""
