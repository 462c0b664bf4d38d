"""What must not get lost: what `gc` may not delete; and who notices, each alone, where somebody else has deleted it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

from flows.work_folder.garbage import newest_runs
from ldptree.errors import ArtifactCorrupt
from simulation.schedule import Violation
from storage.formats import read_stamped
from storage.ledger.accounts import Account
from storage.ledger.campaigns import Campaign
from storage.ledger.seal import check_state
from storage.store import Store

KEPT = (
    "holders/ledger",
    "holders/campaigns",
    "curator/campaigns",
    "holders/released_checks",
    "holders/secret",
)
RELEASE = "holders/ledger/release"


def needed(store: Store, keep: int) -> set[str]:
    """The names of what no garbage collection may take that keeps so many runs: what says who was asked; what campaigns
    published and received; a release's reports, and the questions of it that rest on what was answered or shown; and all that
    the runs kept were made of.
    """
    objects = store.objects
    found = {entry.name for folder in KEPT[:-1] for entry in objects.entries(folder, deep=True)} | {KEPT[-1]}
    records = [store.whole_record(name) for name in store.all_record_names()]
    makers = {part.digest: record for record in records for part in record.parts.values()}
    for folder in objects.folders("curator/campaigns"):
        campaign = Campaign(store, folder.rpartition("/")[2])
        frozen = campaign.frozen()
        found |= {name for report in campaign.reports() for name in report.names}
        found |= set(frozen.protocol.names) if frozen else set()
    for record in records:
        if record.step == "perturb" and not record.facts["seeded"]:
            (reports,) = record.parts.values()
            found |= set(reports.names)
            asked = makers.get(reports.made_by.inputs.get("question", ""))
            found |= set(asked["question"].names) if asked else set()
    ended = [f"runs/{run}/records.json" for run in newest_runs(store, keep)]
    todo = [
        json.loads(objects.get(name))["records"]
        for name in ended
        if objects.size(name) is not None  # one that was stopped refers to nothing
    ]
    wanted = [store.whole_record(name) for names in todo for name in names]
    while wanted:
        for part in wanted.pop().parts.values():
            found |= set(part.names)
            wanted += [makers[digest] for digest in part.made_by.inputs.values() if digest in makers]
    return found


def check_losses(store: Store, world, perturbed: Mapping[str, Callable[[Store], object]], random) -> None:
    """Take away one thing of each kind, and put it back. Raises Violation where somebody does not notice who should."""
    kept = [entry.name for folder in KEPT[:3] for entry in store.objects.entries(folder, deep=True)]
    charges = [name for name in kept if name.startswith(RELEASE) and name.endswith(".charge")]
    answers = [name for name in kept if name.startswith(RELEASE) and name.endswith(".answered")]
    if not answers:
        return
    noticed: list[tuple[str, Callable[[], object]]] = [
        (random.choice([*kept, *perturbed]), lambda: check_state(store))
    ]
    by_then = max(read_stamped(store.objects, one, "answered", "")["charges"] for one in answers)
    noticed += [(one, lambda: Account(store, None).read()) for one in {charges[0], charges[by_then - 1]}]
    for name, call in perturbed.items():
        noticed.append((name, lambda call=call: call(store)))
    for name, look in noticed:
        with world.without(name):
            try:
                look()
            except ArtifactCorrupt:
                continue
        raise Violation(f"{name} was taken away, and nobody noticed")
