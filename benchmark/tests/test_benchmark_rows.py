"""Every method of the benchmark gets the same rows: laws, splits, variants, and what is wrong with a set."""

import numpy as np
import pytest
from small_suite import suite_of

from flows.executors import InlineExecutor
from ldptree_benchmark.flow import find_rows
from ldptree_benchmark.laws import LAWS, draw_law
from ldptree_benchmark.rows import PRIVATE, PUBLIC, TEST, LabelledRows, find_leaks, read_rows, split_rows
from ldptree_benchmark.suite import Split
from storage.store import Store


@pytest.mark.parametrize("name", LAWS)
def test_a_law_is_the_same_draw_for_the_same_seed_and_has_all_parts(name):
    parameters = {
        "lpct-pair": {"gamma": 0.5, "n_public": 50}, "steps": {"noise": "t2"}, "sines": {"private": 2}
    }.get(name, {})  # fmt: skip
    one, same, other = (draw_law(name, parameters, seed) for seed in ([1, 2], [1, 2], [1, 3]))
    assert np.array_equal(one.X, same.X)
    assert np.array_equal(one.y, same.y)
    assert not np.array_equal(one.X, other.X)
    assert set(one.part) == ({PUBLIC, PRIVATE, TEST} if one.protects is None else {PRIVATE, TEST})
    assert one.X.shape[1] == len(one.features)


@pytest.mark.parametrize(
    "split", [Split(), Split(public=0.1), Split(public=0.1, most_public=10), Split(kept=0.25)]
)
def test_a_repetition_splits_rows_once_for_everybody(split):
    part = np.repeat(np.array([PUBLIC, PRIVATE], dtype=np.int8), [300, 700])
    rows = LabelledRows(
        X=np.arange(1000.0)[:, None],
        y=np.zeros(1000, dtype=np.int64),
        part=part,
        n_classes=2,
        features=("x",),
    )
    one, same, other = (split_rows(rows, "a set", 0, number, split) for number in (1, 1, 2))
    assert np.array_equal(one.part, same.part)
    assert not np.array_equal(one.X[one.part == TEST], other.X[other.part == TEST])
    n_public = {None: 300, 0.1: 100}[split.public] if split.most_public is None else split.most_public
    n_test = 140 if split.public is None else 200
    assert [(one.part == p).sum() for p in (PUBLIC, TEST)] == [n_public, n_test]
    n_private = 1000 - n_test - (300 if split.public is None else 100)
    assert (one.part == PRIVATE).sum() == split.kept * n_private
    if split.public is None:
        assert set(one.X[one.part == PUBLIC, 0]) == set(range(300))


def test_a_variant_is_a_set_once_more_with_its_own_split():
    suite = suite_of(
        laws={},
        split={"test": 0.5},
        datasets=["abalone"],
        measure="mse",
        variants={"few": {"dataset": "abalone", "most_public": 20, "differ": 0.7}},
        methods={"line": {"learner": "public_line"}},
    )
    assert suite.sets == ("abalone", "few")
    assert suite.split_of("abalone") == Split(test=0.5)
    assert suite.split_of("few") == Split(most_public=20, differ=0.7)
    assert suite.chosen(only=["few"]).sets == ("few",)
    assert set(Split().model_dump()) == {"public", "test", "most_public"}
    assert "parts" not in suite.methods["line"].model_dump()


def test_a_variant_may_have_other_public_people(tmp_path, monkeypatch):
    monkeypatch.setenv("LDPTREE_DATA", str(tmp_path))
    lines = [f"{'north' if n % 3 else 'south'},{n % 7},{n % 2}" for n in range(120)]
    (tmp_path / "people.csv").write_text("\n".join(["region,size,answer", *lines]))
    table = {"path": ["data:people.csv"], "target": "answer", "public": "region = 'north'"}
    suite = suite_of(
        laws={}, brought={"people": table}, variants={"south": {"dataset": "people", "changes": {"public": "region = 'south'"}}},
    )  # fmt: skip
    store = Store(tmp_path / "work")
    sources, missing = find_rows(suite, InlineExecutor(store))
    assert missing == {}
    public = {name: (read_rows(store, source).part == PUBLIC).sum() for name, source in sources.items()}
    assert public == {"people": 80, "south": 40}


@pytest.mark.parametrize("n_classes", [0, 2])
def test_labels_differ_for_private_people_alone_where_the_feature_that_says_most_is_high(n_classes):
    rng = np.random.default_rng(0)
    X = rng.random((4_000, 3))
    y = (X[:, 1] + 0.1 * rng.random(4_000) > 0.5).astype(np.int64) if n_classes else 3.0 * X[:, 1]
    rows = LabelledRows(
        X=X, y=y, part=np.zeros(4_000, np.int8), n_classes=n_classes, features=("a", "b", "c")
    )
    split = Split(public=0.25)
    before = split_rows(rows, "tiny", 0, 0, split)
    after = split_rows(rows, "tiny", 0, 0, split.model_copy(update={"differ": 0.4}))
    changed = before.y != after.y
    assert not changed[before.part == PUBLIC].any()
    high = (X[:, 1] > np.median(X[:, 1])) & (before.part != PUBLIC)
    assert not changed[~high].any()
    if n_classes:
        assert changed[high].mean() == pytest.approx(0.4, abs=0.04)
    else:
        assert (after.y - before.y)[high] == pytest.approx(0.4 * y.std())


def test_copies_and_a_feature_that_decides_the_label_are_found():
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(400, 3)), rng.integers(0, 2, 400)
    part = np.repeat(np.array([PUBLIC, PRIVATE, TEST], dtype=np.int8), [100, 200, 100])
    clean = LabelledRows(X=X, y=y, part=part, n_classes=2, features=("a", "b", "c"))
    assert find_leaks(clean).copies == 0.0
    assert find_leaks(clean).decides == ""
    X = X.copy()
    X[300:350], y[300:350], X[:, 2] = X[:50], y[:50], y + 0.0
    X[300:350, 2] = y[300:350]
    leaky = find_leaks(LabelledRows(X=X, y=y, part=part, n_classes=2, features=("a", "b", "c")))
    assert leaky.copies == 0.5
    assert leaky.public_copies == 0.0
    X[150], y[150], X[:50, :] = X[60], y[60], X[:50, :]
    assert (
        find_leaks(LabelledRows(X=X, y=y, part=part, n_classes=2, features=("a", "b", "c"))).public_copies
        == 0.01
    )
    assert leaky.decides == "c"
