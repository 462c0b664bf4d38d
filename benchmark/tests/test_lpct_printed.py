"""LPCT as printed, and the departures of its authors' code: each is off unless a switch names it, and does what its name says."""

from dataclasses import replace

import numpy as np
import pytest

from ldptree.errors import ConfigError
from ldptree.estimators import LPCTClassifier
from ldptree.inference.algorithm_2 import prune
from ldptree_benchmark.laws import draw_law
from ldptree_benchmark.learners import LEARNERS, lpct_printed
from ldptree_benchmark.learners.answers import Trial
from ldptree_benchmark.learners.code_partition import grow_as_code
from ldptree_benchmark.learners.lpct_printed import answer_printed, answer_printed_grid
from ldptree_benchmark.rows import PRIVATE, PUBLIC, TEST, LabelledRows

ROWS = draw_law("lpct-pair", {"gamma": 0.5, "n_public": 300, "n_private": 4000, "n_test": 3000}, [1, 2, 3])


def trial(epsilon=4.0, rows=ROWS, **settings):
    return Trial(rows, epsilon, 5, {"feature_range": [0.0, 1.0], "depth": 4, **settings})


def accuracy(one):
    return float(np.mean(answer_printed(one) == one.rows.of(TEST).y))


@pytest.mark.parametrize(
    ("settings", "of_estimator"),
    [
        ({"lam": 5.0}, {"lam": 5.0, "rule": "ratio", "prune": "none"}),
        ({"bound": 1.0}, {"prune": "paper", "paper": {"termination": False}}),
    ],
)
def test_without_a_switch_it_is_the_estimator_with_laplace_noise(settings, of_estimator):
    ours = [accuracy(Trial(ROWS, 4.0, seed, {"feature_range": [0.0, 1.0], **settings})) for seed in range(12)]
    learn = ROWS.part != TEST
    theirs = []
    for seed in range(12):
        model = LPCTClassifier(
            4.0, mechanism="laplace", partition="max-edge", feature_range=(0.0, 1.0), depth=4, random_state=seed, **of_estimator,
        ).fit(ROWS.X[learn], ROWS.y[learn], public=(ROWS.part == PUBLIC)[learn])  # fmt: skip
        theirs.append(float(np.mean(model.predict(ROWS.of(TEST).X) == ROWS.of(TEST).y)))
    # two means of 12: equal within four standard errors
    spread = np.hypot(np.std(ours, ddof=1), np.std(theirs, ddof=1)) / np.sqrt(12)
    assert abs(np.mean(ours) - np.mean(theirs)) < 4 * spread + 0.002


def test_bounds_are_times_the_factor_for_both_sides(monkeypatch):
    """Algorithm 2 divides margins by bounds: a quarter of these is four times those, and counts stay."""
    seen = []
    monkeypatch.setattr(
        lpct_printed, "prune", lambda evidence, **more: seen.append(evidence) or prune(evidence, **more)
    )
    whole, quarter = (answer_printed(trial(8.0, bound=bound, depth=6)) for bound in (1.0, 0.25))
    assert (whole != quarter).any()
    for name, times in {
        "private_margin": 4,
        "public_margin": 4,
        "private_count": 1,
        "public_mass": 1,
    }.items():
        np.testing.assert_allclose(getattr(seen[1], name), times * getattr(seen[0], name))


def test_candidates_read_the_same_reports_unless_they_are_fresh():
    twice = [{"lam": 0.0}, {"lam": 0.0}]
    first, again = answer_printed_grid(trial(1.0), twice)
    np.testing.assert_array_equal(first, again)
    first, again = answer_printed_grid(trial(1.0, switches=["fresh-reports"]), twice)
    assert (first != again).any()


def test_a_grid_answers_as_its_settings_one_by_one():
    grid = [{"depth": depth, "lam": lam} for depth in (1, 3) for lam in (0.5, 50.0)]
    for one, answers in zip(grid, answer_printed_grid(trial(), grid), strict=True):
        np.testing.assert_array_equal(answers, answer_printed(trial(**one)))


def test_true_counts_have_no_noise_and_no_epsilon():
    bare = [answer_printed(trial(epsilon, lam=0.0, switches=["true-counts"])) for epsilon in (0.01, 8.0)]
    np.testing.assert_array_equal(*bare)
    assert (bare[0] != answer_printed(trial(0.01, lam=0.0))).any()


