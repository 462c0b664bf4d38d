"""The folder that a web server may serve, for each collection. The protocol under the SHA-256 of its bytes, `collection.json`,
which says which one it is and on which terms it was made, and the client for browsers. All are written once.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ldptree.errors import ProtocolMismatch
from storage.formats import read_stamped, stamped
from storage.objects.object_store import ObjectStore

FOLDER = "published"
CLIENT = Path(__file__).parents[2] / "clients" / "javascript"
ANEW = "give the run another name, and ask anew"


def check_terms(objects: ObjectStore, name: str, terms: Mapping[str, Any]) -> str | None:
    """Return the name of the protocol of a collection, None of one that is not published. Raises ProtocolMismatch where it was
    published on other terms.
    """
    index = f"{FOLDER}/{name}/collection.json"
    if objects.size(index) is None:
        return None
    kept = read_stamped(objects, index, "collection", f"Restore it from a copy, or {ANEW}.")
    changed = [key for key in sorted({*terms, *kept["terms"]}) if terms.get(key) != kept["terms"].get(key)]
    if changed:
        raise _changed(objects, name, ", ".join(changed))
    protocol: str = kept["protocol"]
    return protocol


def _changed(objects: ObjectStore, name: str, what: str) -> ProtocolMismatch:
    return ProtocolMismatch(
        f"collection {name!r}: changed since it was published: {what}. People answered on the terms in "
        f"{objects.where(f'{FOLDER}/{name}/collection.json')}. Restore them, or {ANEW}."
    )


def publish(
    objects: ObjectStore, name: str, protocol: bytes, terms: Mapping[str, Any], question: str = ""
) -> str:
    """Publish a collection's protocol unless it is published already, and return its object's name. `question`: in words.

    Raises:
        ProtocolMismatch: the collection was published on other terms, or what was published is no longer there as it was.
    """
    digest = hashlib.sha256(protocol)
    place, index = f"{FOLDER}/{name}/{digest.hexdigest()}.json", f"{FOLDER}/{name}/collection.json"
    integrity = f"sha256-{base64.b64encode(digest.digest()).decode()}"
    content = {
        "protocol": f"{digest.hexdigest()}.json",
        "integrity": integrity,
        "question": question,
        "terms": dict(terms),
    }
    if objects.size(index) is None:
        objects.create(place, protocol)
        for file in sorted(CLIENT.iterdir()):
            objects.create(f"{FOLDER}/{name}/{file.name}", file.read_bytes())
        objects.create(index, stamped("collection", content, indent=1))
    if check_terms(objects, name, terms) != content["protocol"]:
        raise _changed(objects, name, "how this version of ldptree asks")
    try:
        is_whole = objects.get(place) == protocol
    except FileNotFoundError:
        is_whole = False
    if not is_whole:
        raise ProtocolMismatch(
            f"{objects.where(place)}: not the protocol that was published, by its SHA-256. Delete it and {index}, and run again: "
            "the same protocol is published."
        )
    return place
