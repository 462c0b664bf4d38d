"""The audit: honest mechanisms pass, planted faults are caught, each by what its test's name says. Seeds are fixed."""

import math
from dataclasses import fields
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from scipy.stats import beta, binom

from ldptree.audit import Bound, Exact, _log_ratio, audit, enumerated, reports_for
from ldptree.errors import ConfigError
from ldptree.mechanisms import CHOICES, MECHANISMS, mechanism_for
from ldptree.oracles import ORACLES, Words

REAL = [name for name in CHOICES if name not in MECHANISMS or not MECHANISMS[name].is_simulation_device]


def words(*key):
    return Words.seeded(np.random.SeedSequence([5, *key]))


def claiming(epsilon, mechanism):
    """What a mechanism does, claimed to be epsilon."""
    cheat = type("Cheat", (type(mechanism),), {"epsilon": epsilon})
    return cheat(**{field.name: getattr(mechanism, field.name) for field in fields(mechanism)})


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_no_mechanism_that_holders_use_is_beaten(epsilon):
    """All together at 99 %: a false alarm in one of a hundred seeds, and this seed is fixed."""
    subjects = {name: mechanism_for(name, epsilon, 3, 2) for name in REAL}
    exact = {name: enumerated(partial(mechanism_for, name, epsilon, n_classes=2), 3) for name in REAL}
    for one in audit(subjects, words(1), n_reports=20_000, exact=exact):
        assert not one.is_beaten, one
        assert one.exact.epsilon == pytest.approx(epsilon, rel=1e-6)
        assert one.exact.epsilon <= one.exact.claim <= epsilon
        assert one.influence == subjects[one.name].influence(10_000)


@pytest.mark.parametrize("name", ORACLES)
def test_every_oracle_is_audited_as_it_is_and_nearly_its_claim_is_proved(name):
    (one,) = audit({name: ORACLES[name].for_budget(2.0, 7)}, words(2), n_reports=20_000)
    assert not one.is_beaten
    assert one.empirical > 1.6


@pytest.mark.parametrize("name", [name for name in REAL if name != "auto"])
def test_twice_the_epsilon_is_caught_by_reports_alone(name):
    """20,000 reports of each input; nothing is enumerated."""
    honest = mechanism_for(name, 4.0, 2, 2)
    (one,) = audit({name: claiming(2.0, honest)}, words(3), n_reports=20_000)
    assert one.is_beaten
    assert one.empirical > 2.5
    (one,) = audit({name: honest}, words(3), n_reports=20_000)
    assert not one.is_beaten


@pytest.mark.parametrize("name", [name for name in REAL if name != "auto"])
def test_a_ten_thousandth_more_than_epsilon_is_caught_by_enumeration(name):
    found = enumerated(lambda n: claiming(1.0, mechanism_for(name, 1.0001, n, 2)), 2)
    assert found.epsilon == pytest.approx(1.0001)
    (one,) = audit({name: mechanism_for(name, 1.0, 2, 2)}, words(3), n_reports=1000, exact={name: found})
    assert one.is_beaten
    assert one.empirical < 1


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0])
def test_float_laplace_is_caught_by_the_grid_of_floating_point_numbers(epsilon):
    (one,) = audit({"laplace": mechanism_for("laplace", epsilon, 1, 2)}, words(4), n_reports=20_000)
    assert one.is_beaten
    caught = one.bounds[0]
    assert caught.kind == "floating-point grid"
    assert caught.epsilon > 3
    # some digits come from one of the inputs only
    assert 0 in caught.seen
    assert all(bound.epsilon <= epsilon for bound in one.bounds[1:])


def test_float_laplace_of_one_number_is_caught_however_it_is_drawn():
    """As numpy draws it, for one bit: no structure but an array of floats."""

    class Noise:
        k, epsilon = 2, 1.0

        def randomize(self, values, source):
            return values + source.generator().laplace(scale=1.0, size=values.size)

    (one,) = audit({"noise": Noise()}, words(5), n_reports=20_000)
    assert one.is_beaten
    assert one.bounds[0].kind == "floating-point grid"
    assert (one.exact, one.influence) == (None, None)


