"""Bugs that a simulation must find: each replaces a part of the program by what a tired programmer might write."""

from __future__ import annotations

import io
import json
import secrets
from contextlib import nullcontext
from pathlib import Path
from unittest.mock import ANY

import pytest

from ldptree.client.memory import FileMemory, _content
from simulation.house import House
from storage import private_files
from storage.formats import stamped
from storage.ledger import connections
from storage.ledger.accounts import Account
from storage.ledger.database import Database
from storage.ledger.schema import CAPS
from storage.ledger.transactions import Transaction
from storage.objects import folder
from storage.objects.bucket import BucketObjects
from storage.objects.folder import FolderObjects
from storage.store import Draft

OBJECTS = (FolderObjects, BucketObjects)


def forget_the_bytes(patch: pytest.MonkeyPatch, _: House) -> None:
    """No file is synced before it gets its name."""
    patch.setattr(folder, "fsync", lambda path: path.is_dir() and private_files.fsync(path))


def forget_the_name(patch: pytest.MonkeyPatch, _: House) -> None:
    """No folder is synced after a file in it got its name."""
    patch.setattr(folder, "fsync", lambda path: path.is_dir() or private_files.fsync(path))


def look_then_write(patch: pytest.MonkeyPatch, _: House) -> None:
    """An object is written if there was none a moment ago."""

    def create(objects, name, data):
        is_first = objects.size(name) is None
        if is_first:
            objects.put(name, data)
        return is_first

    for kind in OBJECTS:
        patch.setattr(kind, "create", create)


def take_another_for_mine(patch: pytest.MonkeyPatch, _: House) -> None:
    """Whatever stands after a put was put by this writer."""
    patch.setattr(BucketObjects, "_writer_of", lambda *_: ANY)


def take_a_conflict_for_a_defeat(patch: pytest.MonkeyPatch, _: House) -> None:
    """An object that somebody else was about to put is taken for put."""
    writer_of = BucketObjects._writer_of
    patch.setattr(BucketObjects, "_writer_of", lambda *what: writer_of(*what) or "")


def call_artifacts_alike(patch: pytest.MonkeyPatch, _: House) -> None:
    """The folder of an artifact does not say what it holds: who comes later writes over what another wrote."""
    patch.setattr(Draft, "_path_of", lambda draft, zone, *_: f"{zone}/{draft.place.step}/{draft.place.key}")


def record_over(patch: pytest.MonkeyPatch, _: House) -> None:
    """Of two who record an artifact the last one's record stands."""

    def keep(draft, record):
        content = stamped("record", json.loads(record.model_dump_json()))
        draft.store.objects.put(draft.store.record_name(draft.place), content)
        return record

    patch.setattr(Draft, "_keep", keep)


def charge_after_the_draw(_: pytest.MonkeyPatch, house: House) -> None:
    """Holders answer, and are charged then."""
    house.charge_first = False


def change_without_a_condition(patch: pytest.MonkeyPatch, _: House) -> None:
    """What another changed meanwhile is written over."""

    def change(objects, name, make):
        objects.put(name, make(objects.get(name) if objects.size(name) is not None else None))

    for kind in OBJECTS:
        patch.setattr(kind, "change", change)


def look_before_the_transaction(patch: pytest.MonkeyPatch, _: House) -> None:
    """A charge is held against what was spent before its transaction began."""

    def charge(account, charges, cap, room=(), *, joining=None):
        with account._database.reading() as kept:
            ledger, first = account._read(kept)
            is_lowered = ledger.hold_to(cap)
            added = account._spend(ledger, first, charges, room)
        with account._database.writing() as kept:
            if joining is not None:
                joining.check(kept)
                joining.keep(kept)
            if is_lowered:
                kept.insert(CAPS, account=account.name, cap=cap)
            for one in added:
                account._insert(kept, one)
        return ledger

    patch.setattr(Account, "charge", charge)


def begin_without_the_database_to_itself(patch: pytest.MonkeyPatch, _: House) -> None:
    """A transaction that writes begins as one that reads."""
    patch.setitem(connections._FIRST["sqlite"], "write", "BEGIN")


def go_on_without_a_commit(patch: pytest.MonkeyPatch, _: House) -> None:
    """What was inserted is undone when the connection is closed."""
    patch.setattr(connections, "commit", lambda _: None)


def draw_over(patch: pytest.MonkeyPatch, _: House) -> None:
    """Reports are written over those that stand."""

    def draw(objects, name, write):
        drawn = io.BytesIO()
        write(drawn)
        objects.put(name, drawn.getvalue())
        return True

    for kind in OBJECTS:
        patch.setattr(kind, "draw", draw)


def draw_in_place(patch: pytest.MonkeyPatch, _: House) -> None:
    """Reports are drawn into a file that has its name already."""

    def publish(path: Path, write, _):
        drawn = io.BytesIO()
        write(drawn)
        path.write_bytes(drawn.getvalue())
        private_files.fsync(path)
        private_files.fsync(path.parent)
        return True

    patch.setattr(folder, "publish_once", publish)


def tell_before_the_commit(patch: pytest.MonkeyPatch, _: House) -> None:
    """The last transaction stands outside of the database before it is committed."""
    check, finish = Database._check_version, Transaction.finish

    def keep(database, connection):
        connection.info["database"] = database
        check(database, connection)

    def tell(transaction):
        last = finish(transaction)
        transaction._inserting.info["database"]._tell(last)
        return last

    patch.setattr(Database, "_check_version", keep)
    patch.setattr(Transaction, "finish", tell)


def collect_beside_a_run(_: pytest.MonkeyPatch, house: House) -> None:
    """Runs do not hold the work folder that `gc` sweeps."""
    house.in_use = lambda _: nullcontext()


def make_a_secret_anew(patch: pytest.MonkeyPatch, _: House) -> None:
    """Of two who make the holders' secret the last one's stands."""

    def secret_of(objects):
        if objects.size("holders/secret") is None:
            objects.put("holders/secret", secrets.token_bytes(32))
        return objects.get("holders/secret")

    patch.setattr("storage.store.secret_of", secret_of)


def remember_without_a_lock(patch: pytest.MonkeyPatch, _: House) -> None:
    """A client's processes keep what they answer over what another has kept."""
    patch.setattr(FileMemory, "_locked", lambda _: nullcontext())


def remember_in_place(patch: pytest.MonkeyPatch, _: House) -> None:
    """A client writes what it answered into the file that it reads."""

    def keep(memory, kept):
        memory._path.write_bytes(json.dumps(_content(kept)).encode())

    patch.setattr(FileMemory, "_keep", keep)


PLANTS = (
    remember_without_a_lock,
    remember_in_place,
    forget_the_bytes,
    forget_the_name,
    look_then_write,
    call_artifacts_alike,
    record_over,
    take_another_for_mine,
    take_a_conflict_for_a_defeat,
    charge_after_the_draw,
    change_without_a_condition,
    look_before_the_transaction,
    begin_without_the_database_to_itself,
    go_on_without_a_commit,
    draw_over,
    draw_in_place,
    tell_before_the_commit,
    collect_beside_a_run,
    make_a_secret_anew,
)
