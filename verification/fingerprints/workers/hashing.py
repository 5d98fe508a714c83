"""Spark's `xxhash64` over numpy columns, so that workers and Spark's own expressions give the same number for a value.

This is XXH64 (Collet, xxHash fast digest algorithm) of a single value of four or eight bytes, as in Spark's `XxHash64`.
A null leaves the hash unchanged. The hash of several columns is chained: each is seeded with the hash of the one
before.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Hashes = NDArray[np.uint64]
Numbers = NDArray[np.int64]

#: Spark's seed of the first column.
SEED = np.uint64(42)
_P1, _P2, _P3, _P4, _P5 = (
    np.uint64(prime)
    for prime in (0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5)
)
_LOW = np.uint64(0xFFFFFFFF)
#: The lower half of a hash.
HALF = (1 << 32) - 1


def _rotated(hashes: Hashes, bits: int) -> Hashes:
    return (hashes << np.uint64(bits)) | (hashes >> np.uint64(64 - bits))


def _avalanche(hashes: Hashes) -> Hashes:
    hashes ^= hashes >> np.uint64(33)
    hashes *= _P2
    hashes ^= hashes >> np.uint64(29)
    hashes *= _P3
    hashes ^= hashes >> np.uint64(32)
    return hashes


def hash_long(numbers: Numbers, seed: Any = SEED) -> Hashes:
    """The hash of a column of Spark's `bigint`; `seed` is a hash or a column of them."""
    with np.errstate(over="ignore"):
        mixed = numbers.view(np.uint64) * _P2
        mixed = _rotated(mixed, 31)
        mixed *= _P1
        mixed ^= seed + _P5 + np.uint64(8)
        mixed = _rotated(mixed, 27)
        mixed *= _P1
        mixed += _P4
        return _avalanche(mixed)


def hash_int(numbers: Numbers, seed: Any = SEED) -> Hashes:
    """The hash of a column of Spark's `int`, given as longs."""
    with np.errstate(over="ignore"):
        mixed = numbers.view(np.uint64) & _LOW
        mixed *= _P1
        mixed ^= seed + _P5 + np.uint64(4)
        mixed = _rotated(mixed, 23)
        mixed *= _P2
        mixed += _P3
        return _avalanche(mixed)


def hash_longs(*columns: Numbers) -> Hashes:
    """The chained hash of several columns of longs without nulls."""
    hashes: Any = SEED
    for column in columns:
        hashes = hash_long(column, hashes)
    held: Hashes = hashes
    return held
