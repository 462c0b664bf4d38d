"""Which pipeline a configuration's family has."""

from __future__ import annotations

from typing import Any

from flows.execute import Execute
from flows.pipeline import Pipeline
from flows.round_pipeline import RoundPipeline
from flows.tree_pipeline import TreePipeline
from schemas.config import RunConfig
from storage.store import Store


def pipeline_of(store: Store, config: RunConfig, execute: Execute, **more: Any) -> Pipeline:
    """The pipeline of a run. `more`: fields of `Pipeline`."""
    kind = RoundPipeline if config.model.in_rounds else TreePipeline
    return kind(store=store, config=config, execute=execute, **more)
