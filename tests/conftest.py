"""What tests of several folders need: an empty store, the folder of real data sets, one finished small run."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

BESIDE = Path(__file__).parents[2] / "shared" / "data"
TRIPS = 20_000


@pytest.fixture
def store(tmp_path):
    """A store on an empty work folder."""
    from storage.store import Store

    return Store(tmp_path / "work")


@pytest.fixture(scope="session")
def data_home():
    """The folder of real data sets, with LDPTREE_DATA set to it; the test is skipped where there is none."""
    home = Path(os.environ.get("LDPTREE_DATA") or BESIDE)
    if not home.is_dir():
        pytest.skip(f"no folder of data sets: LDPTREE_DATA is not set, and there is no {BESIDE}")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LDPTREE_DATA", str(home))
        yield home


@pytest.fixture(scope="session")
def trips(tmp_path_factory):
    """The quickstart on 20,000 simulated trips, step by step (see `chain.Chain`). Only to be read: tests share it."""
    from chain import Chain

    from schemas.config import load
    from storage.store import Store

    config = load("quickstart", [f"dataset.rows={TRIPS}", "evaluation.redraws=5"])
    return Chain(Store(tmp_path_factory.mktemp("trips") / "work"), config)
