"""What tests of the library share."""

from __future__ import annotations

import pytest
from served import browser, intake

from ldptree.families.public_features import surface
from ldptree.public_models import blend, fit

__all__ = ["browser", "few_trees", "intake"]


@pytest.fixture(scope="module")
def few_trees():
    """Forests of 40 trees, blends of some of 20 and surfaces of four keep what is promised of larger ones."""
    with pytest.MonkeyPatch.context() as patch:
        for room, name, n_trees in (
            (fit, "N_TREES", 40),
            (fit, "FEWEST_TREES", 20),
            (fit, "_PROBE", 8),
            (blend, "GROWN", 20),
            (blend, "N_TREES", 40),
            (surface, "TREES", 4),
        ):
            patch.setattr(room, name, n_trees)
        yield
