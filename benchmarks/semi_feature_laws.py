"""The laws and masks that estimators with public features are compared on; features are uniform on [0, 1]^5.

`sines` is the law of HistOfTree (Ma, Jia and Yang, AISTATS 2025), section 5.1: y = sin(x1) + sin(x2) + sin(x5) + N(0, 1).
`interaction` is ours: y = 2 1[x1 > 1/2] 1[x4 > 1/2] + sin(x2) + sin(x5) + N(0, 1), where what x1 does depends on x4.
The label's range stated for either, (-5, 8), is configuration: it is wide, and nothing is read from labels.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

D = 5
LABEL_RANGE = (-5.0, 8.0)


def sines(X: Floats) -> Floats:
    """The mean label of the law of section 5.1, float64 [n], of rows [n, 5]."""
    mean: Floats = np.sin(X[:, 0]) + np.sin(X[:, 1]) + np.sin(X[:, 4])
    return mean


def interaction(X: Floats) -> Floats:
    """The mean label where x1 matters only beside a large x4, float64 [n], of rows [n, 5]."""
    mean: Floats = 2.0 * ((X[:, 0] > 0.5) & (X[:, 3] > 0.5)) + np.sin(X[:, 1]) + np.sin(X[:, 4])
    return mean


LAWS: dict[str, Callable[[Floats], Floats]] = {"sines": sines, "interaction": interaction}


@dataclass(frozen=True, eq=False)
class Draw:
    """Training rows of a law, and test rows with their means, which noise does not blur.

    Attributes:
        X: float64 [n, 5].
        y: float64 [n].
        test_X: float64 [n_test, 5].
        test_mean: float64 [n_test], the Bayes prediction.
    """

    X: Floats
    y: Floats
    test_X: Floats  # noqa: N815 - the field's name for a matrix of rows
    test_mean: Floats

    def excess(self, predicted: Floats) -> float:
        """Mean squared distance from the Bayes prediction: the mean squared error less that of Bayes (1)."""
        return float(np.mean((predicted - self.test_mean) ** 2))


def draw(law: str, n: int, run: int, *, n_test: int = 4000) -> Draw:
    """The run-th sample of a law; the same in every process."""
    generator = np.random.default_rng([run, n, list(LAWS).index(law)])
    X, test_X = generator.random((n, D)), generator.random((n_test, D))
    y = LAWS[law](X) + generator.standard_normal(n)
    return Draw(X, y, test_X, LAWS[law](test_X))


def aligned(n: int, d: int, n_private: int) -> NDArray[np.bool_]:
    """Everybody protects the first features: W, bool [n, d]."""
    return np.broadcast_to(np.arange(d) < n_private, (n, d)).copy()


def thinning(n: int, d: int, gamma: float) -> NDArray[np.bool_]:
    """W_gamma of section 5.1: feature l (from 1) is protected by the first n / l^gamma holders; bool [n, d]."""
    return np.arange(1, n + 1)[:, None] <= n / np.arange(1, d + 1)[None, :] ** gamma


def private_count(d: int) -> int:
    """How many features the paper's real sets protect: the least integer of at least ln(sqrt(d)) (section 5.2)."""
    return math.ceil(math.log(math.sqrt(d)))


def personalised(n: int, d: int, generator: np.random.Generator) -> NDArray[np.bool_]:
    """W of section 5.2: feature l (from 1) is protected by n / 10^floor(l / s*) holders; bool [n, d].

    The paper's first holders protect most; here the holders are put in a random order.
    """
    tenths = np.arange(1, d + 1) // private_count(d)
    protects = np.arange(1, n + 1)[:, None] <= n / 10.0 ** tenths[None, :]
    return protects[generator.permutation(n)]
