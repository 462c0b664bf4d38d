"""Write `<work>/index.html` with every run, as a run begins, as it ends, and by `gc`."""

from __future__ import annotations

import fcntl
from contextlib import suppress
from functools import partial
from pathlib import PurePosixPath

from ldptree.errors import ArtifactCorrupt
from storage.formats import read_stamped, stamped
from storage.objects.object_store import ObjectStore
from storage.store import Store
from tasks.page.cards import Card, draw_campaign
from tasks.page.charts import Chart
from tasks.page.render import render_index

CARD = "card.json"
STARTED = "started"
"""Folder with the cards of runs without a page yet, killed runs included."""
REMEDY = "Delete it: only the list of runs then lacks this run."


def list_started(store: Store, name: str, card: Card) -> None:
    """List a run that has no page, as it begins or after it was ended from outside. A killed run stays listed. `name`
    is of its future folder.
    """
    store.objects.put(f"{STARTED}/{name}.json", stamped("card", card.to_dict()))
    write_index(store)


def list_run(store: Store, name: str, card: Card) -> None:
    """List a run that ended, in place of those that the same command began. `name` is of its folder, with its page."""
    store.objects.put(f"runs/{name}/{CARD}", stamped("card", card.to_dict()))
    for started, other in _cards_of_started(store.objects).items():
        if started == name or (card.command and other.command == card.command):
            store.objects.delete(f"{STARTED}/{started}.json")
    write_index(store)


def find_weeks(store: Store, name: str, card: Card) -> Chart | None:
    """The runs of a run's campaign up to it; None where it is the first, or of none. `name` is of its folder."""
    if not card.campaign:
        return None
    cards = _read_cards(store.objects) | {name: card}
    return draw_campaign((each for each in cards.values() if each.created <= card.created), card.campaign)


def write_index(store: Store) -> None:
    """Write the list of all runs over the old one; of two runs at once the later one sees what the earlier one left."""
    with (store.root / ".index-lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        store.objects.put("index.html", render_index(_read_cards(store.objects)).encode())


def _read_cards(objects: ObjectStore) -> dict[str, Card]:
    """The cards of all runs, by the names of their folders; where a card of a run with a page cannot be read, the name alone."""
    cards, folders = _cards_of_started(objects), objects.folders("runs")
    ended = zip(folders, objects.at_once(partial(_card_of, objects), folders), strict=True)
    return cards | {folder.rpartition("/")[2]: card for folder, card in ended if card is not None}


def _card_of(objects: ObjectStore, folder: str) -> Card | None:
    """The card of a run; None where it has no page."""
    if objects.size(f"{folder}/page.html") is None:
        return None
    try:
        content = read_stamped(objects, f"{folder}/{CARD}", "card", REMEDY)
    except (FileNotFoundError, ArtifactCorrupt):  # lost, damaged, or of a later version
        content = {}
    return Card.from_dict({"name": folder.rpartition("/")[2]} | content)


def _cards_of_started(objects: ObjectStore) -> dict[str, Card]:
    """The cards of the runs that have no page yet, by the names of their folders to be; without those that cannot be read."""
    cards = {}
    for entry in objects.entries(STARTED):
        name = PurePosixPath(entry.name).stem
        with suppress(FileNotFoundError, ArtifactCorrupt):  # its run has ended, or a later version wrote it
            card = Card.from_dict({"name": name} | read_stamped(objects, entry.name, "card", REMEDY))
            if card.verdict == "unfinished":
                cards[name] = card
    return cards
