"""Every figure and sentence of the pages of the ready-made configurations is so (`page_truth`)."""

from __future__ import annotations

from pathlib import Path

import pytest
from chain import Chain, RoundsChain
from page_truth.artifacts import Run
from page_truth.statements import check

from schemas.config import load
from storage.store import Store

pytestmark = pytest.mark.slow

IN_ROUNDS = ("public_features", "histoftree")
SIMULATED = ("dataset.rows=60000",)
"""As many trips as show every part of a page."""
RUNS: dict[str, tuple[str, ...]] = {
    "quickstart": SIMULATED,
    "quickstart model.estimator=lpct": SIMULATED,
    "taxi": SIMULATED,
    "taxi_fare": SIMULATED,
    "taxi_fare model.estimator=lpdt": SIMULATED,
    "census": (),
    "census model.estimator=correction": (),
    "wine": (),
    "wine model.estimator=correction model.label_range=": (),
    "chicago": (),
    "chicago_fare": (),
    "abalone": (),
    "abalone model.estimator=histoftree": (),
}


@pytest.mark.parametrize("name", RUNS)
def test_every_statement_of_a_configurations_page_is_so(data_home: Path, tmp_path: Path, name: str) -> None:
    which, *settings = name.split()
    config = load(which, [*settings, *RUNS[name]])
    store = Store(tmp_path / "work")
    estimator = config.model.estimator
    in_rounds = estimator in IN_ROUNDS
    chain = RoundsChain(store, config).converse() if in_rounds else Chain(store, config)
    assert check(Run(chain)) == []
