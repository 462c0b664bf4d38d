"""What runs again and what is found: after nothing, after damage to artifacts, after a parameter changed."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from whole_runs import SMALL, Api, learned, run, steps

from schemas.config import load
from storage.store import Store

pytestmark = [pytest.mark.server, pytest.mark.slow]

# A run finds what it needs of a step in one artifact of each; of read and cut it is the holders'.
PART = {
    "source": "raw",
    "types": "pieces",
    "read": "private",
    "ingest": "sources",
    "count": "counts",
    "validate": "checks",
    "split": "answers",
    "cut": "train",
    "scale": "encoding",
    "partition": "question",
    "perturb": "reports",
    "add": "sums",
    "aggregate": "totals",
    "prune": "model",
    "evaluate": "scores",
    "report": "page",
}
STEPS = list(PART)
WITH_FILES = [step for step in STEPS if step != "types"]
"""A small file is not cut, so nothing is written of where."""
BELOW = {
    "model.lam=0.5": STEPS[STEPS.index("prune") :],
    "privacy.epsilon=1": STEPS[STEPS.index("partition") :],
}


@dataclass
class Runs:
    """A work folder, its first run and the server that saw it."""

    api: Api
    work: Path
    first: dict[str, Any]

    def again(self, *assignments: str) -> dict[str, Any]:
        """The same run in the same work folder, or one with other parameters."""
        return run(load("quickstart", [*SMALL, *assignments]), self.work)

    def artifact(self, step: str) -> Path:
        """A file of the artifact of a step of the first run."""
        store = Store(self.work)
        own = {record.step: record for _, record in store.records()}
        return store.files(own[step][PART[step]])[0]

    def states(self, summary: dict[str, Any]) -> dict[str, str]:
        """What the server says of each step of a run."""
        return self.api.states(summary["run"], n_tasks=len(STEPS))


@pytest.fixture(scope="module")
def runs(api, connected, tmp_path_factory):
    """The quickstart, small, run once."""
    work = tmp_path_factory.mktemp("cached")
    return Runs(api, work, run(load("quickstart", list(SMALL)), work))


def test_a_first_run_computes_every_step(runs):
    assert steps(runs.first, "computed") == set(STEPS)
    assert runs.states(runs.first) == dict.fromkeys(STEPS, "Completed")


def test_a_second_run_finds_every_step_and_says_so(runs):
    second = runs.again()
    assert steps(second, "cached") == set(STEPS)
    assert runs.states(second) == dict.fromkeys(STEPS, "Cached")
    assert learned(runs.work, second) == learned(runs.work, runs.first)
    assert second["metrics"] == runs.first["metrics"]


@pytest.mark.parametrize("damaged", [WITH_FILES[0::2], WITH_FILES[1::2]], ids=["odd steps", "even steps"])
@pytest.mark.parametrize("damage", ["deleted", "flipped"])
def test_a_damaged_artifact_is_made_again_and_nothing_else_is(runs, damage, damaged):
    """Of every two neighbours one is damaged: what is below it is found, because what it is made from did not change."""
    for step in damaged:
        artifact = runs.artifact(step)
        if damage == "deleted" and step != "perturb":
            shutil.rmtree(artifact.parent)
        elif damage == "deleted":
            artifact.unlink()
        else:
            content = bytearray(artifact.read_bytes())
            content[len(content) // 2] ^= 1
            artifact.write_bytes(content)
    again = runs.again()
    assert steps(again, "computed") == set(damaged)
    assert runs.states(again) == {step: "Completed" if step in damaged else "Cached" for step in STEPS}
    assert learned(runs.work, again) == learned(runs.work, runs.first)


@pytest.mark.parametrize("assignment", BELOW)
def test_a_changed_parameter_runs_the_steps_below_it_and_no_other(runs, assignment):
    changed = runs.again(assignment)
    assert steps(changed, "computed") == set(BELOW[assignment])
    assert runs.states(changed) == {
        step: "Completed" if step in BELOW[assignment] else "Cached" for step in STEPS
    }
