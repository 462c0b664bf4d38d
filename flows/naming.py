"""How a run is found again in Prefect: its name, its tags, what goes on with it, and the work folder that it is of."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from ldptree.errors import ConfigError
from schemas.config import RunConfig, load
from storage.store import Store

WORK_FOLDER = "ldptree.work"
"""The label of a flow run that says of which work folder it is: its parameter may be relative to where it ran."""


def run_name() -> str:
    """What the current flow run is called, in the UI and in the work folder; without a configuration, that it is refused."""
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
    """What goes on with the current run: of a deployment it is retried where it ran, under the same id."""
    from prefect.runtime import deployment, flow_run

    return f"prefect flow-run retry {flow_run.id}" if deployment.id else command


def tag_run(config: RunConfig, store: Store) -> None:
    """Tag and label the current run; not its tasks, as `prefect.tags` would: for each tag of a task Prefect asks for a slot."""
    from prefect import get_client
    from prefect.runtime import flow_run

    words = [f"dataset={config.dataset.name}", config.model.estimator, f"eps={config.privacy.epsilon:g}"]
    words.append("seeded" if config.is_seeded else "system-randomness")
    if config.campaign.name is not None:
        words.append(f"campaign={config.campaign.name}")
    with get_client(sync_client=True) as client:
        client.update_flow_run(flow_run.id, tags=[*flow_run.tags, *words])
        client.update_flow_run_labels(UUID(flow_run.id), {WORK_FOLDER: str(store.root.resolve())})
