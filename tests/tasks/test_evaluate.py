"""What the simulation scores on held-back private rows, and that nothing of it is a release."""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa
import pytest
from chain import Chain, rides, rides_config, scores_of

from ldptree.errors import DataError
from storage import tables
from storage.store import Store
from tasks.evaluate import duplicates
from tasks.report import read_facts
from tasks.scoring.held_back import read_drawn


@pytest.fixture(scope="module")
def scored(trips):
    return scores_of(trips)


def test_redraws_are_of_the_same_question_and_at_other_epsilons_have_less_noise_for_more(trips, scored):
    drawn = {one["epsilon"]: one["redraws"] for one in scored["epsilons"]}
    assert [*drawn] == [0.25, 0.5, 1.0, 2.0, 4.0, 8.0]
    own = drawn[trips.config.privacy.epsilon]
    assert own == scored["redraws"]
    assert len(set(own)) > 1
    assert all(0.4 < accuracy < 0.75 for accuracy in own)
    assert {len(draws) for draws in drawn.values()} == {trips.config.evaluation.redraws} == {5}
    far = scored["scores"]["no_noise"]["accuracy"]
    off = {epsilon: np.mean(np.abs(np.array(draws) - far)) for epsilon, draws in drawn.items()}
    assert off[8.0] < off[0.25]


def test_scores_stay_in_the_simulations_zone_and_no_private_model_is_kept(trips, scored):
    assert scored
    assert trips.scores["scores"].zone == "simulation"
    files = [p.name for p in trips.store.zone("simulation").rglob("*") if p.is_file()]
    assert sorted(files) == sorted(["scores.json", f"{trips.scores.key}.json"])


@pytest.fixture
def run(tmp_path):
    """A run on rides of these columns."""

    def run(n=900, **columns):
        return Chain(Store(tmp_path / "work"), rides_config(rides(tmp_path / "a.csv", n, 1, **columns)))

    return run


def test_rows_that_are_drawn_are_read_as_if_all_were_in_memory(tmp_path):
    whole = pa.table({"a": np.arange(1000)})
    for number in range(3):
        tables.write(tmp_path / f"{number}.parquet", whole.slice(number * 400, 400))
    paths = [tmp_path / f"{number}.parquet" for number in range(3)]
    drawn = np.sort(np.random.default_rng(5).choice(1000, 90, replace=False))
    assert read_drawn(paths, ["a"], at_most=90, seed=5).column("a").to_pylist() == drawn.tolist()
    assert read_drawn(paths, ["a"], at_most=1000, seed=5).column("a").to_pylist() == [*range(1000)]


def test_scoring_changes_nothing_that_is_released(run):
    chain = run(n=300)
    assert chain.model
    released = {p: p.read_bytes() for p in chain.store.zone("curator").rglob("*") if p.is_file()}
    assert chain.scores
    assert {p: p.read_bytes() for p in chain.store.zone("curator").rglob("*") if p.is_file()} == released


def test_a_label_that_is_not_declared_counts_as_missed(run):
    rng = np.random.default_rng(0)
    private = np.arange(900) % 3 != 0
    paid = np.where(private & (rng.random(900) < 0.5), "favour", rng.choice(["cash", "card"], 900))
    chain = run(paid=paid)
    scores = scores_of(chain)["scores"]["ours"]
    test = tables.read(chain.store.files(chain.held["test"])).column("paid").to_pylist()
    assert scores["n_outside"] == test.count("favour") > 0
    assert scores["accuracy"] == pytest.approx(np.trace(scores["confusion"]) / scores["n"])
    assert scores["accuracy"] < 0.75
    share = f"{scores['n_outside'] / scores['n']:.0%}".replace("%", "\u202f%")
    (warning,) = read_facts(chain.store, chain.page["page"]).warnings
    assert f"Of the rows kept aside {share} have a label that" in warning


def test_without_scores_it_is_estimated_how_many_reports_count_nothing(tmp_path):
    """Within 4 standard deviations of those there are."""
    rng = np.random.default_rng(0)
    private = np.arange(3000) % 3 != 0
    paid = np.where(private & (rng.random(3000) < 0.5), "favour", rng.choice(["cash", "card"], 3000))
    for name, labels, is_told in (("some", paid, True), ("none", None, False)):
        columns = {} if labels is None else {"paid": labels}
        path = rides(tmp_path / f"{name}.csv", 3000, 1, **columns)
        chain = Chain(Store(tmp_path / name), rides_config(path, evaluate=False))
        warnings = [
            text
            for text in read_facts(chain.store, chain.page["page"]).warnings
            if text.startswith("Some reports count nothing.")
        ]
        assert len(warnings) == is_told
        for text in warnings:
            share, two_sd = (int(number) for number in re.findall(r"(\d+)\u202f%", text))
            held = tables.read(chain.store.files(chain.held["train"])).column("paid").to_pylist()
            true = 100 * np.mean([label not in ("cash", "card") for label in held])
            assert abs(share - true) <= 2 * two_sd + 1


def test_rows_without_a_label_are_not_scored(run):
    rng = np.random.default_rng(0)
    private = np.arange(900) % 3 != 0
    paid = np.where(private & (rng.random(900) < 0.5), "", rng.choice(["cash", "card"], 900))
    chain = run(paid=paid)
    test = tables.read(chain.store.files(chain.held["test"])).column("paid")
    scores = scores_of(chain)
    assert 0 < test.null_count < len(test)
    assert scores["n_test"] == scores["scores"]["ours"]["n"] == len(test) - test.null_count
    assert scores["scores"]["ours"]["n_outside"] == 0


def test_held_back_rows_without_any_declared_label_cannot_be_scored(run):
    private = np.arange(300) % 3 != 0
    chain = run(n=300, paid=np.where(private, "favour", np.where(np.arange(300) % 2, "cash", "card")))
    with pytest.raises(DataError, match="no held-back row has a declared label"):
        assert chain.scores
    assert not [p for p in chain.store.zone("simulation").rglob("*") if p.is_file()]


def test_copies_of_test_rows_among_the_training_rows_are_counted(tmp_path):
    def write(name, rows):
        a, b = zip(*rows, strict=True)
        tables.write(tmp_path / name, pa.table({"a": pa.array(a, pa.float64()), "b": list(b)}))
        return tmp_path / name

    one = write("one", [(1.0, "x"), (2.0, "y"), (None, "z")])
    two = write("two", [(1.0, "x"), (5.0, "x")])
    test = write("test", [(1.0, "x"), (1.0, "x"), (2.0, "x"), (None, "z"), (5.0, "y")])
    assert duplicates([one, two], [test]) == 3
    assert duplicates([two], [test]) == 2
    assert duplicates([], [test]) == 0
    assert duplicates([one], []) == 0
