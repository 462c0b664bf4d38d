"""End a run by writing its folder, its summary and the warehouse, and show the result or why it stopped."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any

from flows.budget import PAGE_IS_NOT_PRIVATE
from flows.pipeline import Pipeline
from flows.work_folder.index import find_weeks, list_run, list_started
from ldptree.errors import LdptreeError
from schemas.config import RunConfig
from schemas.manifest import Record
from schemas.row_format import RowFormat
from storage.formats import stamped
from storage.reports.published import FOLDER
from storage.store import Store
from storage.warehouse import all_runs, build
from tasks.data.validate import check_passed, failures
from tasks.making import peak_rss_mb, tell_time
from tasks.page.captions import say
from tasks.page.cards import Card
from tasks.page.data import Run
from tasks.page.privacy import say_protection, say_question
from tasks.page.render import render, summarize, write_actors
from tasks.page.summary import say_details, say_finding
from tasks.progress import Timeline
from tasks.report import ASKING, describe_stop, name_broken, read_checks, read_facts, say_left_out

PAGE = "page.html"


def finish(run: Pipeline) -> dict[str, Any]:
    """Write the run's folder and show it; returns the summary that `ldptree run --json` prints."""
    if run.conversation.is_unanswered:
        return _finish_unanswered(run)
    store, config = run.store, run.terms.config
    by_step = last_of_each_step(run.records)
    facts = read_facts(store, run.page["page"])
    folder = run_folder(run)
    page, model = f"{folder}/{PAGE}", f"{folder}/model.json"
    card = _card(run, facts)
    store.objects.put(page, render(facts, find_weeks(store, run.name, card)).encode())
    for file, content in write_actors(facts.privacy, facts.name, is_scored=facts.scores is not None).items():
        store.objects.put(f"{folder}/{file}", content)
    store.objects.put(model, store.file(run.model["model"], "model.json").read_bytes())
    if facts.privacy.features:
        _write_questions(run, folder)
        of_family = _of_rounds(run, facts)
    else:
        question = run.conversation.last.question()
        store.objects.put(f"{folder}/protocol.json", store.file(question, "protocol.json").read_bytes())
        earlier = run.conversation.whole[:-1] if run.respondents.asks_parts else []
        tables = _tables(config, facts, by_step) | {
            "earlier": [turn.stored.answers.path for turn in earlier],
        }
        write_json(store, f"{folder}/tables.json", tables)
        of_family = _of_one_tree(config, facts, by_step)
    write_records(store, folder, run.records)
    summary = {
        "name": facts.name,
        "estimator": config.model.estimator,
        "epsilon": facts.privacy.epsilon,
        "epsilon_exact": facts.privacy.epsilon_exact,
        "epsilon_spent": facts.privacy.epsilon_spent,
        "trial": config.is_trial,
        "why_chosen": run.terms.why_chosen,
        **of_family,
        "steps": steps_of(run.timeline, by_step),
        "protection": f"{say_protection(facts)} {PAGE_IS_NOT_PRIVATE if config.is_scored_release else ''}".strip(),
        "finding": say_finding(facts),
        "details": say_details(facts),
        "warnings": list(facts.warnings),
        "seconds": round(run.timeline.elapsed, 2),
        "peak_rss_mb": peak_rss_mb(),
        "run": run.name,
        "page": store.objects.where(page),
        "model": store.objects.where(model),
        "row_format": _row_format(run).model_dump(mode="json"),
    }
    write_json(store, f"{folder}/run.json", summary)
    list_run(store, run.name, card)
    if not facts.privacy.features:
        build(store, all_runs(store))
    run.executor.show(summarize_run(facts, summary), facts.title, summary)
    return summary


def _finish_unanswered(run: Pipeline) -> dict[str, Any]:
    """Write the folder of a run that has no model yet: its page, and what is asked. Returns its summary."""
    turn, place, left = run.conversation.rounds[-1], run.config.collection, run.respondents.facts
    where = f"Devices send them to {place.inbox}." if place.inbox else f"Their totals come as {place.totals}."
    n, until = left["n_private"], place.close
    came = "No report has come yet."
    if turn.number > 1:
        came = f"The first question is closed, with {n:,} reports, and none has come to the second yet."
    elif n:
        end = f"with {until:,}" if isinstance(until, int) else f"on {until}"
        came = f"{n:,} reports have come to the first question. It closes {end}, and then the second is published."
    message = " ".join([came, where, *say_left_out(left)])
    published = run.store.objects.where(f"{FOLDER}/{run.config.name}")
    expected = (
        f"{run.respondents.n_asked:,} people are expected, at epsilon {run.config.privacy.epsilon:g} each. "
    )
    facts = _describe_stop(run, f"{message} {expected}The question lies in {published}.", is_waiting=True)
    page = _write_stop(run, facts)
    question = run.store.file(turn.question(), "protocol.json").read_bytes()
    run.store.objects.put(f"{run_folder(run)}/protocol.json", question)
    summary = {
        "run": run.name,
        "name": facts.name,
        "epsilon": facts.privacy.epsilon,
        "n_private": n,
        "metrics": {},
        "finding": message,
        "published": published,
        "page": str(page),
        "steps": steps_of(run.timeline, last_of_each_step(run.records)),
        "seconds": round(run.timeline.elapsed, 2),
    }
    run.executor.show(summarize(facts), facts.title, summary)
    return summary


