"""Frozen runs: what every family publishes, receives, adds up and learns from seeded rows, by digest.

`digests.json` holds the answers. A change that should change nothing leaves them alone; one that is meant to change them
writes them anew (`python tests/test_digests.py`) and says in its commit why.

Questions, reports and totals are the same bytes on every processor. The fractions of a model, and noise that is a fraction, come
from libraries that pick their code by the processor: they are compared by four figures, to six digits.
"""

from __future__ import annotations

import hashlib
import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from chain import Chain, RoundsChain, fares, fares_config, mended, rides, rides_config, shells, shells_config

from ldptree.coins import Words
from ldptree.mechanisms import CHOICES, mechanism_for, number_mechanism_for
from schemas.manifest import Manifest
from storage.store import Store

FILE = Path(__file__).with_name("digests.json")
PAPER = {"prune": "paper", "lam": "auto", "partition": "max-edge", "paper": {"termination": False}}
PRINTED = {"lam": 0.0, "prune": "none", "rule": "ratio"}
RUNS: dict[str, Callable[[Path], Any]] = {
    "lpct": lambda room: rides_config(rides(room / "rides.csv", 3000, 1)),
    "lpct, automatic depth": lambda room: rides_config(
        rides(room / "rides.csv", 3000, 1), model={"depth": "auto"}
    ),
    "lpct, max-edge, pruned by variance": lambda room: rides_config(
        rides(room / "rides.csv", 3000, 1),
        model={"partition": "max-edge", "prune": "variance"},
        privacy={"mechanism": "oue"},
    ),
    "lpct, random-edge, not pruned": lambda room: rides_config(
        rides(room / "rides.csv", 3000, 1), model={"partition": "random-edge", "prune": "none"}
    ),
    "lpct, Algorithm 2": lambda room: rides_config(rides(room / "rides.csv", 3000, 1), model=PAPER),
    "lpdt": lambda room: fares_config(fares(room / "fares.csv", 3000, 1)),
    "lpdt, automatic depth": lambda room: fares_config(
        fares(room / "fares.csv", 3000, 1), model={"depth": "auto"}
    ),
    "lpdt, as printed": lambda room: fares_config(
        fares(room / "fares.csv", 3000, 1), model=PRINTED, privacy={"mechanism": "randomized_response"}
    ),
    "correction, classes, tree": lambda room: mended(rides_config, rides(room / "rides.csv", 3000, 1)),
    "correction, classes, forest": lambda room: mended(
        rides_config, rides(room / "rides.csv", 3000, 1), correction={"base": "forest"}
    ),
    "correction, three classes": lambda room: mended(
        rides_config,
        rides(room / "rides.csv", 3000, 1),
        dataset={"target": "firm", "positive": None, "classes": ["ash", "birch", "cedar"]},
    ),
    "correction, a number, blend": lambda room: mended(
        fares_config, fares(room / "fares.csv", 3000, 1), correction={"base": "blend"}
    ),
    "public_features": lambda room: shells_config(shells(room / "shells.parquet", 3000, 1)),
    "histoftree": lambda room: shells_config(
        shells(room / "shells.parquet", 3000, 1),
        model={"estimator": "histoftree", "label_range": [0, 30]},
    ),
}


def digest_of(*parts: bytes) -> str:
    return hashlib.sha256(b"\x00".join(parts)).hexdigest()[:32]


def rows_of(store: Store, manifest: Manifest) -> bytes:
    """What the files of an artifact hold, whatever library wrote them: rows of tables, bytes of the rest."""
    found = []
    for path in store.files(manifest):
        if path.suffix == ".parquet":
            found.append(repr(pq.read_table(path).to_pydict()).encode())
        elif path.suffix == ".npz":
            with np.load(path) as arrays:
                found += [name.encode() + arrays[name].tobytes() for name in sorted(arrays)]
        else:
            found.append(path.read_bytes())
    return b"\x00".join(sorted(found))


