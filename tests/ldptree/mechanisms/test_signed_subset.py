"""What signed subsets promise beyond every mechanism: the best size, less noise in margins, and forged sets that are known."""

import numpy as np
import pytest
from seeded_words import words

from ldptree.coins import Words
from ldptree.errors import ConfigError, DataError
from ldptree.mechanisms import mechanism_for, signed_subset
from ldptree.mechanisms.oracles.subset import SubsetSelection
from ldptree.mechanisms.signed_subset import SignedSubset, best_size


def made(n_cells, epsilon):
    return mechanism_for("signed_subset", epsilon, n_cells, 2)


def of_size(n_cells, epsilon, size):
    return SignedSubset(n_cells, 2, SubsetSelection.of_size(epsilon, 2 * n_cells + 1, 1, size))


def test_the_own_coin_shows_heads_below_its_threshold_and_nowhere_else():
    mechanism = made(1, 1.0)
    own = mechanism.elements.own
    for value in (0, 1):
        for word, is_in in ((own - 1, True), (own, False)):
            same = Words(
                lambda n, word=word: np.full(n, word, np.uint64), np.random.SeedSequence(0), is_seeded=True
            )
            (report,) = mechanism.randomize(np.array([value]), same)
            assert bool(report[0] >> value & 1) == is_in


def test_the_size_of_a_set_is_the_best_of_all_and_looks_at_no_row():
    """Against every size, in floating point; ties are none at these sizes."""
    for epsilon in (0.05, 0.5, 1.0, 2.0, 4.0, 7.0):
        for m in (2, 3, 5, 17, 65, 300):
            w, e = np.arange(1.0, m), np.exp(epsilon)
            own = w * e / (w * e + 2 * m - w)
            other = (1 - own) * w / (2 * m - w)
            q = (w - own - other) / (m - 1)
            cost = q / (own - other) ** 2 + 0.1 * q * (1 - q) / (own + other - q) ** 2
            assert best_size(epsilon, m) == cost.argmin() + 1
    assert best_size(1.0, 2**20 + 1) == 636_954
    assert best_size(64.0, 2**20 + 1) == 1


@pytest.mark.parametrize("n_cells", [4, 16, 64, 256])
def test_the_number_of_people_in_a_cell_has_more_noise_at_small_epsilons_and_as_much_from_2_on(n_cells):
    """In cells where nobody is, against the joint report."""
    counts = np.zeros(2 * n_cells + 1)
    counts[-1] = 1000
    both = np.arange(counts.size) // 2 == 0
    for epsilon, low, high in ((0.5, 1.9, 2.25), (1.0, 1.4, 1.8), (2.0, 0.9, 1.2), (4.0, 0.9, 1.2)):
        joint, ours = (
            float(mechanism_for(m, epsilon, n_cells, 2).linear_variance(both.astype(float), counts))
            for m in ("auto", "signed_subset")
        )
        assert low < ours / joint < high


def test_a_margin_has_less_noise_than_in_the_joint_report_and_at_epsilon_4_about_as_much():
    for epsilon, share in ((0.5, 0.65), (1.0, 0.70), (2.0, 0.85), (4.0, 0.92)):
        joint, ours = (
            mechanism_for(m, epsilon, 64, 2).margin_variance_per_holder() for m in ("auto", "signed_subset")
        )
        assert ours / joint == pytest.approx(share, abs=0.005)


def test_compiled_and_plain_python_fill_the_same_sets(monkeypatch):
    for n_cells, epsilon in ((1, 2.0), (16, 0.5), (200, 0.5)):
        mechanism = made(n_cells, epsilon)
        values = np.arange(400) % mechanism.k
        reports = mechanism.randomize(values, words(n_cells))
        assert mechanism.is_valid(reports).all()
        with monkeypatch.context() as patch:
            patch.setattr(signed_subset, "_fill_sets", signed_subset._fill_sets.__wrapped__)
            np.testing.assert_array_equal(mechanism.randomize(values, words(n_cells)), reports)


@pytest.mark.parametrize(
    ("thresholds", "said"),
    [
        ({"size": 4, "own": 3 * 2**62}, "a set of 4 of 4 cells"),
        ({"size": 0, "own": 2**63}, "a set of 0"),
        ({"size": 2, "own": 2**62}, "own threshold"),
        ({"size": 2}, "exactly the integers size, own"),
    ],
)
def test_impossible_integers_are_refused(thresholds, said):
    with pytest.raises(ConfigError, match=said):
        SignedSubset.from_thresholds(3, 2, thresholds)
    with pytest.raises(ConfigError, match="coins for 10 elements; 8 are needed"):
        SignedSubset(3, 2, made(4, 1.0).elements)


def test_three_classes_are_refused_with_what_to_do():
    for make in (
        lambda: mechanism_for("signed_subset", 1.0, 4, 3),
        lambda: SignedSubset.from_thresholds(4, 3, made(4, 1.0).thresholds),
    ):
        with pytest.raises(ConfigError, match=r'3 classes; it is for two\. Use mechanism = "auto"'):
            make()


def test_sets_that_no_holder_sends_are_known_and_not_added_up():
    mechanism = of_size(3, 1.0, 2)
    reports = np.array([[0b00000101], [0b00000011], [0b00000001], [0b00010101]], np.uint8)
    assert mechanism.is_valid(reports).tolist() == [True, False, False, False]
    with pytest.raises(DataError, match="report 2 of 2 holds both classes of a cell"):
        mechanism.aggregate(reports[:2])
    with pytest.raises(DataError, match="honest holder"):
        mechanism.aggregate(reports[2:])
    past = np.array([[0b00000101, 0], [0b00000001, 0b00000100]], np.uint8)
    assert of_size(4, 1.0, 2).is_valid(past).tolist() == [True, False]


def test_sums_that_sets_cannot_have_are_known():
    mechanism = of_size(3, 1.0, 2)
    assert mechanism.can_be_sum(np.array([3, 0, 1, 2, 0, 0, 0, 0]), 3)
    assert not mechanism.can_be_sum(np.array([3, 1, 1, 1, 0, 0, 0, 0]), 3)  # a cell in four sets
    assert not mechanism.can_be_sum(np.array([3, 0, 1, 1, 0, 0, 0, 0]), 3)  # five elements
    assert not mechanism.can_be_sum(np.array([4, -1, 1, 2, 0, 0, 0, 0]), 3)
    assert not mechanism.can_be_sum(np.array([3.0, 0, 1, 2, 0, 0, 0, 0]), 3)
