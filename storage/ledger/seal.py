"""Seal a work folder, to notice a part that was lost or restored from an older backup.

The seal is `holders/ledger/seal`. It holds a check value of the holders' secret, and the name and size of every file that the
ledger, the campaigns and the releases' reports keep; none of these is ever deleted or shrinks. Each new seal has the next
number. Every other part has a mark with that number and the seal's keyed digest. The seal is written first and says so until
all marks are written; a mark behind it is then one that a killed process did not reach.

If all parts come from one backup, nothing contradicts anything; only `holders/seal`, which belongs to no part, can then tell.
"""

from __future__ import annotations

import hmac
import itertools
import operator
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Literal

from pydantic import ValidationError

from ldptree.errors import ArtifactCorrupt
from schemas.manifest import Record, Strict
from storage.formats import SEAL, Damaged, read_stamped, stamped
from storage.holders.secret import has_secret, other_secret, refuse_new_secret
from storage.ledger.campaigns import Campaign
from storage.objects.object_store import sizes_of
from storage.store import Store

LEDGER, ASKED, PUBLISHED, REPORTS = (
    "holders/ledger",
    "holders/campaigns",
    "curator/campaigns",
    "curator/reports",
)
PARTS = ("holders", ASKED, PUBLISHED, REPORTS)
"""Where a mark lies. A folder restored from a backup of the documented parts has none in `holders` itself."""
NAMED_BY_SECRET = ("ingest", "split")
"""Steps whose records have keyed names, made of nothing but what stands in the record."""
LOOKED_AT = 20
REMEDY = (
    "Holders who have answered could be asked again, so nobody is asked. Restore the folders curator and holders, both from one "
    "backup that was made after the last run, or begin anew in another work folder."
)


class Seal(Strict):
    """Seal number `number`; all marks are at least at `settled`. `parts` have a mark; `files` are kept, with these sizes."""

    number: int
    settled: int
    secret: str
    parts: tuple[str, ...]
    files: dict[str, int]


class Mark(Strict):
    """Seal number `number`, which has this keyed digest."""

    number: int
    seal: str


def check_state(store: Store) -> Seal | None:
    """The seal that holds, None where there is none yet.

    Raises ArtifactCorrupt where what is kept of who was asked is missing, older than another part of it, or damaged.
    """
    while True:
        before = _read(store, LEDGER, Seal)
        try:
            return _check(store)
        except ArtifactCorrupt:
            if _read(store, LEDGER, Seal) == before:
                raise
            # Another run sealed meanwhile: what was read is of before and of after.


def seal_state(store: Store) -> None:
    """Seal what is kept now, once it is seen that nothing sealed before was lost. Raises ArtifactCorrupt."""
    while True:
        sealed = check_state(store)
        new = _next_seal(store, sealed)
        if new is None:
            return
        _settle(store, sealed, new)
        if _write(store, LEDGER, new, partial(operator.eq, sealed)):
            break
        # Another run was faster: what it sealed is to be looked at too.
    mark = Mark(number=new.number, seal=_digest(store, new))
    for part in new.parts:
        _write(store, part, mark, lambda old: old is None or old.number < mark.number)
    _write(store, LEDGER, new.model_copy(update={"settled": new.number}), partial(operator.eq, new))


def _settle(store: Store, sealed: Seal | None, new: Seal) -> None:
    """Wait until all that a seal lists is durable, as another process may have just written it and stopped."""
    added = new.files.keys() - (sealed.files.keys() if sealed else set())
    for folder in sorted({name.rpartition("/")[0] for name in added}):
        store.objects.settle(folder)


