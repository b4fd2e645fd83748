"""Stacking: what members say of rows they have not seen teaches a model how to combine them."""
