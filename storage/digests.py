"""Digest files and values with SHA-256, keyed for the holders' zone. Where things are stored is in `store`."""

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
