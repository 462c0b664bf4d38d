"""The drawn reports: what a typical holder has, what leaves it, and what it tells."""

from __future__ import annotations

import math
import re

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from chain import RoundsChain

from ldptree.protocol.protocol import Protocol
from page_truth.artifacts import Run
from page_truth.reading import NUMBER, Scale, number
from tasks.artifacts import read_published

REPORTS = 12
OF_FILES = {
    "id",
    "protocol",
    "question",
    "round",
    "form",
    "holders",
    "holders_of_outputs",
    "simulation",
    "report",
}
"""What a file of reports says of itself, and of no person."""


def typical(run: Run) -> tuple[np.ndarray, float]:
    """The typical public row as a holder has it, [1, columns], and its label."""
    rows, labels = run.public
    values, at = [], 0
    for feature in run.model.encoding.features:
        columns = rows[:, at : at + len(feature.names)]
        at += len(feature.names)
        if hasattr(feature, "levels"):
            values.append(float(np.nansum(columns[:, : len(feature.levels)], axis=0).argmax()))
            continue
        middle = feature.minimum + float(np.nanmedian(columns[:, 0])) * (feature.maximum - feature.minimum)
        middle = float(round(middle)) if feature.column in run.facts["whole"] else float(f"{middle:.3g}")
        values.append(min(max(middle, feature.minimum), feature.maximum))
    label = float(np.bincount(labels).argmax()) if run.classes else float(f"{np.median(labels):.3g}")
    return np.array([values]), label


def true_answer(run: Run) -> tuple[int, float, list[float]]:
    """The typical row's own cell, and the number, or the public model's error on it, before any coin; and the levels of a report.

    Of several classes the error is that of the row's own. A class is a level already.
    """
    protocol, (raw, label) = run.protocol, typical(run)
    cell, levels = int(protocol.cells(raw)[0]), protocol.mechanism.n_levels
    if not protocol.numeric:
        return cell, label, [float(level) for level in range(levels)]
    low, high = protocol.label_range
    if protocol.base is not None:
        labels = np.array([label if protocol.base.labels == () else int(label)])
        errors = protocol.base.errors(protocol.encoding, raw, labels)[0]
        label = float(errors[int(label) if errors.size > 1 else 0])
    return cell, label, np.linspace(low, high, levels).tolist()


def check_truth(run: Run) -> list[str]:
    """Whether the box that is drawn as the truth is the row's own cell, and the level that is nearest to its number or error
    before any coin; so that no coin is called the truth.
    """
    if isinstance(run.chain, RoundsChain):
        return []  # nothing is rounded before its mechanism
    example, (cell, exact, levels) = run.facts["privacy"]["example"], true_answer(run)
    faults = [] if example["cell"] == cell else [f"the truth is in cell {example['cell']}, not {cell}"]
    if example["number"]:
        clipped = min(max(exact, levels[0]), levels[-1])
        is_so = abs(example["number"]["true"] - clipped) <= 1e-9 * max(abs(clipped), 1.0)
        return faults + ([] if is_so else [f"the true number is {example['number']['true']}, not {exact}"])
    off = [abs(level - min(max(exact, levels[0]), levels[-1])) for level in levels]
    if off[example["level"]] > min(off) + 1e-9:
        faults.append(f"the truth is level {example['level']} of {levels}, where it is {exact}")
    said = next(
        one.text for one in run.page.every("span") if one.attributes.get("data-says", "")[:8] == "example "
    )
    if run.protocol.base is not None and f"too {'low' if exact > 0 else 'high'}" not in said:
        faults.append(f"{said!r} of an error of {exact}")
    return faults


def example_cell(run: Run) -> float:
    """The cell of the typical row."""
    example, protocol = run.facts["privacy"]["example"], run.protocol
    assert 0 <= example["cell"] < protocol.n_cells
    assert example["number"] or example["levels"][example["level"]]
    return float(true_answer(run)[0] + 1)


def example_number(run: Run) -> float:
    """What the typical row would send without noise."""
    if isinstance(run.chain, RoundsChain):
        return float(run.facts["privacy"]["example"]["number"]["true"])
    return float(np.clip(true_answer(run)[1], *run.protocol.label_range))


def example_rounded(run: Run) -> float:
    """The number, or the size of the error in points of 100 or the label's unit, that each report rounds."""
    exact = true_answer(run)[1]
    return exact if run.protocol.base is None else abs(exact) * (100.0 if run.classes else 1.0)


