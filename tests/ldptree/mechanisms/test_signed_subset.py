"""Signed subsets: the law is the stated one, totals are unbiased and their variance exact, in rational numbers."""

from fractions import Fraction

import numpy as np
import pytest

from ldptree.audit.empirical import audit
from ldptree.audit.exact import enumerated
from ldptree.coins import WORD, Words
from ldptree.errors import ConfigError, DataError
from ldptree.mechanisms import mechanism_for, signed_subset
from ldptree.mechanisms.oracles.subset import SubsetSelection
from ldptree.mechanisms.signed_subset import SignedSubset, best_size

SIZES = [(1, 1.0), (2, 0.5), (2, 3.0), (3, 1.0), (4, 0.3)]
"""Cells and epsilon, with sets of 1, 2, 1, 2 and 4 cells."""


def words(*key):
    return Words.seeded(np.random.SeedSequence([20261122, *key]))


def made(n_cells, epsilon):
    return mechanism_for("signed_subset", epsilon, n_cells, 2)


def of_size(n_cells, epsilon, size):
    return SignedSubset(n_cells, 2, SubsetSelection.of_size(epsilon, 2 * n_cells + 1, 1, size))


def signs(mechanism, report):
    """What a report says of each cell: class 1 or 0 as 1 or -1, and 0 where it is not in the set."""
    bits = np.unpackbits(np.frombuffer(report, np.uint8), bitorder="little").astype(int)
    zero, one = bits[: mechanism.raw_size].reshape(-1, 2).T
    assert not (zero & one).any()
    return (one - zero).tolist()


def chances(mechanism):
    """P, A and q, from the integers."""
    w, m = mechanism.elements.size, mechanism.n_cells + 1
    own = Fraction(mechanism.elements.own, WORD)
    other = (1 - own) * Fraction(w, 2 * m - w)
    return own, other, (w - own - other) / (m - 1)


@pytest.mark.parametrize(("n_cells", "epsilon"), SIZES)
def test_cells_and_classes_are_in_a_set_with_the_stated_probabilities(n_cells, epsilon):
    mechanism = made(n_cells, epsilon)
    own, other, q = chances(mechanism)
    for value in range(mechanism.k):
        cell, label = divmod(value, 2)
        for j in range(n_cells + 1):
            found = {sign: Fraction(0) for sign in (-1, 0, 1)}
            for report, chance in mechanism.law(value).items():
                found[signs(mechanism, report)[j]] += chance
            if j == cell < n_cells:
                assert (found[2 * label - 1], found[1 - 2 * label]) == (own, other)
            else:
                each = (own + other) / 2 if j == cell else q / 2
                assert (found[-1], found[1]) == (each, each)


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


@pytest.mark.parametrize(("n_cells", "epsilon"), SIZES)
def test_totals_are_unbiased_and_their_variance_is_exact_in_rational_numbers(n_cells, epsilon):
    mechanism = made(n_cells, epsilon)
    own, other, q = chances(mechanism)
    rng = np.random.default_rng(n_cells)
    forms = rng.integers(-5, 6, size=(mechanism.k, 4))
    forms[:, 0] = 1  # everybody: no noise at all
    for value in range(mechanism.k):
        means, squares = [Fraction(0)] * mechanism.k, [Fraction(0)] * 4
        for report, chance in mechanism.law(value).items():
            said = signs(mechanism, report)
            count = [(abs(s) - q) / (own + other - q) for s in said]
            difference = [s / (own - other) for s in said]
            told = [(c + s * d) / 2 for c, d in zip(count, difference, strict=True) for s in (-1, 1)]
            told = [*told[:-2], count[-1]]
            raw = mechanism.aggregate(np.frombuffer(report, np.uint8)[None])
            assert mechanism.unbias(raw, 1) == pytest.approx([float(one) for one in told], rel=1e-12)
            for j, one in enumerate(told):
                means[j] += chance * one
            for i in range(4):
                squares[i] += chance * sum(int(a) * b for a, b in zip(forms[:, i], told, strict=True)) ** 2
        assert means == [j == value for j in range(mechanism.k)]
        variance = [float(square - int(forms[value, i]) ** 2) for i, square in enumerate(squares)]
        assert variance[0] == 0
        counts = np.arange(mechanism.k) == value
        scale = max(variance)
        np.testing.assert_allclose(
            mechanism.linear_variance(forms, counts), variance, rtol=1e-11, atol=1e-13 * scale
        )


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


@pytest.mark.parametrize("size", [1, 2, 3])
def test_no_two_reports_differ_by_more_than_what_a_dishonest_holder_is_said_to_move(size):
    """All pairs of sets: the largest shift of a class's total, and how many totals are shifted so far at once."""
    mechanism = of_size(3, 1.0, size)
    force = mechanism.poisoning_bound(1000)
    told = np.array(
        [mechanism.unbias(mechanism.aggregate(np.frombuffer(r, np.uint8)[None]), 1) for r in mechanism.law(0)]
    )[:, :-1]
    shifts = np.abs(told[:, None] - told[None])
    assert shifts.max() == pytest.approx(force.one)
    assert (shifts > force.one * (1 - 1e-9)).sum(axis=2).max() == force.totals_at_once
    assert force.one_percent == pytest.approx(10 * force.one)


class BothClasses(SignedSubset):
    """Sets that may hold both classes of a cell."""

    def randomize(self, values, source):
        return self.elements.randomize(values, source)


class NeverTheOther(SignedSubset):
    """Sets that never have the own cell with the other class."""

    def randomize(self, values, source):
        reports = super().randomize(values, source)
        bits = np.unpackbits(reports, axis=1, bitorder="little")
        rows = np.arange(values.size)
        while (wrong := bits[rows, values ^ 1].astype(bool)).any():
            again = super().randomize(values[wrong], source)
            bits[wrong] = np.unpackbits(again, axis=1, bitorder="little")
        return np.packbits(bits, axis=1, bitorder="little")


@pytest.mark.parametrize("fault", [BothClasses, NeverTheOther])
def test_reports_that_do_not_follow_the_law_are_caught_by_the_audit(fault):
    def make(n):
        honest = made(n, 1.0)
        return fault(n, 2, honest.elements)

    found = enumerated(make, 3, words(1))
    (one,) = audit({"fault": make(3)}, words(2), n_reports=1000, exact={"fault": found})
    assert one.is_beaten
    assert found.misfit is not None
    honest = enumerated(lambda n: made(n, 1.0), 3, words(1))
    assert honest.misfit is None


def test_a_coin_of_twice_the_epsilon_is_caught_by_the_audit():
    """What it states is the claim, so only what it does can give it away."""

    class Eager(SignedSubset):
        epsilon = 2.0

    def make(n):
        return Eager(n, 2, made(n, 4.0).elements)

    found = enumerated(make, 2)
    assert found.epsilon == pytest.approx(4.0)
    (one,) = audit({"eager": make(2)}, words(3), n_reports=20_000)
    assert one.is_beaten
    assert one.empirical > 3
