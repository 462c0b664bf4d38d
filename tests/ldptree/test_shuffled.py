"""The epsilon of shuffled reports: the bounds are those of the law of all reports, and lie beside each other."""

import itertools
import math
from collections import Counter

import numpy as np
import pytest

from ldptree.audit.shuffled import shuffled_epsilon
from ldptree.errors import ConfigError
from ldptree.mechanisms import mechanism_for
from ldptree.mechanisms.oracles import ORACLES

SMALL = {
    "grr": ORACLES["grr"].for_values(1.0, 4),
    "oue": ORACLES["oue"].for_values(1.0, 3),
    "sue": ORACLES["sue"].for_values(1.0, 3),
    "ss": ORACLES["ss"].for_values(0.5, 5),
    "signed_subset": mechanism_for("signed_subset", 1.0, 2, 2),
}


def shuffled_law(mechanism, values):
    """The chance of every multiset of reports of people with these values, by enumeration."""
    laws = [{report: float(chance) for report, chance in mechanism.law(value).items()} for value in values]
    law = Counter()
    for reports in itertools.product(*[each.items() for each in laws]):
        law[tuple(sorted(report for report, _ in reports))] += math.prod(chance for _, chance in reports)
    return law


def delta_of(first, second, epsilon):
    return sum(max(chance - math.exp(epsilon) * second[reports], 0.0) for reports, chance in first.items())


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("delta", [0.01, 0.1])
def test_no_two_values_among_others_are_further_apart_and_two_are_as_far(name, delta):
    """All pairs, others with all values alike or one each, three people: what is enumerated lies between the bounds."""
    mechanism = SMALL[name]
    values = range(getattr(mechanism, "n_values", mechanism.k))
    bound = shuffled_epsilon(mechanism, 3, delta)
    worst = dict.fromkeys((bound.epsilon, bound.at_least), 0.0)
    for others in itertools.combinations_with_replacement(values, 2):
        laws = [shuffled_law(mechanism, (value, *others)) for value in values]
        for one, other in itertools.permutations(laws, 2):
            for epsilon, so_far in worst.items():
                worst[epsilon] = max(so_far, delta_of(one, other, epsilon))
    assert worst[bound.epsilon] <= delta * (1 + 1e-9)
    assert worst[bound.at_least] >= delta * (1 - 1e-2) or bound.at_least == 0.0
    assert bound.at_least <= bound.epsilon <= mechanism.epsilon


@pytest.mark.parametrize(
    ("mechanism", "gap"),
    [
        (ORACLES["grr"].for_values(2.0, 17), 0.002),
        (ORACLES["ss"].for_values(2.0, 17), 0.05),
        (ORACLES["oue"].for_values(2.0, 17), 0.07),
        (mechanism_for("signed_subset", 2.0, 8, 2), 0.05),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_the_bounds_of_many_people_lie_beside_each_other_and_far_below_one_report(mechanism, gap):
    bound = shuffled_epsilon(mechanism, 100_000, 1e-8)
    assert 0.02 < bound.at_least < bound.epsilon < 0.05
    assert bound.epsilon <= (1 + gap) * bound.at_least
    fewer, more = (shuffled_epsilon(mechanism, n, 1e-8).epsilon for n in (10_000, 1_000_000))
    assert fewer > 2.5 * bound.epsilon > 6 * more
    assert shuffled_epsilon(mechanism, 2, 1e-8).epsilon == pytest.approx(mechanism.epsilon, rel=1e-2)


@pytest.mark.parametrize("name", ["oue", "ss", "signed_subset"])
def test_the_gap_between_the_bounds_is_what_the_page_on_privacy_says(name):
    """It is widest about epsilon 1, and hardly depends on how many people there are."""
    for cells in (2, 8, 40, 400):
        bound = shuffled_epsilon(mechanism_for(name, 1.0, cells, 2), 10_000, 1e-8)
        assert bound.at_least < bound.epsilon <= 1.12 * bound.at_least


def test_what_has_no_shuffled_epsilon_is_refused():
    with pytest.raises(ConfigError, match="take grr, oue, sue or ss"):
        shuffled_epsilon(mechanism_for("discrete_laplace", 1.0, 4, 2), 1000, 1e-6)
    with pytest.raises(ConfigError, match="two cells or more"):
        shuffled_epsilon(mechanism_for("signed_subset", 1.0, 1, 2), 1000, 1e-6)
    for n, delta in ((1, 1e-6), (1000, 0.0), (1000, np.nan)):
        with pytest.raises(ConfigError, match="2 holders or more"):
            shuffled_epsilon(SMALL["grr"], n, delta)