def figures_of(numbers: Any) -> list[float]:
    """How many numbers these are, their mean, their root mean square, and their mean by weights that tell places apart."""
    values = np.asarray(numbers, dtype=np.float64).ravel()
    if not values.size:
        return [0.0]
    places = np.cos(np.arange(values.size)) + 2.0
    return [
        float(values.size),
        *map(float, (values.mean(), np.sqrt(np.mean(values**2)), values @ places / values.size)),
    ]


def describe_model(content: bytes) -> dict[str, Any]:
    """A model's JSON: the digest of all that is no fraction, and the figures of its fractions."""
    fractions: list[float] = []

    def without_fractions(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: without_fractions(item) for key, item in value.items() if key != "digest"}
        if isinstance(value, list):
            return [without_fractions(item) for item in value]
        if isinstance(value, float):
            fractions.append(value)
            return None
        return value

    rest = json.dumps(without_fractions(json.loads(content)))
    return {"digest": digest_of(rest.encode()), "fractions": figures_of(fractions)}


def frozen_run(room: Path, name: str) -> dict[str, Any]:
    """Digests of a run's questions, reports and totals, and what describes its model."""
    config = RUNS[name](room)
    store = Store(room / "work")
    if config.model.in_rounds:
        chain = RoundsChain(store, config).converse()
        asked = [question["question"] for question in chain.asked]
        answered = [report["reports"] for reports in chain.answered for report in reports]
        totals, model = chain.transcripts, chain.model["model"]
    else:
        steps = Chain(store, config)
        asked, answered = [steps.protocol], [report["reports"] for report in steps.reports]
        totals, model = [steps.totals["totals"]], steps.model["model"]
    parts = {"questions": asked, "reports": answered, "totals": totals}
    (path,) = store.files(model)
    return {
        part: digest_of(*sorted(rows_of(store, manifest) for manifest in manifests))
        for part, manifests in parts.items()
    } | {"model": describe_model(path.read_bytes())}


def drawn_reports(choice: str) -> str | list[float]:
    """200 reports drawn with fixed coins, of a label of two classes and of a number: the digest of their bytes, or the figures
    of fractions.
    """
    values = np.arange(200) % 9
    found = []
    for mechanism in (mechanism_for(choice, 1.0, 4, 2), number_mechanism_for(choice, 1.0, 4)):
        reports = mechanism.randomize(values % mechanism.n_values, Words.seeded(np.random.SeedSequence(5)))
        is_packed = reports.ndim > 1 and reports.dtype.kind != "f"
        found.append(mechanism.pack(reports) if is_packed else reports)
    if any(reports.dtype.kind == "f" for reports in found):
        return figures_of(np.concatenate([reports.ravel() for reports in found]))
    return digest_of(*(reports.tobytes() for reports in found))


def frozen() -> dict[str, Any]:
    return json.loads(FILE.read_text())


@pytest.mark.parametrize("name", RUNS)
def test_a_frozen_run_publishes_receives_and_learns_what_it_did(tmp_path, name):
    found, wanted = frozen_run(tmp_path, name), frozen()["runs"][name]
    fractions = found["model"].pop("fractions")
    assert fractions == pytest.approx(wanted["model"].pop("fractions"), rel=1e-6, abs=1e-9)
    assert found == wanted


@pytest.mark.parametrize("choice", CHOICES)
def test_a_mechanism_draws_the_same_reports_from_the_same_coins(choice):
    found, wanted = drawn_reports(choice), frozen()["reports"][choice]
    assert found == (wanted if isinstance(wanted, str) else pytest.approx(wanted, rel=1e-6))


def _write() -> None:
    runs = {}
    for name in RUNS:
        with tempfile.TemporaryDirectory() as room:
            runs[name] = frozen_run(Path(room), name)
    content = {"runs": runs, "reports": {choice: drawn_reports(choice) for choice in CHOICES}}
    FILE.write_text(json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(_write())
