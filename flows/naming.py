"""Name a run in Prefect, with its tags, the command that goes on with it and its work folder."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ldptree.errors import ConfigError
from ldptree.plain_text import put_on_one_line
from schemas.config import RunConfig, load


def run_name() -> str:
    """Return the name of the current flow run, in the UI and in the work folder; without a configuration, that it is refused."""
    from prefect.runtime import flow_run

    config: Any = flow_run.parameters["config"]
    if isinstance(config, str):
        try:
            config = load(config, list(flow_run.parameters.get("overrides") or ()))
        except ConfigError:  # told by the run itself
            return f"refused-{datetime.now(UTC):%Y%m%d-%H%M%S-%f}"
    if not isinstance(config, RunConfig):
        config = RunConfig.model_validate(config)
    return name_run(config)


def name_run(config: RunConfig) -> str:
    """Name, epsilon, when."""
    return f"{config.name}-eps{config.privacy.epsilon:g}-{datetime.now(UTC):%Y%m%d-%H%M%S-%f}"


def command_again(command: str) -> str:
    """Return the command that goes on with the current run. A deployment's run is retried in place, under its id."""
    from prefect.runtime import deployment, flow_run

    return f"prefect flow-run retry {flow_run.id}" if deployment.id else command


def work_folder(named: str) -> str:
    """Return the work folder of the current run, in a deployment as on the command line. One that a deployment pins is said where
    LDPTREE_WORK names another.
    """
    from prefect import get_run_logger
    from prefect.runtime import deployment

    here = os.environ.get("LDPTREE_WORK", "")
    if named and here and deployment.id and Path(named).absolute() != Path(here).absolute():
        get_run_logger().warning(
            "the deployment pins the work folder %s: the ledger in LDPTREE_WORK, %s, is not read",
            *map(put_on_one_line, (named, here)),
        )
    return named or here or "work"


def tags_of(config: RunConfig) -> list[str]:
    """Return the tags by which a run is found."""
    words = [f"dataset={config.dataset.name}", config.model.estimator, f"eps={config.privacy.epsilon:g}"]
    words.append("seeded" if config.is_seeded else "system-randomness")
    if config.campaign.name is not None:
        words.append(f"campaign={config.campaign.name}")
    return [put_on_one_line(word) for word in words]


def tag_run(config: RunConfig) -> None:
    """Tag the current run; not its tasks, as `prefect.tags` would: for each tag of a task Prefect asks for a slot."""
    from prefect import get_client
    from prefect.runtime import flow_run

    with get_client(sync_client=True) as client:
        client.update_flow_run(flow_run.id, tags=[*flow_run.tags, *tags_of(config)])
