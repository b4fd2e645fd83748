"""Areas of random inputs, run by tools/fuzz.py: each module has a class `Area` with `outcome(seed)`.

An outcome is a few words to be counted; an AssertionError, or any other exception, is a fault. Areas whose inputs are
bytes have `data(seed)` and `check(data, seed)` too, so that an input can be minimised.
"""