def say_estimator(summary: Mapping[str, Any]) -> str:
    """Say which estimator learned, and why that one."""
    return f"Estimator: {summary['estimator']}, as {summary['why_chosen'] or 'configured'}."


def summarize_run(facts: Run, summary: Mapping[str, Any]) -> str:
    """The page's summary as Markdown, with all that is said of whom the run protects, and last which estimator learned."""
    text = summarize(facts).replace(say_protection(facts), summary["protection"], 1)
    return f"{text}\n{say_estimator(summary)}\n"


def _row_format(run: Pipeline) -> RowFormat:
    """Return the format in which rows to predict are read."""
    facts = run.ingested.facts
    return RowFormat.of(
        run.model.facts["digest"],
        run.terms.dataset,
        facts["features"],
        facts["columns"],
        facts["derived_from"],
    )


def stop_where_failed(run: Pipeline) -> None:
    """Raises DataError naming every expectation that failed, after its page is written; a `warn` one does not stop."""
    failed = failures(run.store, run.checked["checks"])
    if not failed:
        return
    facts = _describe_stop(run, name_broken(read_checks(run.store, run.checked["checks"])))
    page = _write_stop(run, facts)
    run.executor.show(summarize(facts), facts.title)
    check_passed(failed, page, run.store.zone("holders") / "faults")


@contextmanager
def page_of_failure(run: Pipeline) -> Iterator[None]:
    """List a run as begun; write a page that says why it stopped, and list that, or that it was broken off; the error goes on as
    it is.
    """
    with suppress(Exception):  # the run itself tells what is wrong with its folder
        list_started(run.store, run.name, _started(run))
    try:
        yield
    except LdptreeError as error:
        page = None
        with suppress(Exception):  # a full disk, say: why the run stopped is what has to be said
            if run.store.objects.size(f"{run_folder(run)}/{PAGE}") is None:
                _write_stop(run, _describe_stop(run, str(error)))
            page = run.store.objects.path(f"{run_folder(run)}/{PAGE}")
        with suppress(Exception):
            run.executor.stop(str(error), page, run.command, has_started=bool(run.timeline.steps()))
        raise
    except BaseException:
        message = _say_broken_off(run)
        card = replace(_started(run), headline=message)
        with suppress(Exception):
            list_started(run.store, run.name, card if run.may_have_asked else replace(card, epsilon=0.0))
        with suppress(Exception):
            run.executor.stop(message, None, run.command, has_started=True)
        raise


def _started(run: Pipeline) -> Card:
    """The line of a run as it began."""
    return Card.of_started(run.config, run.command, tell_time(run.timeline.began_at))


def _card(run: Pipeline, facts: Run) -> Card:
    """The line of a run that ended."""
    asking = run.timeline.step(ASKING)
    return Card.of(facts, _started(run), has_asked=asking is not None and asking.state != "cached")


def _say_broken_off(run: Pipeline) -> str:
    """Say where a run was broken off, and whether anybody may have been asked."""
    steps = run.timeline.steps()
    where = f"at the step “{steps[-1].name}”" if steps else "as it began"
    return say("broken off asking" if run.may_have_asked else "broken off", where=where).text


def _describe_stop(run: Pipeline, message: str, *, is_waiting: bool = False) -> Run:
    made = vars(run)  # only what was made: nothing is computed for the page of a failure
    return describe_stop(
        run.config,
        run.timeline,
        run.command,
        message,
        is_waiting=is_waiting,
        store=run.store,
        ingested=made.get("ingested"),
        checked=made.get("checked"),
    )


def _write_stop(run: Pipeline, facts: Run) -> Path:
    """The page of a run that stopped, its records and its line in the list of all runs; returns the page."""
    folder = run_folder(run)
    run.store.objects.put(f"{folder}/{PAGE}", render(facts).encode())
    write_records(run.store, folder, run.records)
    list_run(run.store, run.name, _card(run, facts))
    return run.store.objects.path(f"{folder}/{PAGE}")