def test_a_hash_that_depends_on_the_value_is_caught_by_bits():
    class Leaking(type(ORACLES["olh"].for_budget(1.0, 9))):
        def randomize(self, values, source):
            reports = super().randomize(values, source)
            reports[:, 0] = reports[:, 0] & ~np.uint32(1) | (values & 1).astype(np.uint32)
            return reports

    fault = Leaking(9, **ORACLES["olh"].for_budget(1.0, 9).thresholds)
    (one,) = audit({"olh": fault}, words(6), n_reports=5000)
    assert one.is_beaten
    assert one.bounds[0].kind == "bits"


def test_a_coin_that_never_lies_is_caught_by_outputs():
    class Truthful:
        k, epsilon = 3, 2.0

        def randomize(self, values, source):
            return values.astype(np.uint8)

    (one,) = audit({"truth": Truthful()}, words(7), n_reports=2000)
    assert one.is_beaten
    assert one.empirical == one.reach > 4


def test_outputs_that_one_input_never_gives_are_an_infinite_epsilon():
    class Law:
        k, epsilon, law_size = 2, 1.0, 2

        def law(self, value):
            return {b"a": Fraction(value, 2), b"b": 1 - Fraction(value, 2)}

    assert enumerated(lambda n: Law(), 1).epsilon == math.inf


def test_what_is_too_large_to_go_through_is_gone_through_at_the_largest_size_that_fits():
    small = enumerated(partial(mechanism_for, "oue", 1.0, n_classes=2), 1000)
    assert small == Exact(epsilon=1.0, claim=1.0, n_cells=5, most_cells=5, how="every output")
    assert enumerated(partial(mechanism_for, "grr", 1.0, n_classes=2), 9).n_cells == 9
    assert enumerated(partial(mechanism_for, "laplace", 1.0, n_classes=2), 1) is None


@pytest.mark.parametrize(("a", "b"), [(0, 0), (3, 0), (50, 7), (1000, 1000), (999, 1), (0, 1000)])
def test_bounds_are_clopper_and_pearsons(a, b):
    alpha = 1e-4
    low = beta.ppf(alpha, a, 1000 - a + 1) if a else 0.0
    high = beta.isf(alpha, b + 1, 1000 - b) if b < 1000 else 1.0
    assert _log_ratio(a, b, 1000, alpha) == pytest.approx(max(math.log(max(low, 1e-300) / high), 0))
    if a > 0:
        assert binom.sf(a - 1, 1000, low) == pytest.approx(alpha)
    if b < 1000:
        assert binom.cdf(b, 1000, high) == pytest.approx(alpha)


def test_an_honest_claim_is_hardly_ever_beaten():
    """200 audits of grr, each wrong with at most 1 %: more than 9 have a chance of 4e-5; this seed is fixed."""
    oracle = ORACLES["grr"].for_budget(1.0, 2)
    source = words(8)
    beaten = sum(audit({"grr": oracle}, source, n_reports=1000)[0].is_beaten for _ in range(200))
    assert beaten <= 9


def test_what_is_audited_together_shares_the_error():
    oracle = ORACLES["grr"].for_budget(1.0, 2)
    alone = audit({"a": oracle}, words(9), n_reports=2000)[0]
    together = audit({"a": oracle, "b": oracle, "c": oracle}, words(9), n_reports=2000)[0]
    assert [bound.seen for bound in together.bounds] == [bound.seen for bound in alone.bounds]
    assert together.empirical < alone.empirical
    assert together.reach < alone.reach


def test_more_reports_are_drawn_where_the_claim_is_large():
    assert [reports_for(e) for e in (0.1, 5.0, 400.0)] == [100_000, 100_000, 1_000_000]
    assert 300_000 < reports_for(8.0) < 500_000
    with pytest.raises(ConfigError, match="at least 1,000"):
        audit({"grr": ORACLES["grr"].for_budget(1.0, 2)}, words(1), n_reports=999)


def test_a_wide_alphabet_is_audited_at_its_ends():
    (one,) = audit({"oue": ORACLES["oue"].for_budget(2.0, 600)}, words(10), n_reports=4000)
    assert isinstance(one.bounds[0], Bound)
    assert set(one.bounds[0].inputs) <= {0, 1, 2, 598, 599}
    assert 1 < one.empirical < 2
