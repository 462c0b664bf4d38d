"""LPCT's Algorithm 2 in the pipeline: where it terminates everybody is asked a second time, and both halves are one epsilon."""

from __future__ import annotations

import json

import pytest
from chain import rides
from whole_runs import reports, rides_toml, run, steps

from ldptree.protocol.protocol import Protocol
from schemas.config import load

pytestmark = [pytest.mark.server, pytest.mark.slow]


@pytest.fixture(scope="module")
def twice(api, tmp_path_factory):
    folder = tmp_path_factory.mktemp("twice")
    rides(folder / "rides.csv", 3000, 1)
    config = load(
        rides_toml(
            folder / "rides.toml",
            str(folder / "rides.csv"),
            model={"prune": "paper"},
            simulation={"noise_seed": 3},
            privacy={"epsilon": 4.0},
        )
    )
    with api.connected():
        return config, folder / "work", run(config, folder / "work")


def test_the_second_half_of_epsilon_is_spent_on_a_second_protocol(twice):
    _, work, summary = twice
    assert {step["name"] for step in summary["steps"]} >= {"partition", "aggregate", "prune"}
    assert (summary["epsilon"], summary["epsilon_spent"], summary["largest_spend"]) == (4.0, 4.0, 4.0)
    published = Protocol.from_json((work / "runs" / summary["run"] / "protocol.json").read_text())
    assert (published.rounds, published.epsilon) == ((2,), 2.0)
    model = json.loads((work / "runs" / summary["run"] / "model.json").read_text())
    assert (model["lam"], model["prune"], model["epsilon"]) == ("paper", "paper", 4.0)
    assert summary["lam"] == "paper"
    assert len({path.parent for path in (work / "curator" / "reports").rglob("*.parquet")}) == 2


def test_the_same_run_again_asks_nobody(twice):
    config, work, summary = twice
    before = reports(work)
    again = run(config, work)
    assert reports(work) == before
    assert steps(again, "computed") == set()
    assert again["epsilon_spent"] == summary["epsilon_spent"] == again["largest_spend"]