def _next_seal(store: Store, sealed: Seal | None) -> Seal | None:
    """The seal of what is kept now, None where the one that holds says it all."""
    parts = {part for part in PARTS if part != REPORTS and _is_there(store, part)}
    parts |= {REPORTS} if _is_there(store, f"{LEDGER}/release") else set()
    files = _kept(store)
    if sealed is not None:
        parts |= set(sealed.parts)
        files = sealed.files | files
        if _is_current(store, sealed, parts, files):
            return None
    return Seal(
        number=sealed.number + 1 if sealed else 1,
        settled=sealed.settled if sealed else 0,
        secret=_check_value(store),
        parts=tuple(sorted(parts)),
        files=files,
    )


def _check(store: Store) -> Seal | None:
    """The seal that holds, None where there is none yet."""
    marks = {part: mark for part in PARTS if (mark := _read(store, part, Mark)) is not None}
    sealed: Seal | None = _read(store, LEDGER, Seal)
    newest = max(marks, key=lambda part: marks[part].number, default=None)
    if sealed is None and newest is None:
        _check_unsealed(store)
        return None
    if sealed is None:
        raise _lost(store, LEDGER, f"missing, and {newest}/{SEAL} says that there was one")
    if newest is not None and marks[newest].number > sealed.number:
        raise _lost(
            store, LEDGER, f"older than {newest}/{SEAL} (number {sealed.number} and {marks[newest].number})"
        )
    if not hmac.compare_digest(sealed.secret, _check_value(store)):
        raise other_secret(store.objects)
    for part in sealed.parts:
        _check_mark(store, part, marks.get(part), sealed)
    there = sizes_of(store.objects, sealed.files)
    for name, size in sealed.files.items():
        _check_file(store, name, size, there.get(name))
    return sealed


def _check_mark(store: Store, part: str, mark: Mark | None, sealed: Seal) -> None:
    if mark is not None and mark.number == sealed.number:
        if mark.seal != _digest(store, sealed):
            raise _lost(store, part, f"of another history than {LEDGER}/{SEAL}")
        return
    if part == "holders":  # no part of a backup
        return
    is_cut_off = sealed.settled < sealed.number  # by a kill, before it came to every part
    if is_cut_off and (mark is None or mark.number >= sealed.settled):
        return
    if mark is None:
        raise _lost(store, part, f"missing, and {LEDGER}/{SEAL} says that there was one")
    raise _lost(store, part, f"older than {LEDGER}/{SEAL} (number {mark.number} and {sealed.number})")


def _check_file(store: Store, name: str, size: int, actual: int | None) -> None:
    if actual is None:
        raise ArtifactCorrupt(f"{store.objects.where(name)}: missing. {REMEDY}")
    if actual < size:
        raise ArtifactCorrupt(
            f"{store.objects.where(name)}: cut short ({actual:,} of {size:,} bytes). {REMEDY}"
        )


def _check_unsealed(store: Store) -> None:
    """Check what can be seen in a folder that was sealed by no version yet, or in which nobody was asked."""
    if not has_secret(store.objects):
        refuse_new_secret(store.objects)
        return
    if _is_of_another_secret(store):
        raise other_secret(store.objects)
    objects = store.objects
    asked = {f"{folder}/files.json" for folder in objects.folders(ASKED)}
    signs = {name for name in asked if objects.size(name) is not None} | {
        folder for campaign in objects.folders(PUBLISHED) for folder in objects.folders(campaign)
    }
    for sign in sorted(signs):
        campaign = sign.split("/")[-2]
        needed = [f"{PUBLISHED}/{campaign}/published.json"]
        needed += [] if sign in asked else [f"{ASKED}/{campaign}/files.json"]
        for name in needed:
            if objects.size(name) is None:
                raise ArtifactCorrupt(
                    f"{objects.where(name)}: missing, and {objects.where(sign)} says that holders were asked. {REMEDY}"
                )
    for name in _protocols(store):
        if objects.size(name) is None:
            raise ArtifactCorrupt(
                f"{objects.where(name)}: missing, and a campaign was published with it. {REMEDY}"
            )


