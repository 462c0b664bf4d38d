"""Digests of files and of values: SHA-256, and its keyed form for the holders' zone. What is stored where is in `store`."""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ldptree.errors import ArtifactCorrupt

BLOCK = 1 << 20
SECRET_BYTES = 32


def canonical(value: Any) -> bytes:
    """JSON with sorted keys and no spaces: one spelling of one value. Raises ValueError on NaN."""
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

    def _finish(self, digest: bytes) -> str:
        if not self.secret:
            return digest.hex()
        return hmac.new(self.secret, digest, hashlib.sha256).hexdigest()


def load_secret(path: Path) -> bytes:
    """The holders' secret, made on first use (mode 0600); two processes at once agree on one.

    Raises ArtifactCorrupt where it is not what was written.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not path.exists():
        aside = path.with_name(f".{path.name}-{secrets.token_hex(8)}")
        aside.touch(mode=0o600)
        with aside.open("wb") as stream:
            stream.write(secrets.token_bytes(SECRET_BYTES))
            stream.flush()
            os.fsync(stream.fileno())
        try:
            path.hardlink_to(aside)
        except FileExistsError:
            pass
        finally:
            aside.unlink()
    secret = path.read_bytes()
    if len(secret) != SECRET_BYTES:
        raise ArtifactCorrupt(
            f"{path}: the holders' secret is damaged. Under another one who has answered cannot be told, so nobody is asked. It "
            "never changes: restore it from any backup of this work folder, or begin anew in another one."
        )
    return secret
