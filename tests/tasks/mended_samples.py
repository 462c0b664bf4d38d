"""Pages of corrections for the tests: made-up trips, a public model mended for real, and those that a page has to bear."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import page_samples

from ldptree.encoding import CategoricalFeature, Encoding, NumericFeature
from ldptree.families.correction_plan import make_plan
from ldptree.families.corrections import Observed, correct
from ldptree.families.fit_correction import Public, PublicSide, corrected, protocol_of
from ldptree.metrics.classes import score
from ldptree.metrics.intervals import accuracy_interval, paired_lead
from ldptree.metrics.numbers import bins_of, mse_interval, paired_mse_lead, score_numbers
from ldptree.models.corrected import CorrectedModel, shares_of
from ldptree.oracles import Words
from ldptree.protocol.protocol import Protocol
from ldptree.protocol.totals import Totals
from tasks.mended_report import mended_facts
from tasks.page.basic_facts import InfluenceFacts
from tasks.page.mended_facts import MendedFacts, MendedNode, MendFacts
from tasks.report import _coins

COMPANIES = ("Flash Cab", "Sun Taxi", "Globe Taxi", "City Service")
COLUMNS = ("trip_miles", "hour_of_day", "company")
LABELS: dict[str, tuple[str, ...]] = {
    "two": ("cash", "card"),
    "four": ("walks", "cycles", "drives", "takes the train"),
    "number": (),
}

MENDED_SAMPLES = (
    "mended_sample",
    "mended_everywhere",
    "nothing_found",
    "nothing_zero",
    "mended_release",
    "mended_classes",
    "mended_number",
    "mended_number_alike",
    "mended_line",
    "mended_line_alone",
    "mended_as_a_whole",
    "mended_without_public",
    "many_corrections",
    "hostile_corrections",
)
"""The functions here that make one, by name."""


def people(n: int, seed: int, kind: str, *, shift: float) -> tuple[np.ndarray, np.ndarray]:
    """n made-up trips as a raw matrix and their labels; people differ by `shift` on trips over 9 miles by other companies than
    the first.
    """
    rng = np.random.default_rng(seed)
    miles, hour = rng.gamma(1.8, 3.4, n), rng.integers(0, 24, n)
    company = rng.choice(len(COMPANIES), n, p=[0.4, 0.3, 0.2, 0.1])
    raw = np.column_stack([miles, hour, company]).astype(np.float64)
    differs = shift * ((miles > 9) & (company > 0)) + 0.25 * shift
    base = 0.3 + 0.025 * np.minimum(miles, 12) + 0.1 * (hour > 16)
    if kind == "number":
        return raw, 3.25 + 2.25 * miles + 2 * (hour > 16) + 16 * differs + rng.normal(0, 2.5, n)
    if kind == "two":
        return raw, (rng.random(n) < np.clip(base + differs, 0.02, 0.98)).astype(np.int64)
    odds = np.stack(
        [1.2 - 0.1 * miles, 1.0 - 0.05 * miles, 0.02 * miles, 0.1 * hour / 8 + 4 * differs], axis=1
    )
    return raw, (odds + rng.gumbel(size=(n, 4))).argmax(axis=1)


@cache
def learned(
    kind: str = "two",
    *,
    n_private: int = 40_000,
    n_public: int = 3_000,
    epsilon: float = 4.0,
    base: str = "tree",
    depth: int | str = 3,
    shift: float = 0.18,
    n_levels: int | str = "auto",
    columns: tuple[str, ...] = COLUMNS,
    companies: tuple[str, ...] = COMPANIES,
    classes: tuple[str, ...] | None = None,
    target: str = "payment_type",
    seed: int = 0,
    with_slope: bool = False,
) -> tuple[CorrectedModel, Protocol, Public, dict[str, Any]]:
    """A mended model of made-up trips, the question (of the first output), what public rows say, and what evaluate writes."""
    labels = LABELS[kind] if classes is None else classes
    (raw, y), (private, y_private), (test, y_test) = (
        people(n, seed + i, kind, shift=shift * (i > 0)) for i, n in enumerate((n_public, n_private, 4_000))
    )
    seen = raw if n_public else np.array([[0.0, 0.0, 0.0], [40.0, 23.0, 3.0]])
    encoding = Encoding(
        (
            NumericFeature.from_public(columns[0], seen[:, 0]),
            NumericFeature.from_public(columns[1], seen[:, 1]),
            CategoricalFeature(columns[2], companies),
        )
    )
    side = PublicSide.of(
        base,
        encoding,
        encoding.encode(raw),
        y,
        n_classes=len(labels),
        partition="cart" if n_public else "max-edge",
        with_slope=with_slope,
    )
    m = side.base.n_outputs
    plan = make_plan(side.known, epsilon=epsilon, n_holders=n_private // m, depth=depth, n_levels=n_levels)
    public = Public.of(side, plan)
    protocol = protocol_of(plan, encoding, side.base, labels, target=target, epsilon=epsilon)
    words = Words.seeded(np.random.SeedSequence([seed, 0]))
    outputs = protocol.draw_outputs(n_private, words)
    values = protocol.values(private, y_private, words=words, outputs=outputs)
    totals, exact = [], []
    cells, residuals = (
        protocol.cells(private),
        protocol.base.all_residuals(encoding, private, y_private),
    )
    for k in range(m):
        is_on = slice(None) if outputs is None else outputs == k
        counts = np.bincount(values[is_on], minlength=plan.mechanism.n_values)
        drawn = plan.mechanism.sample_totals(counts, np.random.default_rng([seed, k]))
        totals.append(
            Totals.from_raw(
                drawn,
                mechanism=plan.mechanism,
                n_private=int(counts.sum()),
                depth=plan.partition.max_depth,
            )
        )
        exact.append(Observed.exactly(plan, cells, residuals[:, k]))
    model = corrected(protocol, public, totals, epsilon=epsilon)
    silent = replace(model, corrections=correct(plan, exact))
    said = {
        "ours": model.answers(test),
        "public_only": model.public_answers(test),
        "no_noise": silent.answers(test),
    }
    content = _content(kind, said, y_test, model, test)
    return model, protocol, public, content


def _content(
    kind: str, said: dict[str, np.ndarray], truth: np.ndarray, model: CorrectedModel, test: np.ndarray
) -> dict[str, Any]:
    """What evaluate would write."""
    cells, scores = model.cells(test), {}
    if kind == "number":
        said["constant"] = np.full((truth.size, 1), truth.mean() - 4.0)
        for key, answer in said.items():
            scores[key] = score_numbers(truth, answer[:, 0]).to_json() | {
                "interval": mse_interval(truth, answer[:, 0])
            }
            if key != "ours":
                scores[key]["lead"] = paired_mse_lead(truth, said["ours"][:, 0], answer[:, 0])
        chief = {key: (answer[:, 0] - truth) ** 2 for key, answer in said.items()}
    else:
        shares = {key: shares_of(answer) for key, answer in said.items()}
        shares["majority"] = np.tile(
            np.bincount(truth, minlength=len(model.classes)) / truth.size, (truth.size, 1)
        )
        is_right = {key: answer.argmax(axis=1) == truth for key, answer in shares.items()}
        for key, answer in shares.items():
            scores[key] = score(truth, answer, positive=1).to_json() | {
                "interval": accuracy_interval(int(is_right[key].sum()), truth.size)
            }
            if key != "ours":
                scores[key]["lead"] = paired_lead(is_right["ours"], is_right[key])
        chief = {key: right.astype(float) for key, right in is_right.items()}
    figure = float(chief["ours"].mean())

    def in_cell(cell: int) -> dict[str, Any] | None:
        here = cells == cell
        if here.sum() < 10:
            return None
        return {
            "n": int(here.sum()),
            "public": float(chief["public_only"][here].mean()),
            "ours": float(chief["ours"][here].mean()),
        }

    return {
        "kind": "correction",
        "label": "number" if kind == "number" else "class",
        "scores": scores,
        "redraws": [figure * f for f in (0.99, 0.995, 1.0, 1.003, 1.006)],
        "bins": bins_of(truth, said["ours"][:, 0]) if kind == "number" else [],
        "cells": [in_cell(cell) for cell in range(model.partition.n_leaves)],
        "duplicates": 0,
        "n_test": truth.size,
        "n_test_all": truth.size,
    }


def facts_of(
    model: CorrectedModel,
    protocol: Protocol,
    public: Public,
    content: dict[str, Any] | None,
    *,
    unit: str = "",
    **changes: Any,
) -> MendedFacts:
    """The facts of the page as report gathers them, with the rest of the run from the sample of classes."""
    like = page_samples.sample()
    force = protocol.mechanism.poisoning_bound(model.n_private)
    rows = {row.zone: row for row in like.rows}
    n_test = 0 if content is None else content["n_test"]
    common: dict[str, Any] = {
        name: getattr(like, name)
        for name in (
            "noun",
            "nouns",
            "simulated_data",
            "created",
            "version",
            "checks",
            "seeded",
            "steps",
            "seconds",
            "config",
            "versions",
        )
    }
    common |= {
        **_coins(protocol.mechanism),
        "name": "corrected",
        "title": "Simulated Chicago taxi trips",
        "command": "ldptree run configs/quickstart.toml --set privacy.epsilon=4",
        "estimator": "correction",
        "partition": "cart",
        "target": protocol.target,
        "public_rule": "consent = 'yes'",
        "public_columns": ("consent",),
        "cores": 2,
        "peak_rss_mb": 512.0,
        "digests": {"protocol": protocol.digest, "model": model.digest},
        "epsilon": protocol.epsilon,
        "epsilon_exact": protocol.epsilon_exact,
        "epsilon_spent": protocol.epsilon,
        "largest_spend": protocol.epsilon,
        "n_questions": 1,
        "k": protocol.k,
        "influence": InfluenceFacts(
            one=force.one, one_percent=force.one_percent, at_once=force.totals_at_once
        ),
        "n_private": model.n_private,
        "n_public": model.n_public,
        "n_test": n_test,
        "n_features": model.encoding.n_encoded,
        "n_cells": protocol.n_cells,
        "depth": model.partition.max_depth,
        "rows": (
            replace(rows["public"], kept=model.n_public, read=model.n_public, quarantined=0),
            replace(rows["private"], kept=model.n_private, held_out=n_test, read=None),
        ),
    }
    rows = np.empty((0, model.encoding.n_encoded), np.float32)
    return mended_facts(common | changes, model, protocol, public, rows, content, {}, names={}, unit=unit)


def mended_sample() -> MendedFacts:
    """A likely run: private people differ on long trips by some companies."""
    return facts_of(*learned())


def mended_everywhere() -> MendedFacts:
    """Wrong by about as much on everybody."""
    return facts_of(*learned(depth=1, shift=0.6, epsilon=1.0, n_public=600, seed=3))


def nothing_found() -> MendedFacts:
    """Private people are like the public ones; a base that knows how unsure it is."""
    return facts_of(*learned(shift=0.0, n_private=4_000, epsilon=1.0))


def nothing_zero() -> MendedFacts:
    """The same with a base that does not: nothing is added at all."""
    return facts_of(*learned(shift=0.0, n_private=4_000, epsilon=1.0, base="boosting"))


def mended_release() -> MendedFacts:
    """A release: nothing was held back, noise from the operating system."""
    model, protocol, public, _ = learned()
    return facts_of(model, protocol, public, None, seeded=False)


def mended_classes() -> MendedFacts:
    """A label of four values."""
    return facts_of(*learned("four", depth=3, epsilon=4.0, shift=0.4, target="mode", n_private=40_000))


def mended_number() -> MendedFacts:
    """A label that is a number."""
    return facts_of(*learned("number", target="fare", depth=3, n_private=40_000), unit="$")


def mended_number_alike() -> MendedFacts:
    """The same where nothing is wrong."""
    return facts_of(*learned("number", target="fare", shift=0.0, n_private=4_000, epsilon=1.0), unit="$")


def mended_line() -> MendedFacts:
    """A label that is a number, and a straight line beside the tree."""
    return facts_of(
        *learned("number", target="fare", depth=2, n_public=300, n_private=20_000, with_slope=True), unit="$"
    )


def mended_line_alone() -> MendedFacts:
    """The same where cells are alike and too few report for them."""
    return facts_of(
        *learned(
            "number",
            target="fare",
            depth=2,
            shift=0.0,
            n_public=300,
            n_private=9_000,
            epsilon=1.5,
            with_slope=True,
        ),
        unit="$",
    )


def mended_as_a_whole() -> MendedFacts:
    """One cell: everybody is asked the same."""
    return facts_of(*learned(depth=0))


def mended_without_public() -> MendedFacts:
    """No public row: the public model is one answer for all."""
    return facts_of(*learned(n_public=0, depth=3))


def many_corrections() -> MendedFacts:
    """Far more cells than a page can draw."""
    return facts_of(*learned(depth=8, n_public=5_000, n_levels=2, n_private=150_000))


def hostile_corrections() -> MendedFacts:
    """Names that try to be markup, wherever the data have a say."""
    evil = page_samples.HOSTILE
    facts = facts_of(
        *learned(
            columns=tuple(f"{name} {evil}" for name in COLUMNS),
            companies=(evil, *COMPANIES[1:]),
            classes=("cash", evil),
            target=evil,
        ),
        name=evil,
        title=evil,
        noun=evil,
        nouns=evil,
        where=f"company = '{evil}'",
        public_rule=evil,
        public_columns=(evil,),
        command=evil,
        config={evil: evil},
        warnings=(evil,),
    )
    assert facts.ours is not None
    return replace(facts, ours=replace(facts.ours, name=evil, note=evil))


def with_corrections(facts: MendedFacts, found: list[tuple[float, float]], whole: MendFacts) -> MendedFacts:
    """The facts with these corrections and sds of the first output, cell by cell, and this average."""
    assert facts.tree is not None
    cells = tuple(
        replace(
            cell,
            outputs=(
                replace(
                    cell.outputs[0],
                    correction=value,
                    sd=sd,
                    corrected=None if cell.outputs[0].public is None else cell.outputs[0].public + value,
                ),
                *cell.outputs[1:],
            ),
        )
        for cell, (value, sd) in zip(facts.cells, found, strict=True)
    )

    def moved(node: MendedNode) -> MendedNode:
        if node.cell is None:
            return replace(node, children=tuple(moved(child) for child in node.children))
        value, sd = found[node.cell]
        return replace(node, outputs=(MendFacts(correction=value, sd=sd), *node.outputs[1:]))

    root = replace(moved(facts.tree), outputs=(whole, *facts.tree.outputs[1:]))
    return replace(facts, cells=cells, tree=root)
