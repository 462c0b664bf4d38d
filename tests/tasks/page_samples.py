"""Facts of made-up runs for the tests of the page: a likely one, and those a page has to bear."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np

from tasks.page.facts import (
    CellFacts,
    CheckFacts,
    DiscrepancyFacts,
    Evidence,
    Facts,
    FailureFacts,
    InfluenceFacts,
    NodeFacts,
    RowFacts,
    ScoreFacts,
    Span,
    StepFacts,
    StepState,
    Zone,
)

HOSTILE = "<script>fetch('//evil.example')</script>\"'&`|{{ 7*7 }}"
_COLUMNS = (
    ("fare", "$", (4.5, 61.0)),
    ("trip miles", "", (0.2, 19.0)),
    ("trip seconds", "", (120, 4000)),
    ("hour of day", "", (1, 23)),
    ("pickup area is The Loop", None, None),
    ("dropoff area is O'Hare", None, None),
)

SAMPLES = (
    "sample",
    "hostile",
    "long_names",
    "one_cell",
    "many_cells",
    "four_classes",
    "unevaluated",
    "failed",
)
"""The functions here that make one, by name."""


def sample() -> Facts:
    """A likely run: 300,000 simulated trips, LPCT, joint reports by oue at epsilon 2."""
    return _run(n_cells=32, seed=5)


def hostile() -> Facts:
    """Names that try to be markup, wherever the data have a say."""
    facts = _run(n_cells=6, seed=1, feature=f"company is {HOSTILE}")
    return replace(
        facts,
        name=HOSTILE,
        title=HOSTILE,
        noun=HOSTILE,
        nouns=HOSTILE,
        target=HOSTILE,
        classes=("cash", HOSTILE),
        positive=HOSTILE,
        cells=tuple(replace(cell, decision=HOSTILE) for cell in facts.cells),
        where=f"company = '{HOSTILE}'",
        public_rule=HOSTILE,
        public_columns=(HOSTILE,),
        checks=(CheckFacts(name=HOSTILE, zone="public", ok=False, severity="warn", detail=HOSTILE),),
        config={HOSTILE: HOSTILE},
        command=HOSTILE,
        warnings=(HOSTILE,),
    )


def long_names() -> Facts:
    """Classes whose names do not fit into a picture."""
    return _run(n_cells=8, seed=6, classes=("cash " * 24, "c" * 120))


def one_cell() -> Facts:
    """No split was worth it."""
    return replace(_run(n_cells=1, seed=2), partition="cart")


def many_cells(n_cells: int = 2000) -> Facts:
    """A very large tree."""
    return _run(n_cells=n_cells, seed=3)


def four_classes() -> Facts:
    """A label of four values, grr."""
    classes = ("walks", "cycles", "drives", "takes the train")
    facts = _run(n_cells=8, seed=4, classes=classes)
    return replace(facts, oracle="grr", k=33, p=0.1876, q=0.0254, discrepancy=facts.discrepancy)


def unevaluated() -> Facts:
    """A release: nothing was held back, noise from the operating system."""
    facts = sample()
    rows = tuple(replace(row, held_out=0) if row.zone == "private" else row for row in facts.rows)
    return replace(
        facts,
        ours=None,
        baselines=(),
        n_test=0,
        n_scored=0,
        seeded=False,
        duplicates=None,
        holder="taxi_id",
        rows=rows,
    )


def failed() -> Facts:
    """The validation stopped the run before any report."""
    facts = sample()
    checks = (
        CheckFacts(
            name="fare is between 0 and 10,000",
            zone="public",
            ok=False,
            detail="3 of 24,102 rows: -4.5 in line 812, -1 in line 4,003, 12,000 in line 9,977 of trips.csv",
        ),
        CheckFacts(name="payment_type is one of its declared values", zone="private", ok=False),
        CheckFacts(name="trip_seconds is rarely missing", zone="private", ok=False, severity="warn"),
        *facts.checks,
    )
    states: tuple[StepState, ...] = ("computed", "failed")
    steps = tuple(replace(step, state=state) for step, state in zip(facts.steps, states, strict=False))
    message = (
        "trips.csv, 2 checks failed: fare is between 0 and 10,000 (public); payment_type is one of its "
        "declared values (private). Mend the file, or edit the suite."
    )
    return Facts(
        name=facts.name,
        title=facts.title,
        simulated_data=True,
        created=facts.created,
        version=facts.version,
        command=facts.command,
        estimator="lpct",
        epsilon=2.0,
        target=facts.target,
        noun="trip",
        nouns="trips",
        checks=checks,
        rows=(
            RowFacts(zone="public", kept=24_102, read=24_110, quarantined=8),
            RowFacts(zone="private", kept=275_017),
        ),
        steps=steps,
        seconds=3.1,
        config=facts.config,
        versions=facts.versions,
        failure=FailureFacts(step="validate", message=message),
    )


def scored(ours: float, public: float, lead: tuple[float, float]) -> Facts:
    """The sample with these accuracies (± 0.39 points each) and this paired interval of their difference."""
    facts = sample()
    assert facts.ours is not None
    public_only = facts.baseline("public_only")
    assert public_only is not None
    moved = replace(_at(public_only, public), lead=Span(low=lead[0], high=lead[1]))
    rest = tuple(b for b in facts.baselines if b.key != "public_only")
    return replace(facts, ours=_at(facts.ours, ours), baselines=(moved, *rest))


def _at(score: ScoreFacts, accuracy: float) -> ScoreFacts:
    interval = Span(low=accuracy - 0.0039, high=accuracy + 0.0039)
    return replace(score, metrics={**score.metrics, "accuracy": accuracy}, interval=interval)


def _run(
    *, n_cells: int, seed: int, classes: tuple[str, ...] = ("cash", "card"), feature: str | None = None
) -> Facts:
    rng = np.random.default_rng(seed)
    positive = classes[1] if len(classes) == 2 else None
    root, cells = _grow(rng, n_cells, classes, feature)
    discrepancy = DiscrepancyFacts(is_found=True, varies=True, mean=0.061, sd=0.011)
    return Facts(
        name="quickstart",
        title="Simulated Chicago taxi trips, card against cash",
        noun="trip",
        nouns="trips",
        simulated_data=True,
        created="2026-11-21T11:28:12+00:00",
        version="0.1.0",
        command="ldptree run configs/quickstart.toml --set privacy.epsilon=2",
        estimator="lpct",
        partition="cart",
        mechanism="joint",
        oracle="oue",
        lam="learned",
        prune="smooth",
        target="payment_type",
        classes=classes,
        positive=positive,
        k=n_cells * len(classes) + 1,
        p=0.5,
        q=0.1192,
        epsilon=2.0,
        epsilon_exact=1.9999999981,
        epsilon_spent=2.0,
        largest_spend=3.5,
        n_questions=2,
        lifetime_epsilon=4.0,
        holder="row",
        public_rule="company_id = 12",
        public_columns=("company_id",),
        where="payment_type IN (0, 1)",
        seeded=True,
        form="reports",
        influence=InfluenceFacts(one=2.6, one_percent=5720.0, at_once=475),
        n_private=220_014,
        n_public=24_102,
        n_test=55_003,
        n_scored=55_003,
        n_features=93,
        n_cells=n_cells,
        depth=int(math.log2(n_cells)) + 1,
        ours=_scores(classes)[-1],
        baselines=_scores(classes)[:-1],
        cells=cells,
        tree=root,
        discrepancy=discrepancy,
        duplicates=3,
        checks=_checks(),
        rows=(
            RowFacts(zone="public", kept=24_102, held_out=0, read=24_110, quarantined=8),
            RowFacts(zone="private", kept=220_014, held_out=55_003),
        ),
        steps=_steps(),
        seconds=13.2,
        peak_rss_mb=712.0,
        cores=2,
        config={
            "name": "quickstart",
            "seed": "7",
            "dataset.name": "taxi",
            "dataset.holder": "row",
            "model.estimator": "lpct",
            "model.partition": "cart",
            "model.depth": "auto (5)",
            "privacy.epsilon": "2.0",
            "privacy.mechanism": "auto (joint, oue)",
            "simulation.noise_seed": "11",
        },
        versions={"ldptree": "0.1.0", "python": "3.11.9", "prefect": "3.8.8", "duckdb": "2.0.1"},
        digests={"protocol": "3f9c" * 16, "totals": "5b1e" * 16, "model": "77b2" * 16},
        warnings=(
            "3 test rows are exact copies of training rows.",
            "The column tips is left out: it nearly decides how a trip was paid.",
        ),
    )


def _grow(
    rng: np.random.Generator, n_cells: int, classes: tuple[str, ...], feature: str | None
) -> tuple[NodeFacts, tuple[CellFacts, ...]]:
    cells: list[CellFacts] = []

    def node(condition: str, path: tuple[str, ...], size: int, share: float, margin: float) -> NodeFacts:
        if size == 1:
            cell = _cell(rng, path, share, margin, classes)
            cells.append(cell)
            return NodeFacts(
                condition=condition,
                cells=1,
                share_private=share,
                margin=cell.margin,
                margin_sd=cell.margin_sd,
                decision=cell.decision,
                probability=cell.probability,
            )
        low, high = _split(rng, feature if not path else None, path)
        left = size // 2
        part = float(rng.uniform(0.2, 0.8))
        swing = float(rng.normal(0, 0.09))
        children = (
            node(low, (*path, low), left, share * part, margin + swing),
            node(high, (*path, high), size - left, share * (1 - part), margin - swing),
        )
        return NodeFacts(
            condition=condition,
            cells=size,
            share_private=share,
            margin=margin,
            margin_sd=None,
            decision=classes[-1] if margin > 0 else classes[0],
            probability=min(0.5 + abs(margin), 0.99),
            children=children,
        )

    root = node("", (), n_cells, 1.0, 0.06)
    return root, tuple(cells)


def _split(rng: np.random.Generator, feature: str | None, path: tuple[str, ...]) -> tuple[str, str]:
    if feature is not None:
        return feature, feature.replace(" is ", " is not ", 1)
    fresh = [row for row in _COLUMNS if not any(row[0].split(" is ")[0] in said for said in path)] or list(
        _COLUMNS
    )
    column, unit, bounds = fresh[int(rng.integers(len(fresh)))]
    if bounds is None:
        return column, column.replace(" is ", " is not ", 1)
    value = f"{unit}{rng.uniform(*bounds):,.2f}" if bounds[1] < 100 else f"{rng.uniform(*bounds):,.0f}"
    return f"{column} below {value}", f"{column} from {value}"


def _cell(
    rng: np.random.Generator, path: tuple[str, ...], share: float, margin: float, classes: tuple[str, ...]
) -> CellFacts:
    noise = min(0.0028 / max(share, 1e-6), 3.0)
    public = float(rng.uniform(0.3, 1.7)) * share
    sd = math.sqrt(1 / (1 / noise**2 + 1 / 0.03**2))
    weight = noise**-2 / (noise**-2 + 0.06**-2)
    found: Evidence = "private" if weight > 2 / 3 else "both" if weight > 1 / 3 else "public"
    difference = 0.061 + float(rng.normal(0, 0.02))
    lead = abs(margin) if len(classes) > 2 else margin
    lead = min(max(lead, -0.48), 0.48)
    best = int(margin > 0) if len(classes) == 2 else int(rng.integers(len(classes)))
    return CellFacts(
        path=path,
        share_private=share,
        share_public=public,
        raw_margin=lead + float(rng.normal(0, noise)),
        raw_sd=noise,
        public_margin=lead - difference,
        public_sd=min(0.5 / math.sqrt(max(24_102 * public, 1.0)), 0.5),
        margin=lead,
        margin_sd=sd,
        discrepancy=difference,
        discrepancy_sd=0.018,
        private_weight=weight,
        evidence=found,
        decision=classes[best],
        probability=min(0.5 + abs(lead), 0.99),
    )


def _scores(classes: tuple[str, ...]) -> tuple[ScoreFacts, ...]:
    figures = (
        ("majority", 0.553, None, None, 0.688, ""),
        ("public_only", 0.641, 0.618, 0.672, 0.655, ""),
        ("public_tree", 0.652, 0.631, 0.689, 0.641, "fitted on 20,000 of 24,102 public rows"),
        ("public_forest", 0.663, 0.644, 0.702, 0.628, "fitted on 20,000 of 24,102 public rows"),
        ("no_noise", 0.694, 0.689, 0.748, 0.573, ""),
        ("non_private", 0.701, 0.697, 0.761, 0.562, "fitted on about 100,000 of 220,014 private rows"),
        ("ours", 0.688, 0.681, 0.741, 0.581, ""),
    )
    made = []
    for key, accuracy, balanced, auc, loss, note in figures:
        metrics = {"accuracy": accuracy, "balanced_accuracy": balanced, "auc": auc, "log_loss": loss}
        made.append(
            ScoreFacts(
                key=key,
                metrics={name: value for name, value in metrics.items() if value is not None},
                interval=Span(low=accuracy - 0.0039, high=accuracy + 0.0039),
                spread=Span(low=0.6862, high=0.6893) if key == "ours" else None,
                lead=None
                if key == "ours"
                else Span(low=0.688 - accuracy - 0.002, high=0.688 - accuracy + 0.002),
                note=note,
                confusion=tuple(_confused(classes, i, accuracy) for i in range(len(classes))),
            )
        )
    return tuple(made)


def _confused(classes: tuple[str, ...], true: int, accuracy: float) -> tuple[int, ...]:
    rows = 55_003 // len(classes)
    right = round(rows * accuracy)
    return tuple(right if i == true else (rows - right) // (len(classes) - 1) for i in range(len(classes)))


def _checks() -> tuple[CheckFacts, ...]:
    columns = ("fare", "trip_miles", "trip_seconds", "hour", "pickup_area", "dropoff_area", "payment_type")
    zones: tuple[Zone, ...] = ("public", "private")
    met = [
        CheckFacts(name=f"{column} is {what}", zone=zone, ok=True)
        for zone in zones
        for column in columns
        for what in ("there and of its declared type", "never missing")
    ]
    detail = {"public": "2 of 24,102 rows: 612 and 980, the first in line 4,410"}
    unmet = [
        CheckFacts(
            name="fare is at most 500", zone=zone, ok=False, severity="warn", detail=detail.get(zone, "")
        )
        for zone in zones
    ]
    return (*met, *unmet)


def _steps() -> tuple[StepFacts, ...]:
    names = (
        "ingest",
        "validate",
        "split",
        "scale",
        "partition",
        "perturb",
        "aggregate",
        "prune",
        "evaluate",
        "report",
    )
    starts = (0.0, 1.6, 3.1, 3.6, 3.9, 5.2, 8.0, 8.9, 9.3, 12.6, 13.2)
    return tuple(
        StepFacts(
            name=name,
            state="cached" if name == "scale" else "computed",
            start=a,
            seconds=b - a,
            shards=8 if name == "perturb" else None,
        )
        for name, (a, b) in zip(names, pairwise(starts), strict=True)
    )