def example_answer(run: Run) -> tuple[float | None, ...]:
    """The figures of a round's question, and the answer."""
    example, asked = run.facts["privacy"]["example"], run.last.describe()
    sizes_ = [asked.figures[name] for name in ("values", "cells") if name in asked.figures]
    return (*sizes_, example_number(run) if example["number"] else float(example["cell"] + 1))


def boxes(run: Run) -> float:
    """How many values, or elements, a report names."""
    if isinstance(run.chain, RoundsChain):
        figures = run.last.describe().figures
        return float(figures.get("values", figures.get("cells", 0)))
    protocol, kind = run.protocol, run.protocol.mechanism.describe().form
    if kind == "bits and number":
        return protocol.n_cells + 1.0
    n_else = {"signed set": 2, "bits and label": protocol.n_classes, "numbers": 0}.get(kind, 1)
    return float(protocol.n_cells * protocol.n_classes + n_else)


def check_sent(run: Run) -> list[str]:
    """Whether a report is one of the messages that the page counts, and has no field beside it; and whether the page lists every
    question that was put to people.
    """
    turns = [*run.chain.conversation.whole]
    faults = []
    for turn in turns:
        asked = read_published(run.store, turn.question())
        for file in (path for record in turn.reports for path in run.store.files(record["reports"])):
            table = pq.read_table(file)
            if beside := {key.decode() for key in table.schema.metadata} - OF_FILES:
                faults.append(f"a file of reports says {sorted(beside)} too")
            faults += _check_messages(asked, table) if isinstance(asked, Protocol) else _check_rounds(table)
    if not isinstance(run.chain, RoundsChain):
        keys = {said.attributes.get("data-says", ""): said for said in run.page.every("span")}
        listed = {key for key in keys if key.startswith("asked ")}
        if len(listed) != len(turns):
            faults.append(f"{len(turns)} questions were put, and {sorted(listed)} are listed")
    return faults


def _check_messages(asked: Protocol, table: pa.Table) -> list[str]:
    """Reports about one tree, of which none says more than its mechanism's message and, where a coin picks it, the output."""
    mechanism, values = asked.mechanism, int(asked.describe().figures["values"])
    outputs = {"output": asked.n_outputs} if asked.n_outputs > 1 else {}
    kind, *more = [name for name in table.column_names if name not in outputs]
    if more or kind not in ("value", "bits", "support"):
        return [f"reports have the fields {table.column_names}"]
    sent, faults = table.column(kind), []
    if kind == "value" and pa.compute.max(sent).as_py() >= min(values, mechanism.n_values):
        faults.append(f"{pa.compute.max(sent)} was sent, of {values} messages")
    if kind == "bits" and sent.type.byte_width != mechanism.report_bytes:
        faults.append(f"{sent.type.byte_width} bytes were sent, of {mechanism.report_bytes}")
    if outputs and not set(table.column("output").to_pylist()) <= set(range(asked.n_outputs)):
        faults.append("an output was sent that is none")
    return faults


def _check_rounds(table: pa.Table) -> list[str]:
    """Answers in rounds, which go with the number of a person, as what they show does."""
    return (
        []
        if table.column_names == ["holder", "report"]
        else [f"answers have the fields {table.column_names}"]
    )


def check_report(run: Run) -> list[str]:
    """Whether what is drawn as reports are twelve that a holder with the drawn answer can send, and leave the truth out as often
    as they must; and whether the holder is the typical public one.
    """
    drawn, faults = run.page.every("svg", "bits"), check_number(run) + check_typical(run) + check_truth(run)
    if not drawn:
        return faults
    if len(drawn) != 1 + REPORTS:
        return [f"{len(drawn) - 1} reports are drawn"]
    if isinstance(run.chain, RoundsChain):
        asked = run.last.describe()
        form, size = "value" if asked.mechanism == "grr" else "set", asked.figures.get("size", math.inf)
    else:
        facts = run.protocol.mechanism.describe()
        form, size = facts.form, facts.size
    most = {"value": 1, "set": size, "signed set": size}.get(form, math.inf)
    rings = {
        (one.first("rect", "ring").attributes["x"], one.first("rect", "ring").attributes["y"])
        for one in drawn
    }
    faults += [] if len(rings) == 1 else ["the truth is marked in two places"]
    (x, y), n_true = rings.pop(), 0
    for one in drawn[1:]:
        marks = re.findall(r"M\d+ \d+", one.first("path", "on").attributes["d"])
        n_true += f"M{int(x) + 1} {int(y) + 1}" in marks
        if len(marks) > most or (form == "value" and len(marks) != 1):
            faults.append(f"{len(marks)} values of a report are drawn, which has {most}")
    if (kept := share_kept(run)) is not None:
        chances = [math.comb(REPORTS, n) * kept**n * (1 - kept) ** (REPORTS - n) for n in range(REPORTS + 1)]
        if min(sum(chances[: n_true + 1]), sum(chances[n_true:])) < 1e-4:
            faults.append(f"{n_true} of {REPORTS} reports name the truth, where {kept:.2f} of all do")
    return faults


