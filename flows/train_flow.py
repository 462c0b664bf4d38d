"""Run every step of the pipeline as a Prefect task, from raw files to one page. The steps are listed in `pipeline`."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Any

from prefect import flow
from prefect.runtime import flow_run

from flows.executors import PrefectExecutor
from flows.finish import finish, page_of_failure, stop_where_failed
from flows.naming import command_again, run_name, tag_run, work_folder
from flows.pipeline import Pipeline
from flows.runner import runners_of
from flows.server.run_log import refusal_shown, warn_at_start
from flows.work_folder.provenance import in_use
from schemas.config import RunConfig, load
from storage.store import Store
from tasks.progress import Timeline
from tasks.step import faults_stay_in_zone


@flow(name="train", persist_result=False, flow_run_name=run_name)
def train(config: RunConfig, work: str = "", command: str = "") -> dict[str, Any]:
    """Learn from private rows that nobody sees.

    Args:
        config: The run's configuration.
        work: The work folder; without it LDPTREE_WORK where the run is made, or `work`.
        command: The command line that repeats the run, for its page.

    Returns:
        The run's summary, as `ldptree run --json` prints it.
    """
    return _train(config, work, command or command_again(""))


@flow(name="train", persist_result=False, flow_run_name=run_name)
def train_config(config: str, overrides: Sequence[str] = (), work: str = "") -> dict[str, Any]:
    """The same with a configuration by its name, as a schedule has it.

    Args:
        config: A TOML file where the run is made, or the name of a packaged one.
        overrides: Keys that are set for this run, as `KEY=VALUE`, which is TOML.
        work: The work folder; without it LDPTREE_WORK where the run is made, or `work`.

    Returns:
        The run's summary.

    Raises:
        ConfigError: there is no such configuration, or it is none.
    """
    words = ["ldptree", "run", config, *(word for override in overrides for word in ("--set", override))]
    command = shlex.join([*words, *(("--work", work) if work else ())])
    with refusal_shown(command):
        settings = load(config, list(overrides))
    return _train(settings, work, command)


def _train(config: RunConfig, work: str, command: str) -> dict[str, Any]:
    store, timeline = Store(work_folder(work)), Timeline()
    tag_run(config)
    with (
        faults_stay_in_zone(store, "run", "curator"),
        in_use(store.root),
        timeline.listening(),
        runners_of(config.run) as runners,
    ):
        warn_at_start(config, store)
        run = Pipeline(
            store=store,
            config=config,
            executor=PrefectExecutor(store, runners),
            timeline=timeline,
            command=command,
            name=flow_run.name,
        )
        with page_of_failure(run):
            stop_where_failed(run)
            run.walk()
            return finish(run)
