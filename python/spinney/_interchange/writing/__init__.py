"""Models of spinney in other formats: each module writes one, from what `plan` takes out of a model."""
