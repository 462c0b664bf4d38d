"""Run a suite from the command line (`ldptree benchmark`), with a server, the flow, and the results for a person. The
flow is in `flow`.
"""

from __future__ import annotations

import hashlib
import logging
import os
import shlex
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.table import Table

from flows.command.interrupt import end_at_once, ended_politely, handle_again
from flows.command.plan import read_epsilons
from flows.command.streams import make_console, print_json
from flows.command.terminal import StepList
from flows.server.process import Server
from ldptree_benchmark.laws import check_law
from ldptree_benchmark.learners import check_method
from ldptree_benchmark.results.claims import try_claims
from ldptree_benchmark.sets import check_sets
from ldptree_benchmark.suite import Suite, load_suite, read_printed, suites
from schemas.tables import RunnerConfig
from storage.objects.addresses import refuse_bucket
from storage.store import Store

LONGEST_NAME = 100
STEPS = ("types", "read", "ingest", "scale", "rows", "cell", "leaks")


@dataclass(frozen=True, kw_only=True)
class Asked:
    """Options typed beside the suite, None if not given."""

    only: str | None = None
    methods: str | None = None
    repetitions: int | None = None
    epsilons: str | None = None
    is_paper: bool = False
    run: RunnerConfig = field(default_factory=RunnerConfig)

    def command(self, suite: str) -> str:
        """The command line without what changes no score."""
        options = {
            "--only": self.only,
            "--methods": self.methods,
            "--reps": self.repetitions,
            "--epsilon": self.epsilons,
        }
        words = [word for name, value in options.items() if value is not None for word in (name, str(value))]
        return shlex.join(["ldptree", "benchmark", suite, *words, *(["--paper"] if self.is_paper else [])])


def read_suite(source: str, asked: Asked) -> Suite:
    """The suite, or the part of it that was asked for, with learners and laws that there are. Raises ConfigError."""
    whole = load_suite(source)
    suite = whole.chosen(
        only=_words(asked.only),
        methods=_words(asked.methods),
        repetitions=asked.repetitions,
        epsilons=None if asked.epsilons is None else read_epsilons(asked.epsilons),
    )
    for name, method in suite.methods.items():
        check_method(name, method, is_number=suite.is_number)
    for name, law in suite.laws.items():
        check_law(name, law)
    check_sets(suite)
    try_claims(whole, None if whole.printed is None else read_printed(whole.printed.table))
    return suite


def name_part(suite: Suite, whole: Suite) -> str:
    """Return the name of a part of a suite, such as "smoke-only-pair-epsilon-1", beside the whole's."""
    parts: dict[str, tuple[Iterable[object], Iterable[object]]] = {
        "only": (suite.sets, whole.sets),
        "methods": (suite.methods, whole.methods),
        "reps": ((suite.repetitions,), (whole.repetitions,)),
        "epsilon": (
            [f"{epsilon:g}" for epsilon in suite.epsilons],
            [f"{epsilon:g}" for epsilon in whole.epsilons],
        ),
    }
    words = [
        word
        for key, (ours, all_of_it) in parts.items()
        if [*ours] != [*all_of_it]
        for word in (key, *map(str, ours))
    ]
    name = "-".join((whole.name, *words))
    if len(name) > LONGEST_NAME:
        return f"{whole.name}-part-{hashlib.sha256(name.encode()).hexdigest()[:12]}"
    return name


def list_suites() -> list[str]:
    """A line for each suite that comes with the benchmark."""
    width = max(map(len, suites()), default=0)
    return [f"{name:{width}}  {load_suite(name).title}" for name in suites()]


def benchmark_here(name: str, asked: Asked, work: Path, *, as_json: bool) -> bool:
    """Run a suite in this process and print what came of it; returns whether something was scored and every claim held. Raises
    LdptreeError.
    """
    refuse_bucket(work, "ldptree benchmark")
    suite = read_suite(name, asked)
    part = name_part(suite, load_suite(name))
    store = Store(work)
    store.check_rights()
    before = end_at_once()
    n_cells = f"{len(suite.sets)} sets, {len(suite.methods)} methods, {suite.repetitions} repetitions"
    try:
        title = f"{suite.title}: {n_cells}, in {work}"
        with StepList(title, STEPS, quiet=as_json, tried={"cell": "cells"}) as shown:
            if asked.is_paper and not suite.has_candidates:
                shown.say(
                    "--paper: no method of this suite has candidates to pick from, so nothing is picked"
                )
            server = Server(store.root, again=asked.command(name))
            if server.temporary:
                shown.say("starting Prefect (slower the first time in a folder)")
            try:
                summary = _run(suite, part, asked, asked.command(name), store, server)
            finally:
                server.stop()
    finally:
        handle_again(before)
    if as_json:
        print_json(summary)
    else:
        _print(suite, summary)
    return came_out(summary)


def came_out(summary: dict[str, Any]) -> bool:
    """Whether every method has a score anywhere, and no claim is refuted."""
    is_held = all(claim["held"] is not False for claim in summary["claims"])
    return is_held and not summary["methods_without_a_score"]


def _run(suite: Suite, part: str, asked: Asked, command: str, store: Store, server: Server) -> dict[str, Any]:
    logging.getLogger().setLevel(logging.CRITICAL)
    logging.getLogger().addHandler(logging.NullHandler())
    os.environ.setdefault("PYTHONWARNINGS", "ignore")  # of learners in processes of their own
    from prefect.settings import PREFECT_FLOWS_HEARTBEAT_FREQUENCY, temporary_settings

    from ldptree_benchmark.flow import benchmark

    server.wait()
    quiet = {PREFECT_FLOWS_HEARTBEAT_FREQUENCY: None} if server.temporary else {}
    with ended_politely(), server.convert_loss(), temporary_settings(quiet):
        summary: dict[str, Any] = benchmark(
            suite=suite, name=part, work=store.work, paper=asked.is_paper, run=asked.run, command=command
        )
    return summary


def _print(suite: Suite, summary: dict[str, Any]) -> None:
    console = make_console()
    table = Table(box=None, pad_edge=False, padding=(0, 2))
    table.add_column("mean over sets where all have a score")
    for epsilon in suite.epsilons:
        table.add_column(f"eps {epsilon:g}", justify="right", no_wrap=True)
    for method, scores in summary["scores"].items():
        table.add_row(method, *("–" if score is None else f"{score:.4g}" for score in scores.values()))
    console.print(table)
    for claim in summary["claims"]:
        word = {True: "held", False: "NOT HELD", None: "not measured"}[claim["held"]]
        figure = "" if claim["held"] is None else f" ({claim['found']})"
        console.print(f"{word}: {claim['says']}{figure}", soft_wrap=True)
    for reason in summary["reasons"]:
        console.print(f"without a score: {reason}", soft_wrap=True)
    for name, leaks in summary["leaks"].items():
        console.print(f"{name}: {leaks}, so its scores look better than they are", soft_wrap=True)
    console.print(f"{summary['cells']:,} scores asked for, {summary['failed']:,} missing")
    console.print(f"page   {summary['page']}", soft_wrap=True)
    console.print(f"table  {summary['results']}", soft_wrap=True)


def _words(text: str | None) -> tuple[str, ...] | None:
    return None if text is None else tuple(word.strip() for word in text.split(",") if word.strip())
