"""The flow of a benchmark, with cells of a suite as Prefect tasks, and a table, a page and a file of results."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from prefect import flow, get_run_logger, unmapped

from flows.executors import InlineExecutor, PrefectExecutor
from flows.pipeline import Pipeline
from flows.runner import Runners, runners_of
from flows.server.run_log import refusal_shown
from flows.server.step_tasks import as_task
from flows.work_folder.provenance import in_use
from ldptree.errors import ConfigError, LdptreeError
from ldptree_benchmark import cell as cells_of
from ldptree_benchmark.code import digest_code
from ldptree_benchmark.learners import check_method, learner_of
from ldptree_benchmark.results.report import Making, write_report
from ldptree_benchmark.results.scores import Cell
from ldptree_benchmark.results.tables import Sets
from ldptree_benchmark.rows import PUBLIC, pool_rows
from ldptree_benchmark.sets import config_of
from ldptree_benchmark.suite import Law, Method, Suite, read_printed
from schemas.config import RunConfig
from schemas.manifest import Manifest, Record
from schemas.tables import RunnerConfig
from storage.store import Store
from tasks import progress
from tasks.data.source import check_files
from tasks.step import StepTask

FOLDER = "benchmarks"
"""Folder in the work folder, with a folder for each suite."""
REASON_CHARACTERS = 300
AT_ONCE = 500
"""Tasks that are handed to Prefect at once."""


@dataclass(frozen=True)
class Wanted:
    """One cell that is asked for, and the arguments of its step; with --paper each of its candidates has a score."""

    dataset: str
    method: str
    candidates: list[dict[str, Any]]
    epsilon: float | None
    repetition: int
    arguments: dict[str, Any]


@flow(name="benchmark", persist_result=False, flow_run_name="{name}", validate_parameters=False)
def benchmark(
    suite: Suite,
    name: str,
    work: str = "work",
    paper: bool = False,
    run: RunnerConfig | None = None,
    command: str = "",
) -> dict[str, Any]:
    """Score every cell of a suite that does not stand yet, and write what came of it.

    Args:
        suite: what is compared on what.
        name: of the flow run, and of the folder of what came out; of a part of the suite another than of the whole.
        work: the work folder.
        paper: try each method's candidates and show the best on test rows, as the papers did; without any nothing is picked.
        run: what computes cells.
        command: the command line that repeats it, for the docs.

    Returns:
        What `ldptree benchmark --json` prints.

    Raises:
        LdptreeError: nothing of it could be scored.
    """
    store, timeline = Store(work), progress.Timeline()
    paper = paper and suite.has_candidates
    with (
        timeline.listening(),
        in_use(store.root),
        runners_of(run or RunnerConfig()) as runners,
    ):
        with refusal_shown(command):
            sources, missing = find_rows(suite, PrefectExecutor(store, runners))
            check_rows(store, suite, sources)
        wanted = list_cells(suite, sources, paper=paper)
        cells = [*_score(store, runners, wanted), *_left_out(suite, missing)]
        leaks = {}
        for dataset, source in sources.items():
            try:
                leaks[dataset] = _find_leaks(store, suite, dataset, source)
            except LdptreeError as fault:
                missing[dataset] = str(fault)
        summary = write_report(
            store.root / FOLDER / (name + ("-paper" if paper else "")),
            suite,
            cells,
            Sets(leaks=leaks, missing=missing),
            printed=None if suite.printed is None else read_printed(suite.printed.table),
            is_paper=paper,
            making=Making(
                command=command,
                seconds=timeline.elapsed,
                tasks=len(wanted),
                n_reused=sum(
                    entry.n_reused
                    for entry in timeline.steps()
                    if entry.name == cells_of.score_cell.step.name
                ),
            ),
        )
        get_run_logger().info(
            "%s: %d cells, %d failed; %s", suite.name, summary["cells"], summary["failed"], summary["page"]
        )
    return summary


def _find_leaks(store: Store, suite: Suite, dataset: str, source: Manifest | Law) -> dict[str, Any]:
    task = as_task(cells_of.check_leaks, is_limited=False)
    state: Any = task(
        store,
        f"leaks of {dataset}",
        source=source,
        dataset=dataset,
        seed=suite.seed,
        split=suite.split_of(dataset),
        return_state=True,  # a task that finds its record returns a state, and Prefect hands that over as it is
    )
    record: Record = state.result()
    return record.facts


def find_rows(suite: Suite, executor: InlineExecutor) -> tuple[dict[str, Manifest | Law], dict[str, str]]:
    """Where each set's rows are, and why those of the others are not there. Raises LdptreeError where none are."""
    sources: dict[str, Manifest | Law] = {}
    missing: dict[str, LdptreeError] = {}
    pooled: dict[str, Manifest] = {}
    for name in suite.sets:
        if name in suite.laws:
            sources[name] = suite.laws[name]
            continue
        try:
            config = config_of(suite, name)
            if config.dataset.name not in suite.brought:
                check_files(config.dataset.name)
            key = config.model_dump_json()
            if key not in pooled:
                pooled[key] = _pool(suite, config, executor)
            sources[name] = pooled[key]
        except LdptreeError as fault:
            missing[name] = fault
    if not sources:
        first = next(iter(missing.values()))
        raise type(first)(f"{suite.name}: no data set is there. {first}")
    return sources, {name: str(fault) for name, fault in missing.items()}


