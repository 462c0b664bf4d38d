"""The picture where some features are public: which step after which, from raw files to one page. A table of contents, as
`train_flow`.
"""

from __future__ import annotations

from typing import Any

from prefect import flow

from flows import calls, round_calls
from flows.campaign import Terms
from flows.conversation import converse
from flows.finish import stop_where_failed
from flows.finish_rounds import finish_rounds
from flows.naming import run_name, tag_run
from flows.provenance import in_use
from flows.train_flow import RUNNER
from schemas.config import RunConfig
from storage.store import Store
from tasks.checkpoint import Aside, kept_in_zone
from tasks.evaluate_shown import evaluate_shown
from tasks.ingest import ingest
from tasks.learn import learn
from tasks.report_shown import report_shown
from tasks.scale import scale
from tasks.show import show
from tasks.source import made, public_files, raw_files, suite_file
from tasks.split import split
from tasks.timeline import Timeline
from tasks.validate import validate


@flow(name="train in rounds", flow_run_name=run_name, task_runner=RUNNER)
def train_in_rounds(config: RunConfig, work: str = "work", command: str = "") -> dict[str, Any]:
    """Learn from labels and features that some people protect, and features that everybody may see.

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
        ingested = ingest(store, **calls.ingest(terms, raw, second))
        checked = validate(store, **calls.validate(terms, ingested, suite_file(store, terms.dataset)))
        stop_where_failed(store, config, ingested, checked, timeline, command)
        held = split(store, **calls.split(terms, raw, ingested))
        scaled = scale(store, **calls.scale(terms, ingested))
        shown = show(store, **round_calls.show(terms, held, scaled))
        said = converse(store, terms, raw, held, scaled, shown)
        model = learn(store, **round_calls.learn(terms, scaled, shown, said.asked, said.transcripts))
        scores = (
            evaluate_shown(store, **round_calls.evaluate(terms, scaled, held, model))
            if config.evaluate
            else None
        )
        steps = [ingested, checked, held, scaled, shown, *said.records, model, scores, made(store, raw)]
        records = [record for record in steps if record is not None]
        page = report_shown(
            store,
            **round_calls.report(terms, said.asked, said.spent, records),
            timeline=Aside(timeline),
            command=Aside(command),
        )
        return finish_rounds(store, config, records, page, said, timeline)
