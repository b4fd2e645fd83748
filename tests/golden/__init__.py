"""Reference results of other software, and the comparison with them."""
