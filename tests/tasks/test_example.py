"""The report that a page draws is one of its mechanism, whichever that is, and of nobody."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from chain import Chain, RoundsChain, fares, fares_config, mended, rides, rides_config, shells, shells_config
from numpy.typing import NDArray

from ldptree.coins import Words
from ldptree.errors import ConfigError
from ldptree.mechanisms import MECHANISMS
from ldptree.protocol.protocol import Protocol
from storage.store import Store
from tasks.artifacts import read_model, read_protocol, read_published, read_scaled
from tasks.example import (
    MOST_CELLS,
    MOST_LEVELS,
    REPORTS,
    TypicalRow,
    draw_boxes,
    draw_example,
    draw_example_in_rounds,
)
from tasks.page.data import Boxes


@pytest.fixture(scope="module")
def chain(tmp_path_factory: pytest.TempPathFactory) -> Chain:
    folder = tmp_path_factory.mktemp("run")
    return Chain(Store(folder / "work"), rides_config(rides(folder / "rows.csv", 900, 1), evaluate=False))


@pytest.fixture(scope="module")
def protocol(chain: Chain) -> Protocol:
    return read_protocol(chain.store, chain.protocol)


def _sums(mechanism: Any, value: int, n: int = REPORTS) -> NDArray[Any]:
    reports = mechanism.randomize(np.full(n, value), Words.seeded(np.random.SeedSequence(3)))
    return np.array([mechanism.aggregate(reports[at : at + 1]) for at in range(n)])


def _drawn(protocol: Protocol, name: str, n: int = REPORTS) -> Boxes:
    mechanism = MECHANISMS[name].for_budget(2.0, protocol.n_cells, protocol.n_classes)
    sums = _sums(mechanism, protocol.n_classes + 1, n)
    return draw_boxes(replace(protocol, mechanism=mechanism, epsilon=2.0), 1, 1, sums)


@pytest.mark.parametrize("name", MECHANISMS)
def test_a_report_of_every_mechanism_is_drawn(protocol: Protocol, name: str) -> None:
    boxes = _drawn(protocol, name)
    assert len(boxes.reports) == REPORTS
    for report in boxes.reports:
        marked = report.count("x")
        if name == "grr":
            assert marked == 1
        elif name == "signed_subset":
            assert marked == MECHANISMS[name].for_budget(2.0, protocol.n_cells, 2).describe().size
            pairs = np.array([text == "x" for text in report[: -boxes.n_outside]]).reshape(-1, 2)
            assert (pairs.sum(axis=1) <= 1).all(), "no set has both labels of a kind"
        elif name == "ss":
            assert marked == MECHANISMS[name].for_budget(2.0, protocol.n_cells, 2).describe().size
        elif "laplace" in name:
            assert all(any(map(str.isdigit, text)) for text in report)
            assert boxes.n_outside == 0


@pytest.mark.parametrize("name", [name for name in MECHANISMS if "laplace" not in name])
def test_reports_leave_the_truth_out_as_often_as_is_said(protocol: Protocol, name: str) -> None:
    """Of 4,000 within 5 standard deviations: a false alarm in a million runs."""
    mechanism = MECHANISMS[name].for_budget(2.0, protocol.n_cells, protocol.n_classes)
    if mechanism.n_levels != protocol.n_classes:
        pytest.skip("its number is drawn apart")
    boxes, figures = _drawn(protocol, name, 4_000), mechanism.describe().figures
    own = boxes.cells.index(1) * len(boxes.levels) + boxes.levels.index(1)
    kept = figures["p"] * figures.get("label_p", 1.0)
    named = np.mean([report[own] == "x" for report in boxes.reports])
    assert abs(named - kept) < 5 * np.sqrt(kept * (1 - kept) / 4_000)


@pytest.mark.parametrize("name", ["grr", "ss", "oue"])
def test_of_large_reports_the_own_boxes_and_those_that_fit_are_drawn(name: str) -> None:
    mechanism = MECHANISMS[name].for_budget(8.0, 300, 12)
    large: Any = SimpleNamespace(
        n_cells=300, n_classes=12, mechanism=mechanism
    )  # what of a protocol a report needs
    boxes = draw_boxes(large, 250, 9, _sums(mechanism, 250 * 12 + 9))
    assert 250 in boxes.cells
    assert 9 in boxes.levels
    assert boxes.n == 3601
    if name == "grr":
        assert all(report.count("x") == 1 for report in boxes.reports)
    else:
        assert (len(boxes.cells), len(boxes.levels)) == (MOST_CELLS, MOST_LEVELS)


def _typical(chain: Any, encoding: Any, classes: Any = ()) -> TypicalRow:
    rows, labels = read_scaled(chain.store, chain.scaled["scaled"])
    return TypicalRow.of(encoding, chain.config.dataset, rows, labels, whole=(), classes=classes)


def test_an_example_needs_nothing_but_what_is_published_and_public_rows(
    chain: Chain, protocol: Protocol
) -> None:
    """Drawn of the protocol, the specification and public rows alone, so that no private row can be in it; and twice the same."""
    published = Protocol.from_json(protocol.to_json())
    row = _typical(chain, published.encoding, published.classes)
    one, other = (draw_example(published, row, chain.config.dataset) for _ in range(2))
    assert one == other
    assert one is not None


@pytest.mark.parametrize("mechanism", ["randomized_response", "laplace"])
def test_a_number_that_is_sent_apart_is_drawn_beside_its_cell(tmp_path: Path, mechanism: str) -> None:
    path = fares(tmp_path / "rows.csv", 900, 1)
    apart = {"mechanism": mechanism}
    chain = Chain(Store(tmp_path / "work"), fares_config(path, privacy=apart, evaluate=False))
    protocol = read_protocol(chain.store, chain.protocol)
    example = draw_example(protocol, _typical(chain, protocol.encoding), chain.config.dataset)
    assert example is not None
    assert example.boxes is not None
    assert example.number is not None
    low, high = protocol.label_range
    assert low <= example.number.true <= high
    shares = (np.array(example.number.sent) - low) / (high - low)
    assert len(set(example.number.sent)) > 1
    if mechanism == "randomized_response":
        assert example.boxes.n == protocol.n_cells + 1
        steps = shares * (protocol.mechanism.n_levels - 1)
        assert steps == pytest.approx(np.round(steps), abs=1e-6)  # whole steps leave, however far out
    else:
        assert example.boxes.n == 2 * protocol.n_cells
        at = 2 * example.boxes.cells.index(example.cell) + 1
        own = [float(report[at].replace("\u2212", "-")) for report in example.boxes.reports]
        assert shares - 0.5 == pytest.approx(np.array(own), abs=0.051)


def _error(chain: Chain, protocol: Protocol, row: TypicalRow) -> float:
    """The public model's error on a row, of several classes on the row's own; or the number itself."""
    if protocol.base is None:
        return row.label
    labels = np.array([row.label if chain.config.is_numeric else int(row.label)])
    errors = protocol.base.errors(protocol.encoding, row.values, labels)[0]
    return float(errors[int(row.label) if errors.size > 1 else 0])


@pytest.mark.parametrize("mechanism", [name for name in MECHANISMS if "laplace" not in name])
@pytest.mark.parametrize(
    "kind", ["an error", "an error of three classes", "an error of a number", "a number"]
)
def test_what_a_coin_rounds_is_no_truth_and_both_coins_leave_it_out_as_often_as_is_said(
    rounded: dict[str, Chain], kind: str, mechanism: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The truth is the level nearest to the exact error or number. Of 4,000 within 5 standard deviations."""
    chain = rounded[kind]
    protocol = read_protocol(chain.store, chain.protocol)
    sent = MECHANISMS[mechanism].for_budget(2.0, protocol.n_cells, protocol.n_classes)
    try:
        protocol = replace(protocol, mechanism=sent, epsilon=2.0)
    except ConfigError:
        pytest.skip("it carries no such number")
    row = _typical(chain, protocol.encoding, getattr(protocol.base, "labels", ()))
    exact, monkey = _error(chain, protocol, row), monkeypatch
    monkey.setattr("tasks.example.REPORTS", 4_000)
    example = draw_example(protocol, row, chain.config.dataset)
    assert example is not None
    assert example.boxes is not None
    if example.number is not None:
        assert example.number.true == exact
        return
    levels = np.linspace(*protocol.label_range, protocol.n_classes)
    assert example.rounded == exact
    assert example.level == np.abs(levels - exact).argmin()
    boxes = example.boxes
    own = boxes.cells.index(example.cell) * len(boxes.levels) + boxes.levels.index(example.level)
    kept = 1.0 - (example.left_out or 0.0)
    named = np.mean([report[own] == "x" for report in boxes.reports])
    assert abs(named - kept) < 5 * np.sqrt(kept * (1 - kept) / 4_000)


