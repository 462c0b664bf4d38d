"""What private rows answer to expectations stays with their holders, but where it is released, counted and under a cap."""

from __future__ import annotations

import json
import threading
from contextlib import suppress

import pytest
from chain import Chain, rides, rides_config

from flows.run_plan.look import plan_of
from ldptree.errors import BudgetError, ConfigError
from storage.ledger.released_checks import release_checks
from storage.objects.folder import FolderObjects
from storage.store import Store
from tasks.data.validate import failures

RELEASE = {"simulation": {"noise_seed": None}, "evaluate": False}
RANGE = {"ranges": {"miles": (0.0, 1.0)}}
"""An expectation that rides do not meet."""


def chain_of(tmp_path, name="work", **changes):
    path = tmp_path / "rides.csv"
    if not path.exists():
        rides(path, 300, 1, miles=[0.5 if row % 3 == 0 else 7.654321 for row in range(300)])
    changes = {"dataset": RANGE} | changes
    return Chain(Store(tmp_path / name), rides_config(path, **changes))


def outside_of_holders(chain):
    """Everything the run wrote outside of the holders' zone, as one text."""
    root = chain.store.root
    return b"".join(
        path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file() and root / "holders" not in path.parents and path.suffix in (".json", ".html")
    ).decode(errors="replace")


def test_a_release_tells_nothing_of_private_rows_and_is_not_stopped_by_what_they_violate(tmp_path):
    chain = chain_of(tmp_path, **RELEASE)
    assert failures(chain.store, chain.checked["checks"]) == []
    checks = json.loads(chain.store.file(chain.checked["checks"], "checks.json").read_text())
    assert {check["zone"] for check in checks} == {"public"}
    told = json.loads(chain.store.file(chain.checked["counts"], "violations.json").read_text())
    assert [one["violations"] for one in told if "miles" in one["expectation"]] == [200]
    assert '"zone": "private"' not in outside_of_holders(chain)


def test_what_leaves_is_the_same_whatever_private_rows_answer(tmp_path):
    """The record, whose facts Prefect keeps, and the checks: with a range that all rows meet, and with one that none does."""
    left = []
    for name, highest in (("met", 100.0), ("violated", 1.0)):
        chain = chain_of(tmp_path, name, dataset={"ranges": {"miles": (0.0, highest)}}, **RELEASE)
        checks = json.loads(chain.store.file(chain.checked["checks"], "checks.json").read_text())
        left.append((chain.checked.facts, [check["ok"] for check in checks]))
    assert left[0] == left[1]


def test_answers_of_runs_at_once_are_not_more_than_the_cap(tmp_path):
    objects, gate, told = FolderObjects(tmp_path / "work"), threading.Barrier(4), []

    def release(answer):
        gate.wait()
        with suppress(BudgetError):
            release_checks(objects, [answer], 2)
            told.append(answer)

    threads = [threading.Thread(target=release, args=(answer,)) for answer in ("a", "a", "b", "c")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({*told}) == 2
    release_checks(objects, told, 2)


def test_a_simulation_tells_as_before_and_stops(tmp_path):
    chain = chain_of(tmp_path)
    assert [check["zone"] for check in failures(chain.store, chain.checked["checks"])] == ["private"]


def released(cap, **dataset):
    return {
        "dataset": RANGE | {"release_checks": True} | dataset,
        "privacy": {"max_released_checks": cap},
    } | RELEASE


def test_released_answers_are_counted_over_runs_and_refused_beyond_the_cap(tmp_path):
    first = chain_of(tmp_path, **released(4))
    assert [check["zone"] for check in failures(first.store, first.checked["checks"])] == ["private"]
    again = chain_of(tmp_path, **released(4))
    assert again.checked == first.checked
    other = chain_of(tmp_path, **released(4, ranges={"miles": (0.0, 2.0)}))
    for refused in (lambda: other.checked, lambda: plan_of(other.config, other.store.root)):
        with pytest.raises(
            BudgetError, match=r"1 answers about private rows .* 4 have left before.*= 4\. .*raise it to 5"
        ):
            refused()
    assert '"zone": "private"' in outside_of_holders(first)
    assert chain_of(tmp_path, **released(5, ranges={"miles": (0.0, 2.0)})).checked


def test_a_release_without_a_stated_cap_is_refused(tmp_path):
    with pytest.raises(ConfigError, match=r"privacy\.max_released_checks"):
        chain_of(tmp_path, **released(0))


def test_the_page_of_a_release_says_what_left(tmp_path):
    kept = chain_of(tmp_path, "kept", **RELEASE)
    page = kept.store.file(kept.page["page"], "page.html").read_text()
    assert "Answers about private rows stay with the people" in page
    told = chain_of(tmp_path, "told", **released(9, ranges={"miles": (0.0, 100.0)}))
    page = told.store.file(told.page["page"], "page.html").read_text()
    assert "Answers about private rows stay" not in page
    assert "is published, exactly and without noise" in page
    assert "at most 9 over all runs of this work folder" in page
