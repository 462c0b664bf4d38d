"""Import what a run will need while it waits for its server, for steps that the plan says will be computed. Saves time
and changes nothing.
"""

from __future__ import annotations

import contextlib
import importlib
import threading
from pathlib import Path

from schemas.config import RunConfig

HEAVY = {
    "validate": ("great_expectations", "great_expectations.expectations", "pandas"),
    "partition": ("sklearn.tree",),
    "evaluate": ("sklearn.ensemble", "sklearn.tree"),
}


def warm_up(config: RunConfig, work: Path) -> threading.Thread:
    """Begin to import in a thread of its own what the steps to be computed will ask for."""

    def load() -> None:
        # Whatever is wrong here is met again, and told, where it matters.
        with contextlib.suppress(Exception):
            from flows.run_plan.look import plan_of

            wanted = {line["name"] for line in plan_of(config, work) if line["state"] != "cached"}
            for module in (module for step, modules in HEAVY.items() if step in wanted for module in modules):
                importlib.import_module(module)

    thread = threading.Thread(target=load, name="warm-up", daemon=True)
    thread.start()
    return thread
