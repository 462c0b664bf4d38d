"""The audit of a cell and a number: honest reports pass, planted faults are caught. Seeds are fixed."""

from dataclasses import fields
from functools import partial

import numpy as np
import pytest

from ldptree.audit.empirical import audit
from ldptree.audit.exact import LAW_ALARM, enumerated, inputs_of, law_of
from ldptree.coins import Words
from ldptree.mechanisms import number_mechanism_for
from ldptree.mechanisms.number_response import NumberResponse

MAKE = NumberResponse.for_budget


def words(*key):
    return Words.seeded(np.random.SeedSequence([6, *key]))


def drawing(honest, other):
    """What states one law and draws from another."""

    class Drawing(NumberResponse):
        def randomize(self, values, source):
            return other.randomize(values, source)

    return Drawing(**{field.name: getattr(honest, field.name) for field in fields(honest)})


@pytest.mark.parametrize(("epsilon", "steps"), [(0.5, 1), (0.5, 4), (2.0, 1), (2.0, 256)])
def test_honest_reports_are_not_beaten_and_the_whole_claim_is_found(epsilon, steps):
    """A false alarm in one of a hundred seeds, and this seed is fixed."""
    make = partial(MAKE, epsilon, steps=steps)
    source = words(1, steps)
    exact = enumerated(make, 3, source)
    (one,) = audit({"number": make(3)}, source, n_reports=10_000, claim=epsilon, exact={"number": exact})
    assert not one.is_beaten, one
    assert epsilon - 1e-6 <= exact.epsilon <= exact.claim <= epsilon
    assert (exact.n_cells, exact.how) == (3, "every output, and sensitivity")
    assert one.k == 3 * (steps + 1) + 1 == inputs_of(make(3))


@pytest.mark.parametrize("rho", [0.3, 0.7])
def test_twice_the_epsilon_is_caught_by_reports_alone(rho):
    """20,000 reports of each input; nothing is enumerated."""
    honest = MAKE(4.0, 2, rho=rho, steps=8)
    (one,) = audit({"number": honest}, words(2), n_reports=20_000, claim=2.0)
    assert 2.0 < one.empirical <= 4.0
    assert one.is_beaten


def test_a_ten_thousandth_more_than_epsilon_is_caught_by_enumeration():
    found = enumerated(lambda n: MAKE(1.0001, n, steps=16), 2)
    assert found.epsilon == pytest.approx(1.0001)
    (one,) = audit({"n": MAKE(1.0, 2, steps=16)}, words(3), n_reports=1000, exact={"n": found}, claim=1.0)
    assert one.is_beaten


@pytest.mark.parametrize(("rhos", "steps"), [((0.5, 0.4), 2), ((0.5, 0.4), 256), ((0.5, 0.6), 2)])
def test_bits_or_labels_of_another_epsilon_are_caught_by_chi_square(rhos, steps):
    """The whole epsilon is the claim's; a tenth of it stands in the wrong half."""
    honest, other = (MAKE(4.0, 2, rho=rho, steps=steps) for rho in rhos)
    assert enumerated(lambda n: honest, 2, words(4)).misfit is None
    found = enumerated(lambda n: drawing(honest, other), 2, words(4))
    assert found.misfit.chance < LAW_ALARM / len(law_of(honest).values)


def test_a_label_that_is_sent_as_it_is_is_caught_by_reports_and_by_its_law():
    class Telling(NumberResponse):
        def randomize(self, values, source):
            reports = super().randomize(values, source)
            cells, steps = self.cells_and_parts(values)
            reports[cells == 1, :4] = steps[cells == 1].astype("<i4")[:, None].view(np.uint8)
            return reports

    honest = MAKE(1.0, 2)
    telling = Telling(**{field.name: getattr(honest, field.name) for field in fields(honest)})
    found = enumerated(lambda n: telling, 2, words(5))
    assert found.epsilon <= 1.0
    assert found.misfit.value // honest.n_levels == 1
    (one,) = audit({"telling": telling}, words(5), n_reports=5000, exact={"telling": found})
    assert one.is_beaten
    assert one.empirical > 1.0


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_float_noise_is_caught_by_the_grid_of_floating_point_numbers(epsilon):
    make = partial(number_mechanism_for, "laplace", epsilon)
    assert enumerated(make, 1) is None
    (one,) = audit({"laplace": make(1)}, words(6), n_reports=20_000)
    assert one.is_beaten
    assert one.bounds[0].kind == "floating-point grid"


def test_a_seldom_drawn_law_is_a_law():
    """Chances of every symbol add up to 1, also where noise is wider than can be gone through."""
    for mechanism in (MAKE(1e-3, 1), MAKE(1.0, 3, steps=1), MAKE(40.0, 2, steps=1)):
        law = law_of(mechanism)
        for value in law.values:
            reports = mechanism.randomize(np.full(50, value), words(7))
            seen, chances = law.compare(value, reports)
            assert chances.sum() == pytest.approx(1)
            assert (seen.sum(), seen.size) == (50, chances.size)
            assert not seen[chances == 0].any()
