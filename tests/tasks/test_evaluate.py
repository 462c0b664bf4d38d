"""What the simulation scores on held-back private rows, and that nothing of it is a release."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from chain import Chain, rides, rides_config, scores_of

from ldptree.baselines import select_baselines
from ldptree.errors import DataError
from storage import tables
from storage.store import Store
from tasks.artifacts import read_model, read_protocol
from tasks.evaluate import duplicates, read_rows
from tasks.scoring.held_back import read_drawn


@pytest.fixture(scope="module")
def scored(trips):
    return scores_of(trips)


def test_ours_stands_beside_every_rival_and_baseline(scored):
    assert scored["scores"].keys() == {"ours", "public_only", "no_noise", *select_baselines(2)}
    assert {"majority", "public_tree", "public_forest", "non_private"} <= scored["scores"].keys()
    for key, found in scored["scores"].items():
        assert {"accuracy", "balanced_accuracy", "auc", "log_loss", "confusion", "interval"} <= found.keys()
        assert found["interval"][0] <= found["accuracy"] <= found["interval"][1]
        assert np.sum(found["confusion"]) == found["n"] - found["n_outside"]
        assert ("lead" in found) == (key != "ours")


def test_our_score_is_that_of_the_released_model_on_the_held_back_rows(trips, scored):
    model, protocol = (
        read_model(trips.store, trips.model["model"]),
        read_protocol(trips.store, trips.protocol),
    )
    rows = read_rows(trips.store.files(trips.held["test"]), protocol)
    assert scored["scores"]["ours"]["accuracy"] == pytest.approx(
        np.mean(model.predict(rows.raw) == rows.labels)
    )
    assert scored["n_test"] == scored["n_test_all"] == len(rows.labels) == trips.held.facts["n_test"]


def test_a_lead_is_the_difference_of_the_two_accuracies(scored):
    ours = scored["scores"]["ours"]["accuracy"]
    for key, found in scored["scores"].items():
        if key != "ours":
            assert sum(found["lead"]) / 2 == pytest.approx(ours - found["accuracy"])


def test_the_spread_is_over_as_many_redraws_as_asked_and_they_differ(trips, scored):
    assert len(scored["redraws"]) == trips.config.evaluation.redraws == 5
    assert len(set(scored["redraws"])) > 1
    assert all(0.4 < accuracy < 0.75 for accuracy in scored["redraws"])


def test_the_same_question_is_answered_again_at_other_epsilons_with_less_noise_for_more(trips, scored):
    drawn = {one["epsilon"]: one["redraws"] for one in scored["epsilons"]}
    assert [*drawn] == [0.25, 0.5, 1.0, 2.0, 4.0, 8.0]
    own = drawn[trips.config.privacy.epsilon]
    assert own == scored["redraws"]
    assert {len(draws) for draws in drawn.values()} == {5}
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
    """rides(...) and changes of the configuration to a scored run."""

    def run(name="work", path=None, n=900, **changes):
        path = path or rides(tmp_path / "a.csv", n, 1)
        return Chain(Store(tmp_path / name), rides_config(path, **changes))

    return run


def test_a_seeded_simulation_scores_the_same_in_any_work_folder(run):
    one, two = scores_of(run("one", n=300)), scores_of(run("two", n=300))
    assert one == two


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


def test_with_a_large_budget_the_noise_costs_nothing(run):
    scores = scores_of(run(privacy={"epsilon": 30.0}))
    ours, exact = (scores["scores"][key] for key in ("ours", "no_noise"))
    assert ours["confusion"] == exact["confusion"]
    assert set(scores["redraws"]) == {ours["accuracy"]}


def test_caps_are_kept_and_said(run):
    caps = {"test_rows": 40, "private_rows": 50, "public_rows": 60, "redraws": 0}
    chain = run(evaluation=caps)
    scores = scores_of(chain)
    assert (scores["n_test"], scores["n_test_all"]) == (40, chain.held.facts["n_test"])
    assert scores["n_test_all"] > 40
    assert scores["redraws"] == []
    assert all(found["n"] == 40 for found in scores["scores"].values())


def test_a_label_that_is_not_declared_counts_as_missed(run, tmp_path):
    rng = np.random.default_rng(0)
    private = np.arange(900) % 3 != 0
    paid = np.where(private & (rng.random(900) < 0.5), "favour", rng.choice(["cash", "card"], 900))
    chain = run(path=rides(tmp_path / "b.csv", 900, 1, paid=paid))
    scores = scores_of(chain)["scores"]["ours"]
    test = tables.read(chain.store.files(chain.held["test"])).column("paid").to_pylist()
    assert scores["n_outside"] == test.count("favour") > 0
    assert scores["accuracy"] == pytest.approx(np.trace(scores["confusion"]) / scores["n"])
    assert scores["accuracy"] < 0.75


def test_held_back_rows_without_any_declared_label_cannot_be_scored(run, tmp_path):
    private = np.arange(300) % 3 != 0
    paid = np.where(private, "favour", np.where(np.arange(300) % 2, "cash", "card"))
    chain = run(path=rides(tmp_path / "b.csv", 300, 1, paid=paid))
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
