"""The picture: which step after which, from raw files to one page. A table of contents: what a step does is in `tasks`,
what it is
called with in `calls`.
"""

from __future__ import annotations

from typing import Any

from prefect import flow
from prefect.task_runners import ThreadPoolTaskRunner

from flows import calls
from flows.campaign import Terms
from flows.collect import ask_again, collect
from flows.finish import finish, stop_where_failed
from flows.naming import run_name, tag_run
from flows.provenance import in_use
from schemas.config import RunConfig
from storage.store import Store
from tasks.checkpoint import Aside, kept_in_zone
from tasks.evaluate import evaluate
from tasks.ingest import ingest
from tasks.partition import partition
from tasks.prune import prune
from tasks.report import report
from tasks.scale import scale
from tasks.source import made, public_files, raw_files, suite_file
from tasks.split import split
from tasks.timeline import Timeline
from tasks.validate import validate

RUNNER: Any = ThreadPoolTaskRunner(max_workers=2)
"""Threads: numpy, numba, polars and duckdb release the GIL."""


@flow(name="train", flow_run_name=run_name, task_runner=RUNNER)
def train(config: RunConfig, work: str = "work", command: str = "") -> dict[str, Any]:
    """Learn a tree from private rows that nobody sees.

    Args:
        config: the run's configuration.
        work: the work folder.
        command: the command line that repeats the run, for its page.

    Returns:
        The run's summary, as `ldptree run --json` prints it.
    """
    tag_run(config)
    store, timeline = Store(work), Timeline()
    with kept_in_zone(store, "run", "curator"), in_use(store.root), timeline.listening():
        terms = Terms.of(store, config)
        raw = terms.in_order(raw_files(store, terms.dataset, config.seed))
        second = public_files(store, terms.dataset)
        terms = calls.settled(terms, raw, second)
        ingested = ingest(store, **calls.ingest(terms, raw, second))
        terms = terms.with_label_of(ingested)
        checked = validate(store, **calls.validate(terms, ingested, suite_file(store, terms.dataset)))
        stop_where_failed(store, terms.config, ingested, checked, timeline, command)
        held = split(store, **calls.split(terms, raw, ingested))
        scaled = scale(store, **calls.scale(terms, ingested))
        published = partition(store, **calls.partition(terms, held, scaled))
        protocol = terms.publish(raw, ingested, held, published)
        first = collect(store, terms, raw, held, published, protocol)
        last = ask_again(store, terms, raw, held, scaled, first)
        model = prune(store, **calls.prune(terms, last.protocol, last.totals, scaled, published, last.number))
        scores = (
            evaluate(
                store, **calls.evaluate(terms, last.protocol, model, scaled, held, published, last.number)
            )
            if config.evaluate
            else None
        )
        done: dict[str, Any] = {
            "ingested": ingested,
            "checked": checked,
            "held": held,
            "scaled": scaled,
            "published": published,
            "totals": last.totals,
            "model": model,
            "scores": scores,
        }
        page = report(
            store,
            **calls.report(terms, last.asked, last.spent, **done),
            timeline=Aside(timeline),
            command=Aside(command),
        )
        found = (made(store, raw), *done.values(), *last.records, page)
        records = [record for record in found if record is not None]
        return finish(store, terms.config, records, timeline, last.protocol)
