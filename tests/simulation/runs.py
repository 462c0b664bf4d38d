"""What runs do here: what the pipeline does, in its order, with its campaigns, budget and steps, on people that are numbers.

Nothing is learned: a question is a name, and a report says who drew it when. Who is asked is chosen as
`tasks.holders.split` does.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from flows.budget import IN_ROUNDS, ConversationCost, QuestionCost, questions_of
from schemas.manifest import FileEntry, MadeBy, Manifest
from storage.digests import Hasher
from storage.ledger.campaigns import Campaign
from storage.store import Store
from tasks.perturb import mark_of, write_once
from tasks.step import NotInKey, Step, StepTask

EPSILON = 1.0
"""What a question costs; a cap of as much is enough for one."""


@dataclass(frozen=True)
class RawFile:
    """A file of private rows: who is in it."""

    name: str
    people: tuple[int, ...]

    @property
    def digest(self) -> str:
        """Of what it holds."""
        return Hasher().of_value(self.people)


WEEK_1 = RawFile("week-1.csv", (1, 2, 3, 4))
WEEK_1_CHANGED = RawFile("week-1.csv", (1, 2, 7, 8))
WEEK_2 = RawFile("week-2.csv", (3, 4, 5, 6))
FILES = {file.digest: file for file in (WEEK_1, WEEK_1_CHANGED, WEEK_2)}


@dataclass(frozen=True)
class Run:
    """A run.

    question  that it asks.
    files     that it finds.
    campaign  in which; its name looks like the names that `gc` deletes.
    seed      of a simulation's noise (None: a release).
    cap       that it states.
    rounds    whether it asks in rounds: several questions that one charge pays for.
    differs   how its question differs from that of another version of the program.
    tells     which answers about private rows it wants to tell, a letter each.
    """

    question: str
    files: tuple[RawFile, ...] = (WEEK_1,)
    campaign: str | None = None
    seed: int | None = None
    cap: float | None = None
    rounds: bool = False
    differs: str = ""
    tells: str = ""

    @cached_property
    def config(self) -> Any:
        """As much of its configuration as counts here."""
        dataset = SimpleNamespace(holder="who", types={}, new_people=False, model_copy=lambda **_: dataset)
        config = SimpleNamespace(
            name=self.question,
            campaign=SimpleNamespace(name=self.campaign),
            dataset=dataset,
            model=None,
            privacy=SimpleNamespace(epsilon=EPSILON, lifetime_epsilon=self.cap, max_report_bytes=10**6),
            noise_seed=self.seed,
            is_seeded=self.seed is not None,
            as_published=lambda _: config,
        )
        return config

    def raw(self, store: Store) -> Manifest:
        """Its raw files."""
        files = tuple(FileEntry(name=f.name, digest=f.digest, rows=len(f.people)) for f in self.files)
        digest = store.hasher("holders").of_value([entry.digest for entry in files])
        made_by = MadeBy(step="raw", version="1", parameters={}, inputs={})
        return Manifest(zone="holders", path="", digest=digest, files=files, made_by=made_by)

    @property
    def file(self) -> str:
        """How the file is called that its question is in: that of an only question is published."""
        return "question.json" if self.rounds else "protocol.json"

    def cost(self, store: Store, raw: Manifest, held: Any, question: Manifest, joining: Any) -> Any:
        """What its question costs."""
        if self.rounds:
            return ConversationCost(store, self.config, raw, held, self.question)
        return QuestionCost(store, self.config, raw, held, as_protocol(question), "reports", joining)

    def questions(self, cost: Any, held: Any) -> list[tuple[Any, list[int]]]:
        """What is asked in each file, and whom."""
        digest, form = (cost._digest, IN_ROUNDS) if self.rounds else (cost.protocol.digest, "reports")
        found = questions_of(cost.store, self.config, held, digest, 1, form)
        return [
            (one, np.load(cost.store.file(held["answers"], f"{one.source}.asked.npy")).tolist())
            for one in found
        ]


CAMPAIGN = "c0ffee00c0ffee00"
ONE = Run("one", campaign=CAMPAIGN, cap=EPSILON, tells="ab")
LATER = Run("one", (WEEK_1, WEEK_2), CAMPAIGN, tells="bc")
APART = Run("one", (WEEK_2,), CAMPAIGN, tells="cd")
CHANGED = Run("one", (WEEK_1_CHANGED,), CAMPAIGN)
TWO = Run("two", rounds=True, tells="cd")
OTHERWISE = Run("two", rounds=True, cap=EPSILON, differs="otherwise")
TRIAL = Run("trial", seed=5, cap=EPSILON)
REHEARSAL = Run("trial", (WEEK_1, WEEK_2), "5eed5eed5eed5eed", seed=5)
PROGRAMS = {
    "one": (ONE,),
    "again": (ONE,),
    "two": (TWO,),
    "both": (TWO, ONE),
    "trial": (TRIAL,),
    "later": (LATER,),
    "apart": (APART, ONE),
    "changed": (CHANGED,),
    "otherwise": (OTHERWISE,),
    "rehearsal": (REHEARSAL,),
}
"""The runs of each process, in order."""


def as_protocol(of: Manifest) -> Any:
    """What holders agree to of a question here."""
    return SimpleNamespace(digest=of.digest, digest_unmarked=of.digest, round=1, epsilon=EPSILON)


def _split(draft, *, raw, asked_before, campaign):
    """Who is asked in which file: who has a role in none before it. All shards hold the same."""
    store, n_asked = draft.store, 0
    keyed, files = store.hasher("holders"), {}
    kept = Campaign(store, campaign) if campaign else None
    taken = set(kept.answered(asked_before).tolist()) if kept else set()
    (draft.folder("test", "simulation") / "test.txt").write_text("held back")
    for entry in raw.files:
        people = FILES[entry.digest].people
        asked = [one for one in people if one not in taken]
        taken |= set(people)
        name, names = f"{keyed.of_value([entry.digest, 0])[:32]}.parquet", np.array(asked, np.uint64)
        for kind in (".npy", ".asked.npy"):
            np.save(draft.folder("answers") / f"{entry.digest}{kind}", names)
        pq.write_table(pa.table({"row": [1, 2]}), draft.folder("train") / name)
        draft.count("train", name, len(asked))
        files[entry.digest] = {"rows": [0, len(people)], "shards": [name]}
        n_asked += len(asked)
    (draft.folder("answers") / "files.json").write_text(json.dumps(files))
    return {"n_private": n_asked, "holder_type": "integer"}


def _ask(draft, *, question, name, seen, rows):
    """A question, which depends on what was seen when it was asked."""
    assert rows.files
    (draft.folder("question") / name).write_text(json.dumps({"question": question, "seen": seen}))
    return {"report_bytes": 1}


def _perturb(draft, *, question, shard, draw: NotInKey, seed, campaign):
    table: Callable[[], pa.Table] = draw.value
    received = write_once(
        draft,
        question=question,
        asked=question.digest,
        round_number=1,
        drawn=None if seed is None else [seed],
        identity=shard.files[0].name if campaign else shard.digest,
        metadata={"holders": str(shard.rows), "protocol": question.digest, **mark_of(seed)},
        table=table,
    )
    draft.refer("reports", received)
    return {"seeded": seed is not None}


def _total(draft, *, reports) -> Mapping[str, Any]:
    digests = sorted(Hasher().of_file(path) for one in reports for path in draft.store.files(one))
    (draft.folder("totals") / "totals.json").write_text(json.dumps(digests))
    return {}


def _page(draft, *, totals) -> None:
    """What no two runs make alike: it says when it was made."""
    for name in ("page.html", "times.json"):
        (draft.folder("page") / name).write_text(f"{totals.digest} at {secrets.token_hex(8)}")


SPLIT = StepTask(Step("sim-split", "1", "holders"), _split, 0)
ASK = StepTask(Step("partition", "1", "curator"), _ask, 0)
PERTURB = StepTask(Step("perturb", "1", "holders"), _perturb, 0)
TOTAL = StepTask(Step("sim-total", "1", "curator"), _total, 0)
PAGE = StepTask(Step("sim-page", "1", "curator"), _page, 0)
