"""Gather the results of a run into one `Run`, and make its page. `tasks.page` has its look and words.

With scores on it the page belongs to the simulation's zone; without (`evaluate = false`) to the curator's, who can
write it alone.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import NDArray

from ldptree.audit.shuffled import DELTA, shuffled_epsilon
from ldptree.baselines import BASELINES
from ldptree.encoding import Encoding, NumericFeature
from ldptree.errors import ConfigError
from ldptree.mechanisms.mechanism import PoisoningBound
from ldptree.models import Model
from ldptree.models.description import Evidence, name_columns, name_level
from ldptree.planning.detection import noncentrality, smallest_errors
from ldptree.protocol.protocol import Protocol, part_sizes
from ldptree.protocol.question import PublicView, Question, QuestionDescription
from ldptree.protocol.stochastic_rounding import label_levels
from ldptree.protocol.totals import Totals
from schemas.config import RunConfig
from schemas.manifest import Manifest, Record
from schemas.tables import EvaluateConfig
from storage.store import Draft, Store
from tasks.answers.receive import UNREADABLE
from tasks.artifacts import (
    read_curves,
    read_model,
    read_public,
    read_published,
    read_scaled,
    read_scores,
    read_shown,
    read_totals,
)
from tasks.data.leaks import say_telling
from tasks.example import TypicalRow, draw_example, draw_example_in_rounds
from tasks.making import describe_making
from tasks.page.data import (
    AskedQuestion,
    AtEpsilon,
    Check,
    Example,
    Failure,
    Feature,
    Hidden,
    Influence,
    Privacy,
    Rows,
    Run,
    Scores,
)
from tasks.page.render import render
from tasks.page.units import portion
from tasks.progress import Timeline
from tasks.scoring.forecast import SHARE, planted_size
from tasks.scoring.held_back import EPSILONS
from tasks.step import NotInKey, step

ASKING = "perturb"
"""The step from which on reports are written."""
MANY_DUPLICATES = 0.01
NODES_IN_WAREHOUSE = 20_000
WIDEST = 100_000.0
"""Range of a column, up to which scaled public rows tell whether its numbers are whole."""
NAMED = 3
"""Most refused segments of an inbox that are named."""
DIGESTS = {"totals": "totals", "scaled": "public rows, scaled", "shown": "what is shown"}
"""Of the artifacts whose digests stand on the page, what they are called there."""
Published = Protocol | Question


def _zone(arguments: Mapping[str, Any]) -> Any:
    return "simulation" if "scores" in arguments["artifacts"] else "curator"


@step("report", version="46", home=_zone, retries=2, says="the run's page")
def report(
    draft: Draft,
    *,
    config: RunConfig,
    questions: Sequence[Manifest],
    artifacts: Mapping[str, Manifest],
    facts: Mapping[str, Any],
    timeline: NotInKey,
    command: NotInKey,
) -> Mapping[str, Any]:
    """Write `page.html` and `facts.json` ("page").

    Args:
        config: of the run.
        questions: every one that was asked, in order.
        artifacts: "checks", "model", "scaled"; "scores", where there are any; and what the model describes itself beside:
            "totals" and "evidence"; or "curves" and "shown".
        facts: of the steps that "ingested", "held" back and "scaled"; what was "spent"; the "form" that reports take; how many a
            campaign had received earlier.
        timeline, command: for how the run was made.
    """
    store = draft.store
    learned = read_model(store, artifacts["model"])
    asked = [read_published(store, question) for question in questions]
    rows, labels = read_scaled(store, artifacts["scaled"])
    evidence = read_evidence(
        store, config, asked[-1], artifacts, rows, labels, facts["scaled"].get("label_range")
    )
    description = learned.describe(evidence)
    last = asked[-1].describe()
    classes = tuple(
        name_level(learned.target, value, config.dataset.names)
        for value in facts["scaled"].get("classes", ())
    )
    digests = {f"question {number}": question.digest for number, question in enumerate(asked, 1)}
    digests |= {"model": learned.digest}
    digests |= {name: artifacts[part].digest for part, name in DIGESTS.items() if part in artifacts}
    whole = find_whole(learned.encoding, rows)
    typical = TypicalRow.of(learned.encoding, config.dataset, rows, labels, whole=whole, classes=classes)
    run = Run(
        **gather(config, store, artifacts["checks"], artifacts.get("scores"), facts, evidence.totals),
        privacy=describe_privacy(config, asked, learned, evidence, facts, typical),
        whole=whole,
        making=describe_making(config, command.value, timeline.value, digests),
        classes=classes,
        levels=name_levels(last, classes),
        lam=str(config.model.settings.weighting) if "lam" in config.model.settings.names() else "",
        prune=getattr(config.model.settings, "prune", ""),
        n_private=learned.n_private,
        n_cells=int(last.figures.get("cells", 0)),
        depth=int(last.figures.get("depth", 0)),
        description=description,
        finds=() if "scores" in artifacts else find_from(config, asked[-1], evidence),
        hidden=find_hidden(config, asked[-1], evidence, labels),
    )
    write_page(draft, run)
    counts = {"n_new": run.n_new, "n_earlier": run.n_earlier} if run.campaign else {}
    return {"nodes": list_nodes(learned) if evidence.totals else [], "n_questions": len(asked), **counts}


def read_evidence(
    store: Store,
    config: RunConfig,
    question: Published,
    artifacts: Mapping[str, Manifest],
    rows: NDArray[np.float32],
    labels: NDArray[Any],
    label_range: Sequence[float] | None,
) -> Evidence:
    """Read the artifacts beside which the model describes itself, as far as they exist.

    Args:
        store, config, artifacts: as of `report`.
        question: the last one.
        rows, labels: encoded public rows [n, d] and theirs [n].
        label_range: the ends of what labels may be.
    """
    ends = None if label_range is None else (float(label_range[0]), float(label_range[1]))
    evidence = Evidence(names=config.dataset.names, rows=rows, label_range=ends)
    if "shown" in artifacts:
        curves = read_curves(store, artifacts["curves"])
        evidence = replace(evidence, shown=read_shown(store, artifacts["shown"]), along=curves)
    if isinstance(question, Protocol):
        evidence = replace(
            evidence,
            totals=read_totals(store, artifacts["totals"], question),
            asked=question.partition,
            public=None if question.base is None else read_public(store, artifacts["evidence"], question),
            public_counts=None
            if question.numeric
            else question.partition.class_counts(rows, labels, question.n_classes),
        )
    return evidence


def name_levels(question: QuestionDescription, classes: tuple[str, ...]) -> tuple[str, ...]:
    """Name the levels of a report, as classes or numbers, or () if it has none."""
    figures = question.figures
    if "levels" not in figures:
        return ()
    if "low" not in figures:
        return classes
    levels = label_levels(figures["low"], figures["high"], int(figures["levels"]))
    return tuple(f"{level:g}" for level in levels)


def write_page(draft: Draft, run: Run) -> None:
    """The page and its facts."""
    folder = draft.folder("page")
    (folder / "page.html").write_text(render(run), encoding="utf-8")
    (folder / "facts.json").write_text(json.dumps(run.to_dict(), ensure_ascii=False), encoding="utf-8")


def read_facts(store: Store, page: Manifest) -> Run:
    """Read the facts that a page was made of."""
    return Run.from_dict(json.loads(store.file(page, "facts.json").read_text(encoding="utf-8")))


def gather(
    config: RunConfig,
    store: Store,
    checks: Manifest,
    scores: Manifest | None,
    facts: Mapping[str, Any],
    totals: Sequence[Totals],
) -> dict[str, Any]:
    """Gather the data, checks, rows, sizes, scores and warnings for the page of a finished run."""
    ingested, held, fitted = facts["ingested"], facts["held"], facts["scaled"]
    content = read_scores(store, scores)
    caps = caps_of(config.evaluation, fitted["n_public"], held["n_private"])
    n_public = fitted["n_public"]
    return identify(config) | {
        "checks": read_checks(store, checks),
        "rows": (
            Rows(
                zone="public",
                kept=n_public,
                read=n_public + fitted["n_unusable"] + fitted["n_not_drawn"] + _set_aside(ingested),
                quarantined=ingested["bad_public"],
            ),
            Rows(zone="private", kept=held["n_private"], held_out=held["n_test"]),
        ),
        "n_public": n_public,
        "n_test": held["n_test"],
        "public_columns": tuple(ingested["rule_columns"]),
        "columns_left_out": ingested["columns_left_out"],
        "why_chosen": facts["why_chosen"],
        "n_earlier": facts["n_earlier"],
        "scores": None if content is None else Scores.of(content, caps),
        "warnings": warnings_of(config, store, scores, totals, held | fitted),
    }


def identify(config: RunConfig) -> dict[str, Any]:
    """Identify the run and its data."""
    data = config.dataset
    return {
        "name": config.name,
        "title": data.title or data.name,
        "noun": data.noun,
        "nouns": data.nouns,
        "question": data.question,
        "simulated": data.simulated,
        "campaign": config.campaign.name or "",
        "estimator": config.model.estimator,
        "target": data.target,
        "label": config.label or "",
        "unit": data.unit if config.label == "number" else "",
        "units": dict(data.units),
        "public_rule": data.public.strip(),
        "where": (data.where or "").strip(),
    }


def describe_stop(
    config: RunConfig,
    timeline: Timeline,
    command: str,
    message: str,
    *,
    is_waiting: bool = False,
    store: Store | None = None,
    ingested: Record | None = None,
    checked: Record | None = None,
) -> Run:
    """A run that stopped before its end, with as much as it had found out.

    Args:
        config: of the run.
        timeline: of its steps; the last one that failed is where it stopped.
        command: that repeats it.
        message: why it stopped, as the terminal shows it.
        is_waiting: it stopped as nobody has answered yet.
        store: where the records lie that are given.
        ingested, checked: what was read, and what was expected of it.
    """
    steps = timeline.steps()
    failed = [step.name for step in steps if step.state == "failed"]
    facts = {} if ingested is None else ingested.facts
    return Run(
        **identify(config),
        privacy=Privacy(
            epsilon=config.privacy.epsilon, holder=config.dataset.holder, seeded=config.is_seeded
        ),
        making=describe_making(config, command, timeline, {}),
        checks=() if store is None or checked is None else read_checks(store, checked["checks"]),
        rows=()
        if ingested is None
        else (
            Rows(
                zone="public",
                kept=ingested["public"].rows,
                read=ingested["public"].rows + _set_aside(facts),
                quarantined=facts["bad_public"],
            ),
            Rows(zone="private", kept=ingested["private"].rows),
        ),
        columns_left_out=facts.get("columns_left_out", {}),
        failure=Failure(
            step=failed[-1] if failed else steps[-1].name if steps else "",
            message=message,
            has_asked=any(step.name == ASKING for step in steps),
            is_waiting=is_waiting,
        ),
    )


def name_broken(checks: Sequence[Check]) -> str:
    """The checks that stop a run."""
    broken = [check for check in checks if not check.ok and check.severity == "stop"]
    return "; ".join(f"not in all {check.zone} rows: {check.name}" for check in broken)


def read_checks(store: Store, checks: Manifest) -> tuple[Check, ...]:
    """The outcome of every expectation."""
    content = json.loads(store.file(checks, "checks.json").read_text(encoding="utf-8"))
    return tuple(Check(**check) for check in content)


def describe_privacy(
    config: RunConfig,
    questions: Sequence[Published],
    model: Model,
    evidence: Evidence,
    facts: Mapping[str, Any],
    typical: TypicalRow,
) -> Privacy:
    """Describe the questions, who was asked and the cost. `typical` is the row of the example."""
    n, spent = model.n_private, facts["spent"]
    # Holders who are asked the same are counted together: those of a part, or where features differ each alone.
    counted = part_sizes(n) if isinstance(questions[0], Protocol) else np.ones(n, dtype=np.int64)
    spends, answers = np.zeros(counted.size), np.zeros(counted.size, dtype=np.int64)
    columns, asked = name_columns(model.encoding), []
    for question in questions:
        if isinstance(question, Protocol):
            who: Any = slice(*question.asked)
        else:
            who = question.respondents(cast("PublicView", evidence.shown).n)
        described = _within(question.describe(), evidence.label_range)
        spends[who] += described.epsilon
        answers[who] += 1
        column = "" if described.feature is None else columns[described.feature]
        n_asked = _count_asked(question, int(counted[who].sum()), evidence, n)
        asked.append(
            AskedQuestion(question=described, digest=question.digest, n_asked=n_asked, column=column)
        )
    last = questions[-1]
    return Privacy(
        epsilon=config.privacy.epsilon,
        epsilon_exact=float(spends[counted > 0].max()),
        epsilon_spent=model.epsilon,
        largest_spend=spent["largest"],
        n_questions=spent["questions"],
        lifetime_epsilon=spent["cap"],
        mechanism=", ".join(dict.fromkeys(each.question.mechanism for each in asked)),
        asked=tuple(asked),
        most_answers=int(answers[counted > 0].max()),
        n_never_asked=int(counted[answers == 0].sum()),
        holder=config.dataset.holder,
        seeded=config.is_seeded,
        form=facts["form"],
        k=int(asked[-1].question.figures.get("values", 0)),
        influence=_influence(evidence.totals) if evidence.totals else None,
        features=() if evidence.shown is None else list_features(config, model, evidence.shown),
        mask_release=cast("Literal['all', 'cells', 'none']", config.mask_release),
        example=_draw_example(config, last, model, typical),
        on_devices=config.is_collection,
        shuffler=config.collection.shuffler or "",
        shuffled=_shuffle(last, evidence.totals) if config.collection.shuffler else None,
    )


def _shuffle(last: Published, totals: Sequence[Totals]) -> float | None:
    """Return the epsilon of a report among those about the same output, which is drawn whatever the row is, rounded up to three
    digits; None where none is proved.
    """
    n = int(min((counted.n_private for counted in totals), default=0))
    if not isinstance(last, Protocol) or n < 2:
        return None
    with suppress(ConfigError):
        epsilon = shuffled_epsilon(last.mechanism, n, DELTA).epsilon
        return float(f"{1.005 * epsilon:.2e}") if epsilon < last.epsilon_exact else None
    return None


def _draw_example(config: RunConfig, last: Published, model: Model, typical: TypicalRow) -> Example | None:
    """Reports of a row to the last question."""
    if isinstance(last, Protocol):
        return draw_example(last, typical, config.dataset)
    hidden = {*config.features.private, *config.features.protects}
    protected = hidden if config.mask_release == "all" else model.encoding.columns
    return draw_example_in_rounds(last, model.encoding, typical, protected=protected)


def find_from(config: RunConfig, last: Published, evidence: Evidence) -> tuple[AtEpsilon, ...]:
    """Return the smallest error that the reports would find at each epsilon; () where no public model is corrected."""
    if not isinstance(last, Protocol) or last.base is None:
        return ()
    epsilons = sorted({*EPSILONS, config.privacy.epsilon})
    errors = smallest_errors(last, evidence.totals[0], SHARE, epsilons)
    return tuple(AtEpsilon(epsilon=epsilon, draws=(error,)) for epsilon, error in errors.items())


def find_hidden(
    config: RunConfig, last: Published, evidence: Evidence, labels: NDArray[Any]
) -> Hidden | None:
    """Return the error that the reports could not tell from noise; None where no cells were asked about.

    `labels`: public ones.
    """
    if not isinstance(last, Protocol):
        return None
    epsilon, outputs = config.privacy.epsilon, _totals_of_outputs(last, evidence.totals)
    # of an output that nobody drew everything is open
    errors = [
        smallest_errors(last, output, 1.0, (epsilon,)).get(epsilon, 1.0) if output.n_inside > 0 else 1.0
        for output in outputs
    ]
    # all outputs are tested together
    several = noncentrality(len(errors) * last.n_cells) / noncentrality(last.n_cells)
    largest = max(range(len(errors)), key=errors.__getitem__)
    difference = errors[largest] * math.sqrt(several)
    small = SHARE * planted_size(labels, is_number=config.is_numeric)
    return Hidden(difference=difference, is_small=difference <= small, output=largest)


def _totals_of_outputs(last: Protocol, totals: Sequence[Totals]) -> list[Totals]:
    """Totals of each output; of several classes those where it stands in the place of the second, which shares are taken of."""
    if last.numeric or last.n_classes == 2:
        return list(totals)
    swapped = []
    for code in range(last.n_classes):
        order = [*range(last.n_classes)]
        order[1], order[code] = order[code], order[1]
        swapped.append(replace(totals[0], counts=totals[0].counts[:, order]))
    return swapped


def find_whole(encoding: Encoding, rows: NDArray[np.float32]) -> tuple[str, ...]:
    """Numeric columns that have whole numbers alone in public rows, encoded [n, d]; wide ranges are not told apart in float32."""
    columns, at = [], 0
    for feature in encoding.features:
        if isinstance(feature, NumericFeature):
            width = feature.maximum - feature.minimum
            raw = feature.minimum + rows[:, at].astype(np.float64) * width
            is_clear = 0 < width < WIDEST and feature.minimum.is_integer() and feature.maximum.is_integer()
            if is_clear and bool((np.abs(raw - np.rint(raw)) < WIDEST * 1e-7).all()):
                columns.append(feature.column)
        at += len(feature.names)
    return tuple(columns)


def _count_asked(question: Published, about: int, evidence: Evidence, n: int) -> int:
    """Count how many of n holders a question was put to; of parts that are taken in each shard `about` so many."""
    if not isinstance(question, Protocol) or question.asks_everybody:
        return about
    n_last = sum(int(counted.n_private) for counted in evidence.totals)
    return n - n_last if not question.asked[0] else n_last


def _within(question: QuestionDescription, label_range: tuple[float, float] | None) -> QuestionDescription:
    """The ends of a label's question moved into the label's range, as every label is."""
    if question.about != "label" or label_range is None:
        return question
    low, high = max(question.figures["low"], label_range[0]), min(question.figures["high"], label_range[1])
    return replace(question, figures=question.figures | {"low": low, "high": high})


def _influence(totals: Sequence[Totals]) -> Influence:
    """Describe what dishonest holders can do to the totals of a question."""
    n = sum(counted.n_private for counted in totals)
    force: PoisoningBound = totals[0].mechanism.poisoning_bound(n)
    return Influence(one=force.one, one_percent=force.one_percent, at_once=force.totals_at_once)


def list_features(config: RunConfig, model: Model, view: PublicView) -> tuple[Feature, ...]:
    """Every raw column, and how many protect it by the public mask."""
    features, at = [], 0
    for feature in model.encoding.features:
        declared: Literal["public", "private", "own choice"] = "public"
        if feature.column in config.features.private or config.mask_release != "all":
            declared = "private"
        elif feature.column in config.features.protects:
            declared = "own choice"
        protects = int(view.protects[:, at].sum()) if config.mask_release == "all" else None
        features.append(Feature(name=feature.column.replace("_", " "), declared=declared, protects=protects))
        at += len(feature.names)
    return tuple(features)


def caps_of(evaluation: EvaluateConfig, n_public: int, n_private: int) -> dict[str, str]:
    """Of each baseline that read fewer rows than there were, how many."""
    rows = {"public": (n_public, evaluation.public_rows), "private": (n_private, evaluation.private_rows)}
    caps = {name: baseline.describe_cap(*rows[baseline.reads]) for name, baseline in BASELINES.items()}
    return {name: cap for name, cap in caps.items() if cap}


def _set_aside(ingested: Mapping[str, Any]) -> int:
    """Count the public rows that were read and not kept, as faulty or left out by `dataset.where`."""
    return int(ingested["bad_public"] + ingested["left_out_public"])


def warnings_of(
    config: RunConfig,
    store: Store,
    scores: Manifest | None,
    totals: Sequence[Totals],
    held: Mapping[str, Any],
) -> tuple[str, ...]:
    """List what to read before relying on scores, or on reports. `held`: the facts of who has which role, and of scaling."""
    statements = [*say_left_out(held), *say_telling(held["telling"], config.dataset.target)]
    if n_not_drawn := held["n_not_drawn"]:
        n = held["n_public"]
        statements.append(
            f"Not all public rows are learned from. Of {n + n_not_drawn:,} that could be, {n:,} were drawn."
        )
    if config.dataset.weight is not None:
        statements.append(
            f"Reports have no weights. The public model counts each public row by its {config.dataset.weight}, and corrections "
            "count each private person once."
        )
    if config.dataset.release_checks and not config.is_seeded:
        statements.append(
            "Checks of private rows are released. Which expectations they meet is published, exactly and without "
            "noise: one bit for each that is listed below, at most "
            f"{config.privacy.max_released_checks} over all runs of this work folder."
        )
    if (content := read_scores(store, scores)) is not None:
        share = content["duplicates"] / max(content["n_test_all"], 1)
        if share > MANY_DUPLICATES:
            statements.append(
                f"Scores may be too high. Of the rows kept aside {portion(share)} equal a row learned from in every "
                "column that is used."
            )
        if n_also := held.get("n_also_public", 0):
            people = held["n_private"] + held["n_test"]
            statements.append(
                f"Scores may be too high. Of {people:,} private people {n_also:,} have public rows as well, which the public "
                f"model has seen. Choose public rows by what is the same in all rows of one {config.dataset.holder}."
            )
        ours = content["scores"]["ours"]
        if n_outside := ours.get("n_outside", 0):
            unknown = "is not among dataset.classes" if config.dataset.classes else "no public row has"
            statements.append(
                f"Some labels are unknown. Of the rows kept aside {portion(n_outside / ours['n'])} have a label that {unknown}, "
                "and every model misses them, in every score. Name all labels in dataset.classes, so that reports count them too."
            )
    elif any(asked.n_inside < asked.n_private for asked in totals):
        n = sum(asked.n_private for asked in totals)
        share = sum(asked.outside for asked in totals) / n
        sd = math.sqrt(sum(asked.outside_variance for asked in totals)) / n
        label = "a label that is none of the classes, or " if config.label == "class" else ""
        statements.append(
            f"Some reports count nothing. About {portion(share)} of them, ± {portion(2 * sd)}, say that the row has {label}no "
            "value where one is needed, and the model has learned nothing from these."
        )
    return tuple(statements)


def say_left_out(held: Mapping[str, Any]) -> list[str]:
    """A sentence for what an inbox holds that was not learned from, as the facts of its respondents have it."""
    keys = ("rejected", "refused", "unreadable", "passed_over")
    rejected, refused, unreadable, others = (held.get(key) or {} for key in keys)
    sentences = []
    if rejected:
        kinds = ", ".join(f"{n:,} {kind}" for kind, n in rejected.items())
        worst = "".join(
            f" The most that are {UNREADABLE}, {n:,}, are in {name}." for name, n in unreadable.items()
        )
        sentences.append(f"Some lines of the inbox do not count. They are: {kinds}.{worst}")
    for name, reason in list(refused.items())[:NAMED]:
        sentences.append(f"A segment of the inbox was refused. Nothing in {name} counts: {reason}.")
    if others:
        there = "is 1 other" if len(others) == 1 else f"are {len(others):,} others"
        sentences.append(
            f"Some files of the inbox were passed over. Only *.jsonl is read; there {there}, as {others[0]}."
        )
    return sentences


def list_nodes(model: Any) -> list[dict[str, Any]]:
    """Every node with its path, for the warehouse; of a tree that is too large for it none."""
    tree = model.partition
    if tree.n_nodes > NODES_IN_WAREHOUSE:
        return []
    return [
        {
            "node": node,
            "parent": int(tree.parent[node]) if node else None,
            "depth": int(tree.depth[node]),
            "is_leaf": bool(tree.feature[node] < 0),
            "path": model.raw_tree.where(node),
        }
        for node in range(tree.n_nodes)
    ]