def _is_of_another_secret(store: Store) -> bool:
    """Return whether records of the holders' zone were named under another secret than the one that is there."""
    names = (name for step in NAMED_BY_SECRET for name in store.record_names("holders", step))
    records = (store.read_record(name) for name in itertools.islice(names, LOOKED_AT))
    named = [record for record in records if record is not None and record.parts]
    return bool(named) and not any(_is_named_by_it(store, record) for record in named)


def _is_named_by_it(store: Store, record: Record) -> bool:
    made = next(iter(record.parts.values())).made_by
    place = store.place(
        record.home, record.step, record.version, inputs=made.inputs, parameters=made.parameters
    )
    return place.key == record.key


def _kept(store: Store) -> dict[str, int]:
    """Every file that is kept for good, and its size."""
    objects, seals = store.objects, {_name(part) for part in PARTS}
    sizes = {
        entry.name: entry.size
        for part in (LEDGER, ASKED, PUBLISHED)
        for entry in objects.entries(part, deep=True)
        if entry.name not in seals | {_name(LEDGER)}
    }
    named = _protocols(store)
    # Reports of simulations are drawn again where they are lost.
    answers = [name for name in sizes if name.startswith(f"{LEDGER}/release/") and name.endswith(".answered")]
    for kept in objects.at_once(lambda name: read_stamped(objects, name, "answered", REMEDY), answers):
        named += kept["files"]
    # Who asks the question of one that is missing is told of it.
    return sizes | sizes_of(objects, named)


def _protocols(store: Store) -> list[str]:
    """The names of the protocols that campaigns published."""
    campaigns = (Campaign(store, folder.split("/")[-1]) for folder in store.objects.folders(PUBLISHED))
    published = (campaign.frozen() for campaign in campaigns)
    return [name for frozen in published if frozen is not None for name in frozen.protocol.names]


def _is_current(store: Store, sealed: Seal, parts: set[str], files: Mapping[str, int]) -> bool:
    mark = _read(store, "holders", Mark)
    return (
        sealed.settled == sealed.number
        and sealed.files == files
        and set(sealed.parts) == parts
        and mark is not None
        and mark.number == sealed.number
    )


def _is_there(store: Store, part: str) -> bool:
    """Return whether anything is kept in a part."""
    return bool(store.objects.folders(part)) or next(store.objects.entries(part), None) is not None


def _read(store: Store, part: str, kind: type[Any]) -> Any:
    try:
        return kind.model_validate(read_stamped(store.objects, _name(part), _format(part), REMEDY))
    except FileNotFoundError:
        return None
    except ValidationError:
        raise Damaged(f"{store.objects.where(_name(part))}: damaged. {REMEDY}") from None


def _write(store: Store, part: str, new: Strict, is_next: Callable[[Any], bool]) -> bool:
    """Write a seal or mark if it is next after what stands, else change nothing and return False."""

    def follow(_: bytes | None) -> bytes:
        if not is_next(_read(store, part, type(new))):
            raise _Overtaken
        return stamped(_format(part), new.model_dump(mode="json"))

    try:
        store.objects.change(_name(part), follow)
    except _Overtaken:
        return False
    return True


class _Overtaken(Exception):  # noqa: N818 - not an error: another run has sealed since
    pass


def _format(part: str) -> Literal["seal", "mark"]:
    return "seal" if part == LEDGER else "mark"


def _name(part: str) -> str:
    return f"{part}/{SEAL}"


def _digest(store: Store, sealed: Seal) -> str:
    """Return a keyed digest, as the content of the seal is the holders'."""
    return store.hasher("holders").of_value(sealed.model_dump(mode="json", exclude={"settled"}))


def _check_value(store: Store) -> str:
    return store.hasher("holders").of_bytes(b"check value of the secret")


def _lost(store: Store, part: str, how: str) -> ArtifactCorrupt:
    return ArtifactCorrupt(f"{store.objects.where(_name(part))}: {how}. {REMEDY}")
