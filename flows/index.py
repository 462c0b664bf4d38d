"""`<work>/index.html`: every run whose folder stands, rebuilt after each run and each `gc`."""

from __future__ import annotations

import fcntl

from ldptree.errors import ArtifactCorrupt
from storage.formats import read_stamped, stamped
from storage.objects.object_store import ObjectStore
from storage.store import Store
from tasks.page.data import Run
from tasks.page.index import Card, render_index

CARD = "card.json"
REMEDY = "Delete it: only the list of runs then lacks this run."


def list_run(store: Store, folder: str, run: Run) -> None:
    """Put a run into the list of all runs. `folder`: its own, with its page."""
    store.objects.put(f"{folder}/{CARD}", stamped("card", Card.of(run).to_dict(), indent=1))
    write_index(store)


def write_index(store: Store) -> None:
    """Write the list of all runs over the old one; of two runs at once the later one sees what the earlier one left."""
    with (store.root / ".index-lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        store.objects.put("index.html", render_index(_read_cards(store.objects)).encode())


def _read_cards(objects: ObjectStore) -> dict[str, Card]:
    """The cards of the runs that have a page, by the names of their folders; where a card cannot be read, the name alone."""
    cards = {}
    for folder in objects.folders("runs"):
        if objects.size(f"{folder}/report.html") is None:
            continue
        name = folder.rpartition("/")[2]
        try:
            content = read_stamped(objects, f"{folder}/{CARD}", "card", REMEDY)
        except (FileNotFoundError, ArtifactCorrupt):  # of an earlier version, or of a later one, or damaged
            content = {"name": name}
        cards[name] = Card.from_dict(content)
    return cards
