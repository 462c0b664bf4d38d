"""The folder that a web server may serve, for each collection. Protocols under the SHA-256 of their bytes, `collection.json`,
which says which one is asked and on which terms it was made, the client for browsers, and the page on who sees what. All are
written once with the first question. With the next, `collection.json` and that page are written anew; `closed-N.json` says for
good that a question is closed.
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


def close(objects: ObjectStore, name: str, number: int, answers: str) -> None:
    """Close the question that is asked, unless it is closed. `answers`: the record of the reports that count."""
    protocol = read_stamped(objects, f"{FOLDER}/{name}/collection.json", "collection", ANEW)["protocol"]
    content = {"protocol": protocol, "answers": answers}
    objects.create(_closed(name, number), stamped("closed", content))


def read_closed(objects: ObjectStore, name: str, number: int) -> dict[str, Any] | None:
    """Return the protocol of a closed question and the record of its answers, None of one that is not closed."""
    if objects.size(_closed(name, number)) is None:
        return None
    return read_stamped(objects, _closed(name, number), "closed", f"Restore it from a copy, or {ANEW}.")


def answers_of_closed(objects: ObjectStore) -> set[str]:
    """The records of the answers to all closed questions, which nothing can make again once segments are gone."""
    names = [each.name for folder in objects.folders(FOLDER) for each in objects.entries(folder)]
    closed = [name.split("/")[-2:] for name in names if "/closed-" in name]
    read = [read_closed(objects, name, int(file[len("closed-") : -len(".json")])) for name, file in closed]
    return {content["answers"] for content in read if content}


def _closed(name: str, number: int) -> str:
    return f"{FOLDER}/{name}/closed-{number}.json"


def publish(
    objects: ObjectStore,
    name: str,
    number: int,
    protocol: bytes,
    terms: Mapping[str, Any],
    pages: Mapping[str, bytes],
) -> str:
    """Publish a question of a collection unless it is published already, and return its object's name. A later one takes the
    place of the one before, once that is closed. A protocol that is gone is put back. `pages`: files that say to whom what is
    shown.

    Raises:
        ProtocolMismatch: the collection was published on other terms, or its protocol is no longer the one that was published.
    """
    digest = hashlib.sha256(protocol)
    place, index = f"{FOLDER}/{name}/{digest.hexdigest()}.json", f"{FOLDER}/{name}/collection.json"
    integrity = f"sha256-{base64.b64encode(digest.digest()).decode()}"
    content = {
        "protocol": f"{digest.hexdigest()}.json",
        "integrity": integrity,
        "question": terms["dataset.question"],
        "terms": dict(terms),
    }
    before = read_closed(objects, name, number - 1)
    asked = check_terms(objects, name, terms)
    if asked is None or (before is not None and asked == before["protocol"]):
        objects.create(place, protocol)
        for file in sorted(CLIENT.iterdir()):
            objects.create(f"{FOLDER}/{name}/{file.name}", file.read_bytes())
        for page, written in pages.items():
            objects.put(f"{FOLDER}/{name}/{page}", written)
        write = objects.create if asked is None else objects.put
        write(index, stamped("collection", content))
    closed = read_closed(objects, name, number)
    if (check_terms(objects, name, terms) if closed is None else closed["protocol"]) != content["protocol"]:
        raise _changed(objects, name, "how this version of ldptree asks")
    objects.create(place, protocol)  # it may be gone, and is named by its bytes
    if objects.get(place) != protocol:
        raise ProtocolMismatch(
            f"{objects.where(place)}: not the protocol that was published, by its SHA-256. Delete this file alone, and run "
            "again: the same protocol is written."
        )
    return place
