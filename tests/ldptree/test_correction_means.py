"""What the standard deviation of an average of corrections promises: it is that of the whole posterior."""

from __future__ import annotations

import numpy as np
import pytest

from ldptree.families.correction_plan import CorrectionPlan, ResidualRange
from ldptree.families.corrections import ROOTS, ResidualEstimates, correct, sd_of_means
from ldptree.inference.discrepancy import likely_discrepancies
from ldptree.inference.tree_gaussian import Levels
from ldptree.mechanisms import number_mechanism_for
from ldptree.partition.tree import Partition


def plan_of(own: np.ndarray) -> CorrectionPlan:
    """Four cells at depth 2; `own` [4, M] is the public model's own variance."""
    tree = Partition.from_json(
        {
            "feature": [0, 0, 0, -1, -1, -1, -1],
            "threshold": [0.5, 0.25, 0.75, 0.0, 0.0, 0.0, 0.0],
            "left": [1, 3, 5, -1, -1, -1, -1],
            "right": [2, 4, 6, -1, -1, -1, -1],
        }
    )
    return CorrectionPlan(
        partition=tree,
        mechanism=number_mechanism_for("grr", 2.0, 4, 2),
        range=ResidualRange(half=1.0),
        mean_square=1.0,
        scale=2.0,
        public_count=np.full(4, 10.0),
        own_variance=own,
        doubt=own,
        expected_sd=0.1,
    )


def found_of(plan: CorrectionPlan, mean: tuple[float, ...] = (0.5, 0.7, 0.4, 0.9)):
    """Corrections of two outputs, of which only the first has a discrepancy."""
    noise = np.array([0.01, 0.02, 0.04, 0.01])
    seen = [
        ResidualEstimates(mean=np.array(mean), variance=noise, mass=np.full(4, 100.0)),
        ResidualEstimates(mean=0.001 * np.array(mean), variance=noise, mass=np.full(4, 100.0)),
    ]
    return correct(plan, seen)


@pytest.mark.parametrize("own", [0.0, 0.03])
def test_the_mean_over_one_cell_is_as_sure_as_its_correction(own):
    plan = plan_of(np.full((4, 2), own))
    found = found_of(plan)
    assert found.priors[0].n_components > found.priors[1].n_components == 0
    assert sd_of_means(plan, found, np.eye(4)) == pytest.approx(found.sd, rel=1e-6)


@pytest.mark.parametrize("own", [0.0, 0.03])
def test_the_mean_over_several_cells_is_as_sure_as_the_dense_posterior_says(own):
    """Of mu = D + N(0, own) seen with noise: the distance of w mu from w correction by plain matrices, over all processes."""
    plan = plan_of(np.full((4, 2), own))
    found = found_of(plan)
    weights = np.array([[0.25, 0.25, 0.25, 0.25], [0.7, 0.3, 0.0, 0.0]])
    levels, at = Levels.of(plan.partition.parent), plan.partition.leaves
    for output in range(2):
        noise, seen = found.noise_sd[:, output] ** 2, found.observed[:, output]
        values, variance = np.full(7, np.nan), np.full(7, np.inf)
        values[at], variance[at] = seen / plan.scale, (noise + own) / plan.scale**2
        expected = np.zeros(2)
        for prior, share in likely_discrepancies(levels, values, variance, ROOTS):
            root, first, second = prior.innovation(2) * plan.scale**2
            shared = np.full((4, 4), root) + np.kron(np.eye(2), np.full((2, 2), first)) + second * np.eye(4)
            of_mu = shared + own * np.eye(4)
            gain = of_mu @ np.linalg.inv(of_mu + np.diag(noise))
            left = of_mu - gain @ of_mu
            apart = weights @ (gain @ seen - found.correction[:, output])
            expected += share * (np.einsum("kl,lm,km->k", weights, left, weights) + apart**2)
        assert sd_of_means(plan, found, weights)[:, output] == pytest.approx(np.sqrt(expected), rel=1e-5)


def test_a_mean_over_cells_that_lean_on_each_other_is_less_sure_than_if_they_did_not():
    plan = plan_of(np.zeros((4, 2)))
    found = found_of(plan, (0.5, 0.5, 0.5, 0.5))
    weights = np.full((1, 4), 0.25)
    apart = np.sqrt(weights**2 @ found.sd[:, :1] ** 2)
    assert sd_of_means(plan, found, weights)[0, 0] > 1.2 * apart[0, 0]