@pytest.fixture(scope="module")
def rounded(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Chain]:
    folder = tmp_path_factory.mktemp("rounded")
    three = np.array(["app", "card", "cash"])[np.random.default_rng(2).choice(3, 900, p=(0.2, 0.5, 0.3))]
    of_three = {"positive": None, "classes": ["app", "card", "cash"]}
    paths = (
        rides(folder / "a.csv", 900, 1),
        rides(folder / "b.csv", 900, 1, paid=three),
        fares(folder / "c.csv", 900, 1),
    )
    configs = {
        "an error": mended(rides_config, paths[0], evaluate=False),
        "an error of three classes": mended(rides_config, paths[1], dataset=of_three, evaluate=False),
        "an error of a number": mended(fares_config, paths[2], evaluate=False),
        "a number": fares_config(paths[2], evaluate=False),
    }
    return {kind: Chain(Store(folder / kind), config) for kind, config in configs.items()}


@pytest.mark.parametrize(
    "changes",
    [
        {"privacy": {"epsilon": 4.0}},
        {"model": {"estimator": "histoftree", "t": 2, "s": 1, "p": 1}},
        {
            "model": {"estimator": "histoftree", "t": 2, "s": 1, "p": 1, "mechanism": "randomized_response"},
        },
    ],
)
def test_of_every_question_of_a_round_a_report_is_drawn_that_its_holder_can_send(
    tmp_path: Path, changes: dict[str, Any]
) -> None:
    path = shells(tmp_path / "shells.parquet", 900, 1)
    config = shells_config(path, evaluate=False, **changes)
    chain = RoundsChain(Store(tmp_path / "work"), config).converse()
    encoding = read_model(chain.store, chain.model["model"]).encoding
    asked: list[Any] = [read_published(chain.store, one.question()) for one in chain.conversation.whole]
    assert len(asked) > 1
    for question in asked:
        protected = {*config.features.private}
        one, other = (
            draw_example_in_rounds(question, encoding, _typical(chain, encoding), protected=protected)
            for _ in range(2)
        )
        assert one == other
        assert {name for name, _ in one.row[:-1]} <= {name.replace("_", " ") for name in protected}
        assert one.row[-1][0] == config.dataset.target
        figures = question.describe().figures
        if one.number is not None:
            assert one.boxes is None
            assert figures["low"] - 1e-9 <= one.number.true <= figures["high"] + 1e-9
            assert set(one.number.sent) != {one.number.true}
        else:
            assert one.boxes is not None
            assert one.cell in one.boxes.cells
            assert one.boxes.n <= figures.get("values", figures.get("cells"))
            for report in one.boxes.reports:
                n_marked = report.count("x")
                assert n_marked == {"ss": figures.get("size"), "grr": 1}.get(
                    question.describe().mechanism, n_marked
                )
