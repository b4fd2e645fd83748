"""How sure a forest is."""
