"""The report that a page draws is one of its mechanism, whichever that is, and of nobody."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from chain import Chain, RoundsChain, fares, fares_config, rides, rides_config, shells, shells_config

from ldptree.mechanisms import MECHANISMS
from ldptree.protocol.protocol import Protocol
from storage.store import Store
from tasks.artifacts import read_model, read_protocol, read_published
from tasks.page.data import Boxes
from tasks.page.example import (
    MOST_CELLS,
    MOST_LEVELS,
    draw_example,
    draw_example_in_rounds,
    draw_report,
)


@pytest.fixture(scope="module")
def chain(tmp_path_factory: pytest.TempPathFactory) -> Chain:
    folder = tmp_path_factory.mktemp("run")
    return Chain(Store(folder / "work"), rides_config(rides(folder / "rows.csv", 900, 1), evaluate=False))


@pytest.fixture(scope="module")
def protocol(chain: Chain) -> Protocol:
    return read_protocol(chain.store, chain.protocol)


def _drawn(protocol: Protocol, name: str, cell: int = 1, level: int = 1) -> Boxes:
    mechanism = MECHANISMS[name].for_budget(2.0, protocol.n_cells, protocol.n_classes)
    return draw_report(replace(protocol, mechanism=mechanism, epsilon=2.0), cell, level)


@pytest.mark.parametrize("name", MECHANISMS)
def test_a_report_of_every_mechanism_is_drawn(protocol: Protocol, name: str) -> None:
    boxes = _drawn(protocol, name)
    marked = sum(text == "x" for text in (*boxes.sent, *boxes.outside))
    if name == "grr":
        assert marked == 1
    elif name == "signed_subset":
        assert marked == MECHANISMS[name].for_budget(2.0, protocol.n_cells, 2).describe().size
        pairs = np.array([text == "x" for text in boxes.sent]).reshape(-1, 2)
        assert (pairs.sum(axis=1) <= 1).all(), "no set has both labels of a kind"
    elif name == "ss":
        assert marked == MECHANISMS[name].for_budget(2.0, protocol.n_cells, 2).describe().size
    elif "laplace" in name:
        assert all(any(map(str.isdigit, text)) for text in boxes.sent)
        assert boxes.outside == ()


@pytest.mark.parametrize("name", ["grr", "ss", "oue"])
def test_of_a_large_report_the_own_boxes_and_those_that_fit_are_drawn(name: str) -> None:
    mechanism = MECHANISMS[name].for_budget(8.0, 300, 12)
    large: Any = SimpleNamespace(
        n_cells=300, n_classes=12, mechanism=mechanism
    )  # what of a protocol a report needs
    boxes = draw_report(large, 250, 9)
    assert (len(boxes.cells), len(boxes.levels)) == (MOST_CELLS, MOST_LEVELS)
    assert 250 in boxes.cells
    assert 9 in boxes.levels
    assert boxes.n == 3601
    if name == "grr":
        assert sum(text == "x" for text in (*boxes.sent, *boxes.outside)) == 1


def test_an_example_needs_nothing_but_what_is_published(chain: Chain, protocol: Protocol) -> None:
    """It is drawn of the protocol and the specification alone, so that no row can be in it; and twice the same."""
    one, other = (
        draw_example(Protocol.from_json(protocol.to_json()), chain.config.dataset, ()) for _ in range(2)
    )
    assert one == other
    assert one is not None


@pytest.mark.parametrize("mechanism", ["randomized_response", "laplace"])
def test_a_number_that_is_sent_apart_is_drawn_beside_its_cell(tmp_path: Path, mechanism: str) -> None:
    path = fares(tmp_path / "rows.csv", 900, 1)
    apart = {"mechanism": mechanism}
    chain = Chain(Store(tmp_path / "work"), fares_config(path, privacy=apart, evaluate=False))
    protocol = read_protocol(chain.store, chain.protocol)
    example = draw_example(protocol, chain.config.dataset, ())
    assert example is not None
    assert example.boxes is not None
    assert example.number is not None
    low, high = protocol.label_range
    assert low <= example.number.true <= high
    assert example.number.sent != example.number.true
    if mechanism == "randomized_response":
        assert example.boxes.n == protocol.n_cells + 1
        steps = (example.number.sent - low) / (high - low) * (protocol.mechanism.n_levels - 1)
        assert steps == pytest.approx(round(steps), abs=1e-6)  # whole steps leave, however far out
    else:
        assert example.boxes.n == example.boxes.n_drawn == 2 * protocol.n_cells
        own = float(example.boxes.sent[2 * example.cell + 1].replace("\u2212", "-"))
        assert (example.number.sent - low) / (high - low) - 0.5 == pytest.approx(own, abs=0.051)


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
        draw = {"protected": {*config.features.private}, "label_range": (0.0, 20.0), "whole": ()}
        one, other = (draw_example_in_rounds(question, encoding, config.dataset, **draw) for _ in range(2))
        assert one == other
        assert {name for name, _ in one.row[:-1]} <= {name.replace("_", " ") for name in draw["protected"]}
        assert one.row[-1][0] == config.dataset.target
        figures = question.describe().figures
        if one.number is not None:
            assert one.boxes is None
            assert figures["low"] - 1e-9 <= one.number.true <= figures["high"] + 1e-9
            assert one.number.sent != one.number.true
        else:
            assert one.boxes is not None
            assert one.cell in one.boxes.cells
            assert one.boxes.n <= figures.get("values", figures.get("cells"))
            n_marked = sum(text == "x" for text in one.boxes.sent)
            assert n_marked == {"ss": figures.get("size"), "grr": 1}.get(
                question.describe().mechanism, n_marked
            )
