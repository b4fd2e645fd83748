"""CityHash64, by which CatBoost remembers categories: Pike and Alakuijala's function of 2011, from its description."""

from __future__ import annotations

_K0, _K1, _K2, _K3 = 0xC3A5C85C97CB3127, 0xB492B66FBE98F273, 0x9AE16A3B2F90404F, 0xC949D7C7509E6557  # fmt: skip
_ALL = 2**64 - 1


def category_hash(value: object) -> int:
    """Return what CatBoost keeps of a category: 32 bits of the hash of its text."""
    return city_hash(str(value).encode()) & 0xFFFFFFFF


def city_hash(data: bytes) -> int:
    """Return the 64-bit hash of bytes."""
    n = len(data)
    if n <= 16:
        return _up_to_16(data)
    if n <= 32:
        return _up_to_32(data)
    if n <= 64:
        return _up_to_64(data)
    return _longer(data)


def _word(data: bytes, at: int, size: int = 8) -> int:
    return int.from_bytes(data[at : at + size], "little")


def _turn(value: int, by: int) -> int:
    value &= _ALL
    return value if by == 0 else ((value >> by) | (value << (64 - by))) & _ALL


def _folded(value: int) -> int:
    value &= _ALL
    return value ^ (value >> 47)


def _of_two(low: int, high: int) -> int:
    factor = 0x9DDFEA08EB382D69
    a = ((low ^ high) * factor) & _ALL
    a ^= a >> 47
    b = ((high ^ a) * factor) & _ALL
    b ^= b >> 47
    return (b * factor) & _ALL


def _up_to_16(data: bytes) -> int:
    n = len(data)
    if n > 8:
        a, b = _word(data, 0), _word(data, n - 8)
        return _of_two(a, _turn(b + n, n)) ^ b
    if n >= 4:
        a = _word(data, 0, 4)
        return _of_two((n + (a << 3)) & _ALL, _word(data, n - 4, 4))
    if n > 0:
        y = data[0] + (data[n >> 1] << 8)
        z = n + (data[n - 1] << 2)
        return (_folded(y * _K2 ^ z * _K3) * _K2) & _ALL
    return _K2


def _up_to_32(data: bytes) -> int:
    n = len(data)
    a, b = _word(data, 0) * _K1 & _ALL, _word(data, 8)
    c, d = _word(data, n - 8) * _K2 & _ALL, _word(data, n - 16) * _K0 & _ALL
    low = (_turn(a - b, 43) + _turn(c, 30) + d) & _ALL
    return _of_two(low, (a + _turn(b ^ _K3, 20) - c + n) & _ALL)


def _up_to_64(data: bytes) -> int:
    n = len(data)
    z = _word(data, 24)
    a = (_word(data, 0) + (n + _word(data, n - 16)) * _K0) & _ALL
    b, c = _turn(a + z, 52), _turn(a, 37)
    a = (a + _word(data, 8)) & _ALL
    c = (c + _turn(a, 7)) & _ALL
    a = (a + _word(data, 16)) & _ALL
    vf, vs = (a + z) & _ALL, (b + _turn(a, 31) + c) & _ALL
    a = (_word(data, 16) + _word(data, n - 32)) & _ALL
    z = _word(data, n - 8)
    b, c = _turn(a + z, 52), _turn(a, 37)
    a = (a + _word(data, n - 24)) & _ALL
    c = (c + _turn(a, 7)) & _ALL
    a = (a + _word(data, n - 16)) & _ALL
    wf, ws = (a + z) & _ALL, (b + _turn(a, 31) + c) & _ALL
    r = _folded((vf + ws) * _K2 + (wf + vs) * _K0)
    return (_folded(r * _K0 + vs) * _K2) & _ALL


def _weak(data: bytes, at: int, a: int, b: int) -> tuple[int, int]:
    w, x, y, z = (_word(data, at + 8 * k) for k in range(4))
    a = (a + w) & _ALL
    b = _turn(b + a + z, 21)
    c = a
    a = (a + x + y) & _ALL
    b = (b + _turn(a, 44)) & _ALL
    return (a + z) & _ALL, (b + c) & _ALL


def _longer(data: bytes) -> int:
    n = len(data)
    x, y = _word(data, 0), _word(data, n - 16) ^ _K1
    z = _word(data, n - 56) ^ _K0
    v = _weak(data, n - 64, n, y)
    w = _weak(data, n - 32, n * _K1 & _ALL, _K0)
    z = (z + _folded(v[1]) * _K1) & _ALL
    x = _turn(z + x, 39) * _K1 & _ALL
    y = _turn(y, 33) * _K1 & _ALL
    at = 0
    for _ in range((n - 1) // 64):
        x = _turn(x + y + v[0] + _word(data, at + 16), 37) * _K1 & _ALL
        y = _turn(y + v[1] + _word(data, at + 48), 42) * _K1 & _ALL
        x ^= w[1]
        y ^= v[0]
        z = _turn(z ^ w[0], 33)
        v = _weak(data, at, v[1] * _K1 & _ALL, (x + w[0]) & _ALL)
        w = _weak(data, at + 32, (z + w[1]) & _ALL, y)
        z, x = x, z
        at += 64
    low = (_of_two(v[0], w[0]) + _folded(y) * _K1 + z) & _ALL
    return _of_two(low, (_of_two(v[1], w[1]) + x) & _ALL)
