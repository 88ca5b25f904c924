"""Named, independent streams of randomness: who draws does not depend on who else draws, or when.

Every other module of the fleet takes its random numbers from here, so one seed gives one world.
"""

from __future__ import annotations

import hashlib

import numpy as np

_U64 = np.uint64


def stream(seed: int, name: str) -> np.random.Generator:
    """A PCG64 generator seeded by (seed, name)."""
    digest = hashlib.sha256(name.encode()).digest()
    words = [int.from_bytes(digest[i : i + 4], "big") for i in range(0, 16, 4)]
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence([seed & 0xFFFFFFFF, *words])))


def seed64(seed: int, name: str) -> int:
    """A 64-bit number that stands for (seed, name)."""
    return int.from_bytes(hashlib.sha256(f"{seed}/{name}".encode()).digest()[:8], "big")


def uid(seed: int, name: str) -> str:
    """A UID in the 8-4-4-4-12 form that stands for (seed, name)."""
    h = hashlib.sha256(f"{seed}/{name}".encode()).hexdigest()
    return f"{h[:8]}-{h[8:12]}-4{h[13:16]}-a{h[17:20]}-{h[20:32]}"


def hash64(key: np.ndarray) -> np.ndarray:
    """SplitMix64 finaliser (Steele, Lea, Flood 2014) over uint64 keys: noise that can be asked for at any index."""
    z = key.astype(_U64, copy=True)
    z += _U64(0x9E3779B97F4A7C15)
    z ^= z >> _U64(30)
    z *= _U64(0xBF58476D1CE4E5B9)
    z ^= z >> _U64(27)
    z *= _U64(0x94D049BB133111EB)
    z ^= z >> _U64(31)
    return z


def unit(hashed: np.ndarray, lane: int = 0) -> np.ndarray:
    """A number in [0, 1) from 16 of the 64 bits of each hash; lanes 0 to 3 are independent."""
    return ((hashed >> _U64(16 * lane)) & _U64(0xFFFF)).astype(np.float64) * (1.0 / 65536.0)