def share_kept(run: Run) -> float | None:
    """The chance over both coins, of rounding and of the mechanism's integers, that a report names the true value; None where
    noise is added, or in rounds.
    """
    if isinstance(run.chain, RoundsChain) or run.protocol.mechanism.n_levels != run.protocol.n_classes:
        return None
    figures, (_, exact, levels) = run.protocol.mechanism.describe().figures, true_answer(run)
    if "p" not in figures:
        return None
    away = min(abs(level - min(max(exact, levels[0]), levels[-1])) for level in levels)
    missed = away / (levels[1] - levels[0])  # the chance of rounding to the other of two neighbours
    of_label = figures.get("label_p", 1.0)
    apart = figures["p"] * (1.0 - of_label) / (len(levels) - 1)
    return float(
        (1 - missed) * figures["p"] * of_label + missed * (apart if "label_p" in figures else figures["q"])
    )


def check_typical(run: Run) -> list[str]:
    """Whether every value of the drawn row is the median, or the commonest, of public rows."""
    rows, labels = run.public
    encoding = run.model.encoding
    shown, at, faults = dict(run.facts["privacy"]["example"]["row"]), 0, []
    for feature in encoding.features:
        columns, name = rows[:, at : at + len(feature.names)], feature.column.replace("_", " ")
        at += len(feature.names)
        if name not in shown:
            continue
        if hasattr(feature, "levels"):
            level = str(feature.levels[int(np.nansum(columns[:, : len(feature.levels)], axis=0).argmax())])
            expected = run.config.dataset.names.get(feature.column, {}).get(level, level)
            faults += [] if shown[name] == expected else [f"{name} is {shown[name]}, commonly {expected}"]
            continue
        middle = feature.minimum + float(np.nanmedian(columns[:, 0])) * (feature.maximum - feature.minimum)
        figures = [number(figure) for figure in re.findall(NUMBER, shown[name])]
        if len(figures) == 1 and abs(figures[0] - middle) > 0.5 + 0.01 * abs(middle):
            faults.append(f"{name} is {shown[name]}, the median {middle}")
    own = run.facts["privacy"]["example"]["row"][-1][1]
    if classes := run.classes:
        expected = classes[int(np.bincount(labels).argmax())]
        faults += [] if own == expected else [f"the label is {own}, commonly {expected}"]
    return faults


def check_number(run: Run) -> list[str]:
    """Whether a number that is drawn stands where the sentences say, before the noise and after it, and can be sent."""
    drawn, facts = run.page.every("svg", "num"), run.facts["privacy"]["example"]
    if not drawn:
        return ["a number is sent, and none is drawn"] if facts and facts["number"] else []
    before, after = (
        [scale.value(float(one.attributes["cx"].rstrip("%"))) for one in svg.every("circle")]
        for svg, scale in ((svg, Scale.of(svg)) for svg in drawn)
    )
    slack, sent = Scale.of(drawn[0]).slack, facts["number"]["sent"]
    faults = [] if len(sent) == REPORTS else [f"{len(sent)} numbers are drawn"]
    expected = [example_number(run)], [*sent, example_number(run)]
    faults += [
        f"a number stands at {place}, expected {value}"
        for places, values in zip((before, after), expected, strict=True)
        for place, value in zip(places, values, strict=True)
        if abs(place - value) > slack
    ]
    if isinstance(run.chain, RoundsChain) and run.last.mechanism.name in ("optimal_label", "duchi"):
        possible = run.last.decode(run.last.mechanism.outputs)
        if run.last.describe().about != "label":
            faults += [
                f"{one} is no number that {run.last.mechanism.name} sends"
                for one in sent
                if np.abs(possible - one).min() > slack
            ]
    return faults
