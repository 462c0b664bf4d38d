"""Every figure, sentence and mark of a page is worked out anew from what the run's steps wrote (`page_truth`), on own data of
many kinds; and the checker sees a page that is wrong.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytest
from chain import Chain, RoundsChain, fares, fares_config, mended, rides, rides_config, shells, shells_config
from page_truth import classes, corrections, numbers, rounds, stopped
from page_truth.artifacts import Run
from page_truth.reading import read

from storage.store import Store
from tasks.page.render import render
from tasks.progress import Timeline
from tasks.report import failed_facts

N = 900
RNG = np.random.default_rng(3)
TWO = {"text": ["no", "yes"], "bits": [0, 1], "quoted": ["up to 3", "above 3 to 1,000"]}
LETTERS = list("abcdef")


def _labels(values: list[Any], *, n: int = N, shares: list[float] | None = None) -> dict[str, Any]:
    """A column of labels that go with nothing, but differ between public and private rows."""
    weights = np.array(shares or [1.0] * len(values), dtype=float)
    public = RNG.choice(len(values), n, p=weights / weights.sum())
    private = RNG.choice(len(values), n, p=weights[::-1] / weights.sum())
    is_public = np.arange(n) % 3 == 0
    # in every third row at least one of each, so that all are met in public rows
    found = np.where(is_public, public, private)
    found[: 3 * len(values)] = np.repeat(np.arange(len(values)), 3)
    return {"paid": np.array(values)[found]}


def _no_positive(**dataset: Any) -> dict[str, Any]:
    return {"dataset": {"positive": None} | dataset}


def _mostly_slow(cases: Iterable[str], *quick: str) -> list[Any]:
    """Names of cases, all but a few marked slow."""
    return [name if name in quick else pytest.param(name, marks=pytest.mark.slow) for name in cases]


CLASSES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "two classes with a positive one": ({}, {}),
    "two classes without": ({}, _no_positive()),
    "0 and 1": (_labels([0, 1], shares=[0.7, 0.3]), _no_positive()),
    "0 and 1, the positive one declared": (_labels([0, 1]), {"dataset": {"positive": 0}}),
    "words with figures": (_labels(["up to 3", "59 %"]), _no_positive()),
    "imbalanced": (_labels(["rare", "usual"], shares=[0.03, 0.97]), _no_positive()),
    "three classes": (_labels(["a", "b", "c"], shares=[0.6, 0.3, 0.1]), _no_positive()),
    "six classes": (_labels(LETTERS), _no_positive()),
    "a release": ({}, {"evaluate": False}),
    "a release of six classes": (_labels(LETTERS), _no_positive() | {"evaluate": False}),
    "one cell": ({}, {"model": {"depth": 0}}),
    "little budget": ({}, {"privacy": {"epsilon": 0.1}}),
    "real noise": ({}, {"simulation": {"noise_seed": None}, "evaluate": False}),
    "capped baselines": (
        {},
        {"evaluation": {"test_rows": 40, "private_rows": 50, "public_rows": 60, "redraws": 0}},
    ),
    **{
        f"mechanism {name}": ({}, {"privacy": {"mechanism": name}})
        for name in (
            "oue",
            "ss",
            "olh",
            "signed_subset",
            "randomized_response",
            "discrete_laplace",
            "laplace",
        )
    },
}


@pytest.fixture
def run(tmp_path: Any) -> Callable[..., Run]:
    """A run on made-up rows: of `make` with these columns, by a configuration of `configured` with these changes."""

    def run(
        make: Callable[..., Any], configured: Callable[..., Any], columns: Any, changes: Any, n: int = N
    ) -> Run:
        path = make(tmp_path / "rows.csv", n, 1, **columns)
        return Run(Chain(Store(tmp_path / "work"), configured(path, **changes)))

    return run


@pytest.mark.parametrize("name", _mostly_slow(CLASSES, "two classes without", "three classes"))
def test_every_statement_of_a_page_of_classes_is_so(run: Any, name: str) -> None:
    columns, changes = CLASSES[name]
    made = run(rides, rides_config, columns, changes)
    assert classes.check(made) == []


NUMBERS: dict[str, dict[str, Any]] = {
    "a number": {},
    "a release": {"evaluate": False},
    "parts of cells": {"model": {"depth": "auto"}, "privacy": {"epsilon": 1.0}},
    "one cell": {"model": {"depth": 0}},
    "public rows weighed": {"model": {"lam": 1.0}},
    **{
        f"mechanism {name}": {"privacy": {"mechanism": name}}
        for name in ("oue", "signed_subset", "randomized_response", "laplace")
    },
}


@pytest.mark.parametrize("name", _mostly_slow(NUMBERS, "parts of cells"))
def test_every_statement_of_a_page_of_numbers_is_so(run: Any, name: str) -> None:
    made = run(fares, fares_config, {}, NUMBERS[name])
    assert numbers.check(made) == []


def _corrected(*paths: Any, **changes: Any) -> Any:
    return mended(rides_config, *paths, **changes)


def _corrected_fares(*paths: Any, **changes: Any) -> Any:
    return mended(fares_config, *paths, **changes)


THREE = {"dataset": {"positive": None, "classes": ["a", "b", "c"]}}
CORRECTIONS: dict[str, tuple[Any, Any, dict[str, Any], dict[str, Any], int]] = {
    "two classes": (rides, _corrected, {}, {}, N),
    "two classes without a positive one": (
        rides,
        _corrected,
        {},
        {"dataset": {"positive": None, "classes": ["card", "cash"]}},
        N,
    ),
    "0 and 1": (rides, _corrected, _labels([0, 1], shares=[0.9, 0.1]), {"dataset": {"positive": 1}}, N),
    "three classes far apart": (
        rides,
        _corrected,
        _labels(["a", "b", "c"], n=6000, shares=[0.7, 0.2, 0.1]),
        THREE,
        6000,
    ),
    "six classes": (
        rides,
        _corrected,
        _labels(LETTERS, n=3000),
        {"dataset": {"positive": None, "classes": LETTERS}},
        3000,
    ),
    "a release": (rides, _corrected, {}, {"evaluate": False}, N),
    "a number": (fares, _corrected_fares, {}, {}, N),
    "a number and a straight line": (fares, _corrected_fares, {}, {"privacy": {"epsilon": 4.0}}, 12_000),
    "a release of a number": (fares, _corrected_fares, {}, {"evaluate": False}, N),
    "one cell": (rides, _corrected, {}, {"model": {"depth": 0}}, N),
}


@pytest.mark.parametrize("name", _mostly_slow(CORRECTIONS, "0 and 1"))
def test_every_statement_of_a_page_of_a_correction_is_so(run: Any, name: str) -> None:
    make, configured, columns, changes, n = CORRECTIONS[name]
    made = run(make, configured, columns, changes, n)
    assert corrections.check(made) == []


ROUNDS: dict[str, dict[str, Any]] = {
    "public features": {"privacy": {"epsilon": 4.0}},
    "public features, a release": {"evaluate": False},
    "HistOfTree": {"model": {"estimator": "histoftree"}},
    "HistOfTree with a histogram and masks of their own": {
        "model": {"estimator": "histoftree"},
        "histoftree": {"bins": 2, "binned": 1, "depth": 1, "label": "laplace"},
        "dataset": {"drop": [], "test_fraction": 0.0},
        "features": {"private": [], "protects": {"weight": "hides"}},
        "evaluate": False,
    },
}


@pytest.mark.slow
@pytest.mark.parametrize("name", ROUNDS)
def test_every_statement_of_a_page_of_rounds_is_so(tmp_path: Any, name: str) -> None:
    path = shells(tmp_path / "shells.parquet", N, 1)
    chain = RoundsChain(Store(tmp_path / "work"), shells_config(path, **ROUNDS[name])).converse()
    assert rounds.check(Run(chain)) == []


def test_every_statement_of_a_stopped_runs_page_is_so(run: Any) -> None:
    made = run(rides, rides_config, {}, {"dataset": {"ranges": {"miles": [0, 5], "hour": [0, 9]}}})
    chain, timeline = made.chain, Timeline()
    facts = failed_facts(
        chain.store, chain.config, chain.ingested, chain.checked, timeline, "ldptree run rides"
    )
    made.facts, made.page = facts.to_dict(), read(render(facts))
    assert stopped.check(made) == []


def _broken(text: str, pattern: str, change: Callable[[re.Match[str]], str], place: int) -> str:
    """A page with one match of a pattern changed."""
    found = list(re.finditer(pattern, text))[place]
    return text[: found.start()] + change(found) + text[found.end() :]


def _next(match: re.Match[str]) -> str:
    """The same text with its last figure off by three."""
    head, figure = match[0][:-1], int(match[0][-1])
    return f"{head}{(figure + 3) % 10}"


def _is_seen(made: Run, html: str, check: Callable[[Run], list[str]]) -> bool:
    """Whether a page that was changed is found untrue, or cannot be read as a page."""
    made.html, made.page = html, read(html)
    try:
        return bool(check(made))
    except (AssertionError, LookupError, ValueError):
        return True


@pytest.mark.parametrize(
    ("make", "configured", "check"),
    [
        (rides, rides_config, classes.check),
        pytest.param(fares, fares_config, numbers.check, marks=pytest.mark.slow),
        pytest.param(rides, _corrected, corrections.check, marks=pytest.mark.slow),
    ],
)
def test_the_checker_sees_every_figure_that_is_off(run: Any, make: Any, configured: Any, check: Any) -> None:
    made = run(make, configured, {}, {})
    html, body = made.html, made.html.index("<main>")
    shown = r">[^<>&]*?(?<![\w.])\d[\d,.]*\d(?=[^<>\d.][^<>]*<|<)"
    places = range(len(re.findall(shown, html[body:])))
    assert len(places) > 100
    for place in np.random.default_rng(5).choice(places, 25, replace=False).tolist():
        changed = html[:body] + _broken(html[body:], shown, _next, place)
        assert _is_seen(made, changed, check), list(re.finditer(shown, html[body:]))[place]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("make", "configured", "check"),
    [(rides, rides_config, classes.check), (fares, fares_config, numbers.check)],
)
def test_the_checker_sees_a_mark_that_stands_elsewhere(
    run: Any, make: Any, configured: Any, check: Any
) -> None:
    made = run(make, configured, {}, {})
    html = made.html
    marks = r'<circle class="mark" cx="(?!50%)\d+'
    first = html.index('class="heads"')
    for place in (0, 3, 7):
        assert _is_seen(made, html[:first] + _broken(html[first:], marks, _next, place), check)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("make", "configured", "check"),
    [
        (rides, rides_config, classes.check),
        (fares, fares_config, numbers.check),
        (fares, _corrected_fares, corrections.check),
    ],
)
def test_the_checker_sees_a_verdict_that_the_scores_do_not_bear_out(
    run: Any, make: Any, configured: Any, check: Any
) -> None:
    made = run(make, configured, {}, {})
    assert made.scores is not None
    lead = made.scores["scores"]["public_only"]["lead"]
    made.scores["scores"]["public_only"]["lead"] = [-2.0, -1.0] if lead[1] >= 0 else [1.0, 2.0]
    assert any("worse" in fault or "not so" in fault for fault in check(made))


@pytest.mark.slow
def test_the_checker_sees_a_number_that_nothing_explains(run: Any) -> None:
    made = run(rides, rides_config, {}, {})
    made.html = made.html.replace("</h1>", " Surely 17 more.</h1>")
    made.page = read(made.html)
    assert any("17" in fault for fault in classes.check(made))