def _pool(suite: Suite, config: RunConfig, executor: InlineExecutor) -> Manifest:
    run = Pipeline(store=executor.store, config=config, executor=executor)
    spec = config.dataset
    record = executor.step(
        pool_rows,
        lambda: {
            "public": run.ingested["public"],
            "private": run.ingested["private"],
            "encoding": run.scaled["encoding"],
            "target": spec.target,
            "is_number": suite.is_number,
            "label_range": spec.ranges.get(spec.target) if suite.is_number else None,
        },
    )
    return record["rows"]


def check_rows(store: Store, suite: Suite, sources: Mapping[str, Manifest | Law]) -> None:
    """Whether sets say what its learners have to know of them.

    Raises ConfigError: the split names a feature that a set does not have, a learner needs to be told who protects which
    features and a set does not say so, or learns from public rows where there are none.
    """
    learners = {
        name: learner_of(method.learner, is_number=suite.is_number) for name, method in suite.methods.items()
    }
    needing = [name for name, learner in learners.items() if learner.needs_mask]
    public_alone = [name for name, learner in learners.items() if learner.reads == "public rows"]
    for dataset, source in sources.items():
        split = suite.split_of(dataset)
        if not (needing or split.private or isinstance(source, Law)):
            continue  # public rows are there, or the split says so by itself
        rows = cells_of.rows_of(store, source, dataset, suite.seed, 0, split)
        if needing and rows.protects is None:
            raise ConfigError(
                f"methods.{needing[0]}: {suite.methods[needing[0]].learner} has to know which features are private, and "
                f"{dataset} does not say; name them in private, of its split"
            )
        if public_alone and not rows.of(PUBLIC).n:
            raise ConfigError(
                f"methods.{public_alone[0]}: {suite.methods[public_alone[0]].learner} learns from public rows, and {dataset} has "
                "none; leave it out"
            )


def list_cells(suite: Suite, sources: dict[str, Manifest | Law], *, paper: bool) -> list[Wanted]:
    """List every cell of the suite. Raises ConfigError if a learner is not known, or cannot learn the label."""
    for name, method in suite.methods.items():
        check_method(name, method, is_number=suite.is_number)
    alone: dict[str, Any] = {} if paper else {"candidates": {}}
    kinds = {name: method.model_copy(update={"title": "", **alone}) for name, method in suite.methods.items()}
    tried = {name: (kind, kind.combinations) for name, kind in kinds.items()}
    return [
        Wanted(
            dataset=dataset,
            method=name,
            candidates=candidates,
            epsilon=epsilon,
            repetition=repetition,
            arguments={
                "source": source,
                "method": asked,
                "dataset": dataset,
                "epsilon": epsilon,
                "repetition": repetition,
                "seed": suite.seed,
                "split": suite.split_of(dataset),
                "measure": suite.measure,
                "code": digest_code(method.learner),
            },
        )
        for repetition in range(suite.repetitions)
        for dataset, source in sources.items()
        for name, method in suite.methods.items()
        for asked, candidates in [tried[name]]
        for epsilon in _epsilons(suite, method)
    ]