def test_rows_outside_the_public_range_are_class_0_by_a_switch_alone():
    plain = answer_printed(trial(lam=np.inf, feature_range=[0.0, 0.6]))
    switched = answer_printed(trial(lam=np.inf, feature_range=[0.0, 0.6], switches=["outside-is-0"]))
    is_within = (ROWS.of(TEST).X.astype(np.float32) <= np.float32(0.6)).all(axis=1)
    np.testing.assert_array_equal(switched[is_within], plain[is_within])
    assert not switched[~is_within].any()
    assert plain[~is_within].any()


def test_the_cells_of_the_code_hold_enough_public_rows_and_take_the_next_feature():
    rng = np.random.default_rng(0)
    X = rng.random((200, 30))
    X[:, 0] = np.arange(200) >= 197  # decides, and would leave three rows
    y = (X[:, 0] > 0.5).astype(np.int64)
    for kind in ("cart", "max-edge"):
        free = grow_as_code(X, y, kind=kind, depth=3, min_samples_leaf=1)
        assert free.feature[0] == 0
        partition = grow_as_code(X, y, kind=kind, depth=3, min_samples_leaf=8)
        assert partition.feature[0] > 0
        assert np.bincount(partition.apply(X.astype(np.float32))).min() >= 8
        assert partition.max_depth <= 3


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"switches": ["true-count"]}, "true-count is no switch .did you mean true-counts"),
        ({"dept": 3}, "dept is no setting .did you mean depth"),
        ({"partition": "carts"}, "partition carts: one of"),
        ({"depth": -1}, "depth = -1"),
        ({"bound": 0.0}, "bound: must be above 0"),
        ({"bound": 1.0, "switches": ["true-counts"]}, "leaves no switch"),
    ],
)
def test_a_wrong_setting_is_told(settings, message):
    with pytest.raises(ConfigError, match=message):
        answer_printed(trial(**settings))


@pytest.mark.parametrize("learner", ["lpct", "majority"])
def test_a_setting_that_a_learner_does_not_have_is_told(learner):
    (told,) = LEARNERS[learner].answer_each(trial(dept=3), [{}])
    assert isinstance(told, ConfigError)
    assert "is no setting of this learner" in str(told)


def test_more_than_two_classes_are_refused():
    rows = LabelledRows(X=ROWS.X, y=ROWS.y, part=ROWS.part, n_classes=3, features=ROWS.features)
    with pytest.raises(ConfigError, match="learns two classes"):
        answer_printed(trial(rows=rows))


def test_of_a_private_set_without_public_rows_of_a_kind_nothing_breaks():
    """All public labels are one class: the tree of the code is a single cell."""
    only = LabelledRows(
        X=ROWS.X,
        y=np.where(ROWS.part == PUBLIC, 0, ROWS.y),
        part=ROWS.part,
        n_classes=2,
        features=ROWS.features,
    )
    answers = answer_printed(trial(rows=only, partition="cart", switches=["code-splits"], lam=0.0))
    assert np.unique(answers).size == 1
    assert (only.part == PRIVATE).any()


@pytest.mark.parametrize("learner", ["lpct_printed", "lpct"])
def test_a_range_by_its_name_is_the_range(learner):
    rows = draw_law("lpct-pair", {"gamma": 0.5, "n_public": 50, "n_private": 500, "side": [2.0, 3.0]}, [4])
    low, high = rows.feature_range
    assert (low, rows.X.max() <= high) == (0.0, True)
    assert rows.X.max() > 1.9
    private = rows.of(PRIVATE).X
    same = {"known": (low, high), "private rows": (private.min(axis=0), private.max(axis=0))}
    for name, ends in same.items():
        trial = Trial(rows, 2.0, 5, {"partition": "max-edge"})
        by_name, by_ends = LEARNERS[learner].answer_each(
            trial, [{"feature_range": one} for one in (name, ends)]
        )
        np.testing.assert_array_equal(by_name.answers, by_ends.answers)
    with pytest.raises(ConfigError, match="nothing but a law knows it"):
        LEARNERS[learner].answer(Trial(replace(rows, feature_range=None), 2.0, 5, {"feature_range": "known"}))
