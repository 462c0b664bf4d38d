"""Digest files and values with SHA-256, keyed for the holders' zone, and hash 64-bit values into public coins, which are the same
in every work folder and on every machine. Where things are stored is in `store`.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

BLOCK = 1 << 20


def canonical(value: Any) -> bytes:
    """Return JSON with sorted keys and no spaces, so that equal values have equal bytes. Raises ValueError on NaN."""
    return json.dumps(
        value, sort_keys=True, separators=(",", ":"), allow_nan=False, ensure_ascii=False
    ).encode()


@dataclass(frozen=True)
class Hasher:
    """Plain SHA-256 where `secret` is empty, else HMAC-SHA-256 under it."""

    secret: bytes = b""

    def of_bytes(self, data: bytes) -> str:
        """Hex digest of `data`."""
        digest = hashlib.sha256(data).digest()
        return self._finish(digest)

    def of_file(self, path: Path) -> str:
        """Hex digest of a file's bytes. Raises OSError."""
        digest = hashlib.sha256()
        with path.open("rb") as stream:
            while block := stream.read(BLOCK):
                digest.update(block)
        return self._finish(digest.digest())

    def of_value(self, value: Any) -> str:
        """Hex digest of a JSON value."""
        return self.of_bytes(canonical(value))

    def of_digest(self, plain: str) -> str:
        """The digest, keyed or not, of bytes whose plain digest is known."""
        return self._finish(bytes.fromhex(plain))

    def words(self, value: Any, n: int) -> NDArray[np.uint64]:
        """Return coins of a JSON value, uint64 [n], by SHAKE-256. Only the secret tells them from fair ones."""
        key = bytes.fromhex(self.of_value(value))
        return np.frombuffer(hashlib.shake_256(key).digest(8 * n), "<u8")

    def _finish(self, digest: bytes) -> str:
        if not self.secret:
            return digest.hex()
        return hmac.new(self.secret, digest, hashlib.sha256).hexdigest()


GOLDEN = 0x9E3779B97F4A7C15
"""The step of splitmix64, which is the golden ratio in 64 bits."""


def mixed(values: NDArray[np.uint64], key: int) -> NDArray[np.uint64]:
    """Return a 64-bit hash of 64-bit values under a key, as splitmix64 does (Steele, Lea and Flood, 2014)."""
    with np.errstate(over="ignore"):
        z = values + np.uint64((key + GOLDEN) % 2**64)
        shifted = z >> np.uint64(30)  # in place from here: on millions of values memory is what takes time
        z ^= shifted
        z *= np.uint64(0xBF58476D1CE4E5B9)
        z ^= np.right_shift(z, np.uint64(27), out=shifted)
        z *= np.uint64(0x94D049BB133111EB)
        z ^= np.right_shift(z, np.uint64(31), out=shifted)
    return z
