"""The holders' secret: made on first use, and never where something says that there was one.

Under another secret nobody would be recognised.
"""

from __future__ import annotations

from pathlib import Path

from ldptree.errors import ArtifactCorrupt
from storage.digests import load_secret

SIGNS = (
    "holders/seal",
    "holders/ledger/seal",
    "holders/ledger/*/*.charge",
    "holders/campaigns/*/files.json",
    "holders/perturb/*.json",
    "holders/answer/*.json",
    "curator/campaigns/*/*",
    "curator/reports/*/*/*.parquet",
)
"""What is there only where holders were asked under a secret."""
REMEDY = (
    "Under another secret who has answered cannot be told, so nobody is asked. It never changes: restore holders/secret from any "
    "backup of this work folder, or begin anew in another one."
)


def secret_of(root: Path) -> bytes:
    """The secret of the holders of a work folder. Raises ArtifactCorrupt where it was lost or damaged."""
    if not has_secret(root):
        refuse_new_secret(root)
    return load_secret(_path(root))


def has_secret(root: Path) -> bool:
    """Whether there is one."""
    return _path(root).exists()


def refuse_new_secret(root: Path) -> None:
    """Raises ArtifactCorrupt where there was a secret, and is none any more."""
    sign = next((path for pattern in SIGNS for path in sorted(root.glob(pattern))), None)
    if sign is not None and not has_secret(
        root
    ):  # made by another run, and signs after it, since the caller looked
        raise ArtifactCorrupt(
            f"{_path(root)}: the holders' secret is missing, and {sign.relative_to(root)} says that there was one. {REMEDY}"
        )


def other_secret(root: Path) -> ArtifactCorrupt:
    """What is said where the secret is not the one that this folder began with."""
    return ArtifactCorrupt(
        f"{_path(root)}: the holders' secret is damaged, or of another work folder: what was kept under it does not match. "
        f"{REMEDY}"
    )


def _path(root: Path) -> Path:
    return root / "holders" / "secret"