def _of_one_tree(config: RunConfig, facts: Run, by_step: Mapping[str, Record]) -> dict[str, Any]:
    """Return the summary's part of a run whose reports are added up in the cells of one tree."""
    return {
        "largest_spend": facts.privacy.largest_spend,
        "mechanism": facts.privacy.mechanism,
        "form": facts.privacy.form,
        "seeded": facts.privacy.seeded,
        "n_private": facts.n_private,
        "n_new": facts.n_new,
        "n_public": facts.n_public,
        "n_test": facts.n_test,
        "n_features": by_step["scale"].facts["n_features"],
        "columns_left_out": facts.columns_left_out,
        "cells": facts.n_cells,
        "depth": facts.depth,
        **_of_its_estimator(config, facts),
        "metrics": facts.scores.ours.metrics if facts.scores else {},
        "baselines": _baselines(facts),
    }


def _of_rounds(run: Pipeline, facts: Run) -> dict[str, Any]:
    """Return the summary's part of a run in rounds."""
    shown = last_of_each_step(run.records)["show"]
    return {
        "largest_spend": run.conversation.spent.largest,
        "mechanism": facts.privacy.mechanism,
        "form": "reports",
        "seeded": run.terms.config.is_seeded,
        "n_private": shown.facts["n_private"],
        "n_public": run.scaled.facts["n_public"],
        "n_test": facts.n_test,
        "n_features": shown.facts["n_features"],
        "columns_left_out": facts.columns_left_out,
        "rounds": [
            {
                "about": say_question(asked, facts.target),
                "epsilon": asked.question.epsilon,
                "n_asked": asked.n_asked,
            }
            for asked in facts.privacy.asked
        ],
        "metrics": facts.scores.ours.metrics if facts.scores else {},
        "baselines": _baselines(facts),
    }


def _write_questions(run: Pipeline, folder: str) -> None:
    files = [run.store.file(turn.question(), "question.json") for turn in run.conversation.rounds]
    questions = [json.loads(file.read_bytes()) for file in files]
    run.store.objects.put(f"{folder}/questions.json", json.dumps(questions, indent=1).encode())


def last_of_each_step(records: Sequence[Record]) -> dict[str, Record]:
    """The last record of each step by its name; that nothing was left to ask is none of a question."""
    return {record.step: record for record in records if record.facts.get("is_left", True)}


def _of_its_estimator(config: RunConfig, facts: Run) -> dict[str, Any]:
    """Return what private evidence was weighed with; of a correction what was corrected."""
    if not config.model.settings.CORRECTS:
        return config.summarize_family()
    return config.summarize_family() | {
        "base_trees": int(facts.model.of_kind("public model")[0].figures["trees"]),
    }


def steps_of(timeline: Timeline, by_step: Mapping[str, Record]) -> list[dict[str, Any]]:
    """Describe every step of the run, with whether it was computed, how long it took, and what it left."""
    return [
        {
            "name": step.name,
            "state": step.state,
            "seconds": round(step.seconds, 2),
            "artifact": next((part.path for part in by_step[step.name].parts.values()), ""),
        }
        for step in timeline.steps()
        if step.name in by_step
    ]


def _tables(config: RunConfig, facts: Run, by_step: dict[str, Record]) -> dict[str, Any]:
    """Return the tables that the warehouse takes of this run."""
    return {
        "totals": by_step["aggregate"]["totals"].path,
        "classes": list(facts.levels),
        "outputs": list(facts.model.outputs)
        if facts.model.figure == "correction" and len(facts.model.outputs) > 1
        else [],
        "nodes": by_step["report"].facts["nodes"],
        "facts": {
            "name": config.name,
            "protocol": facts.privacy.asked[-1].digest,
            "mechanism": facts.privacy.mechanism,
            "k": facts.privacy.k,
            "epsilon": facts.privacy.epsilon,
            "epsilon_exact": facts.privacy.epsilon_exact,
            "n_private": facts.n_private,
            "n_public": facts.n_public,
            "cells": facts.n_cells,
            "depth": facts.depth,
        },
    }


def _baselines(facts: Run) -> dict[str, dict[str, float]]:
    """Figures of every model but ours."""
    models = facts.scores.models if facts.scores else ()
    return {score.key: score.metrics for score in models if score.key != "ours"}


def write_json(store: Store, name: str, value: Mapping[str, Any]) -> None:
    """Write a JSON object with the version of the format that its file is named for, for later runs to read."""
    store.objects.put(name, stamped(PurePosixPath(name).stem, value))


def write_records(store: Store, folder: str, records: Sequence[Record]) -> None:
    """Write the list of records that a run refers to, which `gc` keeps as long as the run."""
    names = sorted({f"{r.home}/{r.step}/{r.key}.json" for r in records})
    write_json(store, f"{folder}/records.json", {"records": names})


def run_folder(run: Pipeline) -> str:
    """The folder of this run."""
    return f"runs/{run.name}"