def _epsilons(suite: Suite, method: Method) -> Sequence[float | None]:
    is_private = learner_of(method.learner, is_number=suite.is_number).is_private
    return suite.epsilons if is_private else (None,)


def _score(store: Store, runners: Runners, wanted: Sequence[Wanted]) -> Iterator[Cell]:
    """Every cell, found or computed; one that fails says why, and is tried again by the next run."""
    step: StepTask = cells_of.score_cell
    progress.expect(step.step.name, len(wanted))
    task = as_task(step, is_limited=False)
    waiting = []
    for cell in wanted:
        record = _stands(store, cell)
        if record is None:
            waiting.append(cell)
        else:
            progress.tell_reused(step.step.name)
            yield from _cells(cell, record.facts, "")
    for start in range(0, len(waiting), AT_ONCE):
        block = waiting[start : start + AT_ONCE]
        arguments: dict[str, Any] = {
            key: [cell.arguments[key] for cell in block] for key in block[0].arguments
        }
        call = {"store": unmapped(store), "label": [_label(cell) for cell in block], "arguments": arguments}
        for cell, state in zip(block, runners.map(task, step.step.name, call), strict=True):
            facts = state.result().facts if state.is_completed() else {}
            yield from _cells(cell, facts, "" if facts else str(state.result(raise_on_failure=False)))


def _stands(store: Store, wanted: Wanted) -> Record | None:
    """Return what an earlier run left of a cell, which then needs no task, or None if nothing can be read."""
    with suppress(LdptreeError):  # the task tells it
        return store.find(cells_of.score_cell.step.place(store, wanted.arguments))
    return None


def _label(wanted: Wanted) -> str:
    epsilon = "" if wanted.epsilon is None else f" at {wanted.epsilon:g}"
    return f"{wanted.method} on {wanted.dataset}{epsilon}, {wanted.repetition + 1}"


def _cells(wanted: Wanted, facts: Mapping[str, Any], reason: str) -> Iterator[Cell]:
    """A score for each candidate, or the reason why there is none."""
    n = len(wanted.candidates)
    scores, seconds = facts.get("scores", [None] * n), facts.get("seconds", [math.nan] * n)
    reasons, peak = facts.get("reasons", [reason] * n), facts.get("process_peak_mib", math.nan)
    columns, parts = facts.get("columns", [{}] * n), facts.get("parts", [{}] * n)
    for candidate, score, took, why, more, made_of in zip(
        wanted.candidates, scores, seconds, reasons, columns, parts, strict=True
    ):
        yield Cell(
            dataset=wanted.dataset, method=wanted.method, candidate=candidate, epsilon=wanted.epsilon,
            repetition=wanted.repetition, score=math.nan if score is None else float(score), seconds=float(took),
            process_peak_mib=float(peak), reason=why[:REASON_CHARACTERS], columns=more, parts=made_of,
        )  # fmt: skip


def _left_out(suite: Suite, missing: Mapping[str, str]) -> list[Cell]:
    """Cells of sets that are not there."""
    return [
        Cell(
            dataset=dataset,
            method=name,
            candidate={},
            epsilon=epsilon,
            repetition=repetition,
            score=math.nan,
            seconds=math.nan,
            process_peak_mib=math.nan,
            reason=reason[:REASON_CHARACTERS],
        )
        for dataset, reason in missing.items()
        for name, method in suite.methods.items()
        for epsilon in _epsilons(suite, method)
        for repetition in range(suite.repetitions)
    ]
