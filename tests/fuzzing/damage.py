"""Damage of any bytes, which all areas share."""


def flip(data, rng, others):
    for _ in range(rng.choice([1, 1, 1, 2, 5])):
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)


def cut(data, rng, others):
    del data[rng.randrange(len(data)) :]


def drop(data, rng, others):
    at = rng.randrange(len(data))
    del data[at : at + rng.choice([1, 2, 8, 64, 500])]


def splice(data, rng, others):
    """Put a piece of another file, or of another place, over one."""
    other = rng.choice([data, *others])
    n = rng.choice([1, 4, 8, 32, 200])
    at, start = rng.randrange(len(data)), rng.randrange(len(other))
    data[at : at + n] = other[start : start + n]


def insert(data, rng, others):
    at = rng.randrange(len(data))
    data[at:at] = data[at : at + rng.choice([1, 8, 64])]


def fill(data, rng, others):
    at, n = rng.randrange(len(data)), rng.choice([1, 4, 8, 64])
    data[at : at + n] = bytes([rng.choice([0, 1, 127, 255])]) * n


DAMAGES = [flip, flip, flip, flip, cut, drop, splice, splice, insert, fill]
