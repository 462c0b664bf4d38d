"""What must not get lost: what `gc` may not delete; and who notices, each alone, where somebody else has deleted it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

from flows.work_folder.garbage import newest_runs
from ldptree.errors import ArtifactCorrupt
from simulation.schedule import Violation
from storage.holders.secret import SECRET
from storage.ledger.campaigns import campaigns_in
from storage.ledger.connections import DATABASE
from storage.ledger.database import LAST
from storage.ledger.lost_parts import check_state
from storage.store import Store

KEPT = (DATABASE, SECRET)


def needed(store: Store, keep: int) -> set[str]:
    """The names of what no garbage collection may take that keeps so many runs: what says who was asked; what campaigns
    published and received; a release's reports, and the questions of it that rest on what was answered or shown; and all that
    the runs kept were made of.
    """
    objects = store.objects
    told = {entry.name for entry in objects.entries("curator/reports") if entry.name.startswith(LAST)}
    found = {*KEPT, *told}
    records = [store.whole_record(name) for name in store.all_record_names()]
    makers = {part.digest: record for record in records for part in record.parts.values()}
    for campaign in campaigns_in(store):
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
    # A record that a killed run had not yet synced may go with the power, after another run has referred to it.
    wanted = [store.whole_record(name) for names in todo for name in names if objects.size(name) is not None]
    while wanted:
        for part in wanted.pop().parts.values():
            found |= set(part.names)
            wanted += [makers[digest] for digest in part.made_by.inputs.values() if digest in makers]
    return found


def check_losses(store: Store, world, database, perturbed: Mapping[str, Callable[[Store], object]], random):
    """Take away one thing of each kind, and put it back. Raises Violation where somebody does not notice who should."""
    if not perturbed:
        return
    noticed = [(name, world.without(name), lambda: check_state(store)) for name in (SECRET, *perturbed)]
    noticed = [random.choice(noticed), (DATABASE, database.missing(), lambda: check_state(store))]
    noticed += [(name, world.without(name), lambda act=act: act(store)) for name, act in perturbed.items()]
    for name, away, look in noticed:
        with away:
            try:
                look()
            except ArtifactCorrupt:
                continue
        raise Violation(f"{name} was taken away, and nobody noticed")
