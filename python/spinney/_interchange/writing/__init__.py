"""Models of spinney in other formats: each module writes one, from the plain numbers that `plan` takes out of a model."""
