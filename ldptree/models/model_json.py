"""The text that every kind of model is kept in: canonical JSON with its kind, its version, exactly its fields, and the digest of
them all.

What lives here: what all kinds share. What does not: the fields of each (`tree_model`, `histoftree.model`, `shown_model`,
`public_features.model`, `corrected_json`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping
from typing import Any

from ldptree import json_text
from ldptree.errors import DataError


def digest_of(content: Mapping[str, Any]) -> str:
    """SHA-256 of the canonical text of the fields, "digest" not among them, as hexadecimal digits."""
    return hashlib.sha256(_canonical(content).encode()).hexdigest()


def written(content: Mapping[str, Any], digest: str) -> str:
    """The canonical text of the fields and their digest: sorted keys, no spaces, ASCII only."""
    return _canonical({**content, "digest": digest})


def read(
    text: str | bytes,
    *,
    kind: str,
    version: int,
    fields: Collection[str],
    optional: Collection[str] = (),
    of: str = "model",
) -> dict[str, Any]:
    """The fields of a model's text but its kind, version and digest.

    Args:
        text: as `written` gives it.
        kind: what its field "kind" has to say.
        version: the version of that kind which is known here.
        fields: what it has besides "kind", "version" and "digest".
        optional: what it may have besides.
        of: what a message calls it.

    Raises:
        DataError: not JSON, another kind, an unknown version, a field absent or unknown, a number beyond every float, or a
            digest that is not that of the content.
    """
    data = json_text.read(text, of=of, remedy="export it again", hint="is it a model file, and whole?")
    if not isinstance(data, dict) or data.get("kind") != kind:
        raise DataError(f'{of}: not an {kind} (its "kind" says otherwise); give a model file')
    if data.get("version") != version:
        raise DataError(f"{of}: version {data.get('version')!r} is not known here (only {version})")
    expected = {"kind", "version", "digest", *fields}
    for name in sorted((expected ^ set(data)) - set(optional)):
        raise DataError(f'{of}: field "{name}" is {"absent" if name in expected else "unknown"}')
    stated = data.pop("digest")
    try:
        found = digest_of(data)
    except ValueError:  # it was read as an infinity
        raise DataError(f"{of}: a number in it is too large; export it again") from None
    if stated != found:
        raise DataError(f"{of}: its digest is not that of its content; export it again")
    return {name: value for name, value in data.items() if name not in ("kind", "version")}


def check_types(data: Mapping[str, Any], types: Mapping[str, tuple[type, ...]], *, of: str = "model") -> None:
    """Check that each of these fields is of one of its types.

    Raises:
        DataError: one is not; named by the first.
    """
    for name, kinds in types.items():
        if type(data[name]) not in kinds:
            raise DataError(f'{of}: field "{name}" has the wrong type ({type(data[name]).__name__})')


def _canonical(content: Mapping[str, Any]) -> str:
    return json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
