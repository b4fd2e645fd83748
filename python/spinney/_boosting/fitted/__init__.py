"""What a boosted model says beside its predictions."""
