"""Any model's findings as rows to draw and tables to print, for the tree, cells, statements, scores and checks."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import quote

from ldptree.models.corrected import LEAST_OF_PUBLIC
from ldptree.models.description import Cell, CurveLine, Estimate, Node
from ldptree.plain_text import escape_cell
from ldptree.planning.detection import POWER
from tasks.page import units
from tasks.page.captions import (
    BASIS,
    FIGURES,
    LAM,
    METRICS,
    PRUNE,
    STATEMENTS,
    Sentence,
    say,
)
from tasks.page.data import AtEpsilon, Check, Privacy, Run, Score
from tasks.page.privacy import BEFORE, list_actors, say_mechanism, say_question
from tasks.page.summary import (
    FEW_CLASSES,
    count_better,
    find_reference,
    has_groups,
    name_score,
    say_rows,
    shown_output,
)
from tasks.page.units import Unit, cell_unit, label_unit, say_path

MOST_CLASSES = 5
"""Of a node of the tree, outputs that are written."""
TABLED_CELLS = 400
LISTED_CHECKS = 400
THREE_ROUNDINGS = 0.0015
"""The most that three shares in tenths of a percent can miss each other by when rounded."""
DRAWN_STRENGTHS, LEAST_STRENGTH = 3, 0.005
"""How many columns are drawn, and the share below which one is not."""


@dataclass(frozen=True)
class Table:
    """A table.

    Attributes:
        title: above it.
        heads: of the columns.
        rows: of texts; the first column heads them.
        is_named: whether that column has names, which stay as they are, and no figures.
        marked: rows that are told apart.
        notes: under it.
        of: what it is of, where the title does not say so.
        short: its answer in a few words, beside the title.
    """

    title: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    marked: tuple[int, ...] = ()
    notes: tuple[Sentence, ...] = ()
    of: str = ""
    is_named: bool = True
    short: str = ""

    @property
    def file(self) -> str:
        """Name of its file."""
        return re.sub(r"[^a-z0-9]+", "-", (self.of or self.title).lower()).strip("-") + ".csv"

    @property
    def csv(self) -> str:
        """The table as a data URL of comma-separated values, numbers as programs read them."""
        lines = io.StringIO()
        write = csv.writer(lines, lineterminator="\n")
        write.writerow(map(escape_cell, self.heads))
        for first, *others in self.rows:
            write.writerow([(escape_cell if self.is_named else _plain)(first), *map(_plain, others)])
        return f"data:text/csv;charset=utf-8,{quote(lines.getvalue(), safe=' ,;:/()')}"


def _plain(text: str) -> str:
    """Return a figure of a table for programs: with plain signs and spaces, without thousands marks."""
    plain = text.translate({ord("\u2212"): "-", ord("\u00a0"): " ", ord("\u202f"): " ", ord("–"): "-"})
    plain = re.sub(r"(?<=\d),(?=\d{3}\b)", "", plain)
    return escape_cell(re.sub(r"^\+(?=\d)", "", "" if plain == "-" else plain))


def say_estimates(run: Run, node: Node) -> list[tuple[str, str]]:
    """Name and write the estimates of a node, of more than a few outputs the one that is shown."""
    outputs, unit, shown = run.model.outputs, cell_unit(run), shown_output(run)
    several = range(len(outputs)) if len(outputs) <= MOST_CLASSES else (shown,)
    return [
        (outputs[at] if len(outputs) > 1 else "", unit.estimate(node.estimates[at], with_unit=True))
        for at in several
    ]


def by_share(cells: Sequence[Cell]) -> list[tuple[int, Cell]]:
    """Cells with their numbers, the largest first."""
    return sorted(enumerate(cells), key=lambda pair: (-pair[1].share, pair[0]))


def tabulate_cells(run: Run) -> Table | None:
    """Every cell, the largest first."""
    model = run.model
    if not model.cells:
        return None
    cells = by_share(model.cells)[:TABLED_CELLS]
    rows = [_tabulate_cell(run, number, cell) for number, cell in cells]
    written = {head.partition(" “")[0] for row in rows for head, text in row.items() if text is not None}
    heads = [head for head in rows[0] if head.partition(" “")[0] in written]
    if "Weight of reports" in heads:
        heads.remove("Rests on")
    marked = [at for at, (_, cell) in enumerate(cells) if model.figure == "correction" and cell.is_clear]
    n_cells = units.count(len(model.cells))
    notes = [
        *(
            [say("table cut", shown=units.count(len(cells)), cells=n_cells)]
            if len(model.cells) > len(cells)
            else []
        ),
        *_adding(run, [cell for _, cell in cells]),
        *([say("shared out")] if has_groups(run) else []),
        *_weighing(run),
    ]
    return Table(
        f"Every group of {run.nouns}",
        tuple(heads),
        tuple(tuple(row[head] or "–" for head in heads) for row in rows),
        tuple(marked),
        tuple(notes),
        short=f"{len(marked)} of {n_cells} clear"
        if model.figure == "correction"
        else units.plural(len(model.cells), "group", "groups"),
    )


def _tabulate_cell(run: Run, number: int, cell: Cell) -> dict[str, str | None]:
    """Return what the table has of a cell, by the heads of all columns; None where there is nothing."""
    unit, plain, signed = cell_unit(run), label_unit(run), label_unit(run, signed=True)
    row: dict[str, str | None] = {
        f"Group of {run.nouns}": f"{number + 1}. {say_path(cell.path, run)}",
        "Private": units.count(max(cell.share, 0.0) * run.n_private),
        "Public rows": None if cell.public_share is None else units.portion(cell.public_share),
    }

    def of(estimates: Sequence[Estimate | None], m: int, write: Unit) -> str | None:
        estimate = estimates[m] if estimates else None
        return None if estimate is None else write.estimate(estimate)

    for m, output in enumerate(run.model.outputs):
        named = f" “{output}”" if len(run.model.outputs) > 1 else ""
        row |= {
            f"Reports alone{named}": of(cell.reports, m, unit),
            f"Public{named}": of(cell.public, m, plain),
            f"Difference{named}": of(cell.differences, m, signed),
            f"{'Correction' if run.model.figure == 'correction' else 'Estimate'}{named}": of(
                cell.estimates, m, unit
            ),
            f"Corrected{named}": plain.bare(cell.answers[m]) if cell.answers else None,
        }
    weight = None if cell.private_weight is None else units.percent(cell.private_weight, 0)
    row |= {"Weight of reports": weight, "Rests on": BASIS[cell.rests_on], "Says": cell.decision or None}
    if run.scores and any(run.scores.cells):
        test, write = run.scores.cells[number], label_unit(run)
        row["Kept aside"] = units.count(test.n) if test else "few"
        row["Public model"] = write.value(test.public) if test else None
        row["Ours"] = write.value(test.ours) if test else None
    return row


def _adding(run: Run, cells: Sequence[Cell]) -> list[Sentence]:
    """Say why what is corrected is not the sum beside it, where a kind shows that."""
    if run.model.figure != "correction" or run.label != "class":
        return []
    gaps = [
        abs(public.value + added.value - answer)
        for cell in cells
        for public, added, answer in zip(cell.public, cell.estimates, cell.answers, strict=False)
        if public is not None
    ]
    if max(gaps, default=0.0) < THREE_ROUNDINGS:
        return []
    scaled = ", and is then scaled to a whole" if len(run.model.outputs) > 1 else ""
    return [say("adds up", least=units.percent(LEAST_OF_PUBLIC, 0), scaled=scaled)]


def _weighing(run: Run) -> list[Sentence]:
    if not run.lam:
        return []
    lam = LAM.get(run.lam, f"A public row weighs as much as {run.lam} private ones.")
    return [say("weighing", lam=lam, prune=PRUNE.get(run.prune, "Each group speaks for itself."))]


def find_strengths(run: Run) -> list[tuple[str, float]]:
    """The columns that the answers depend on most, with their share of the variance; () of fewer than two."""
    statements = run.model.of_kind("strength")
    named = [
        (statement.about.replace("_", " "), statement.figures["part"])
        for statement in statements[:DRAWN_STRENGTHS]
    ]
    return [pair for pair in named if pair[1] >= LEAST_STRENGTH] if len(statements) > 1 else []


def tabulate_statements(run: Run) -> list[Table]:
    """The model's other findings, a table a kind."""
    tables = []
    for kind, title in STATEMENTS.items():
        statements = run.model.of_kind(kind)
        if not statements or (kind == "strength" and find_strengths(run)):  # which are drawn
            continue
        names, first = tuple(statements[0].figures), statements[0].about.replace("_", " ")
        rows = tuple(
            (
                statement.about.replace("_", " ") or "all",
                *(_write(run, name, statement.figures[name]) for name in names),
            )
            for statement in statements
        )
        heads = tuple(FIGURES[name][0] for name in names)
        short = ", ".join((first or heads[0].lower(), *rows[0][1 : 3 if kind == "mean prediction" else 2]))
        tables.append(Table(title, ("", *heads), rows, short=short))
    return tables


def _write(run: Run, name: str, value: float) -> str:
    match FIGURES[name][1]:
        case "count":
            return units.count(value)
        case "share":
            return units.percent(value)
        case "label":
            return label_unit(run).value(value)
        case "signed":
            return label_unit(run, signed=True).value(value)
        case "plain label":
            return Unit("number", run.label_sd, run.unit).value(value)
        case _:
            return units.decimal(value, 2)


def tabulate_scores(run: Run) -> Table:
    """Every model and its figures."""
    assert run.scores is not None
    keys = [key for key in METRICS if any(key in score.metrics for score in run.scores.models)]
    rows = tuple(
        (name_score(run, score), *(say_metric(run, score, key) for key in keys), say_interval(run, score))
        for score in run.scores.ordered
    )
    marked = tuple(i for i, score in enumerate(run.scores.ordered) if score.key == "ours")
    notes = tuple(
        say("caps", model=name_score(run, score), note=score.note)
        for score in run.scores.ordered
        if score.note
    )
    heads = ("Model", *(METRICS[key] for key in keys), "95\u202f% interval")
    short = units.plural(len(rows), "model", "models")
    return Table("As a table", heads, rows, marked, notes, of="scores", short=short)


def list_epsilons(run: Run) -> tuple[AtEpsilon, ...]:
    """Return the draws at other epsilons, or what would be found there; () of neither."""
    return run.finds or (run.scores.epsilons if run.scores else ())


def tabulate_strip(run: Run) -> Table | None:
    """Tabulate what the noise of other epsilons would have given, or what would be found there; None of neither."""
    points = list_epsilons(run)
    if not points:
        return None
    own = tuple(at for at, point in enumerate(points) if point.epsilon == run.privacy.epsilon)
    if run.finds:
        unit = label_unit(run, signed=True)
        heads = ["ε", ", ".join(part for part in ("Smallest error found", unit.title) if part)]
        cells = [
            [unit.value(find.median).lstrip("+") if is_possible(run, find) else "none"] for find in points
        ]
    else:
        unit, reference = label_unit(run), find_reference(run)
        heads = ["ε", "Median", "Range"]
        cells = []
        for point in points:
            low, high = unit.bare(point.draws[0]), unit.bare(point.draws[-1])
            cells.append([unit.value(point.median), f"{units.once(low, high)}–{high}"])
            if reference:
                cells[-1].append(f"{count_better(run, point, reference)} of {len(point.draws)}")
        heads += [f"Better than {name_score(run, reference, in_sentence=True)}"] if reference else []
    rows = tuple((f"{point.epsilon:.6g}", *each) for point, each in zip(points, cells, strict=True))
    return Table("As a table", tuple(heads), rows, own, (say("strip note"),), of="epsilon")


def is_possible(run: Run, find: AtEpsilon) -> bool:
    """Return whether a model can have such an error, which is at most 1 for a share."""
    return run.label != "class" or find.median <= 1.0


def say_strip(run: Run) -> list[Sentence]:
    """Say what the strip shows."""
    if run.finds:
        return [say("strip finds", nouns=run.nouns, times=units.count(10 * POWER))]
    if run.scores is None:
        return []
    better = "" if run.label == "class" else " Typical errors: lower is better."
    sentences, reference = [say("strip", better=better)], find_reference(run)
    if reference is None:
        return sentences
    name, least = name_score(run, reference, in_sentence=True), None
    for at_epsilon in reversed(run.scores.epsilons):
        if count_better(run, at_epsilon, reference) < len(at_epsilon.draws):
            break
        least = at_epsilon.epsilon
    if least is None:
        return [*sentences, say("strip never", reference=name)]
    return [*sentences, say("strip every", least=f"{least:.6g}", reference=name)]


def say_metric(run: Run, score: Score, key: str) -> str:
    """One figure of a model; a dash where it has none."""
    if key not in score.metrics:
        return "–"
    value = score.metrics[key]
    if key in ("accuracy", "balanced_accuracy"):
        return units.percent(value)
    return label_unit(run).value(value) if key in ("rmse", "mae") else units.decimal(value)


def say_interval(run: Run, score: Score) -> str:
    """The interval of the chief figure."""
    unit = label_unit(run)
    low, high = unit.bare(score.interval.low), unit.bare(score.interval.high)
    return f"{units.once(low, high)}–{high}"


def tabulate_mistakes(run: Run) -> Table | None:
    """Tabulate what both models that are compared predicted of what was true."""
    if run.scores is None or not run.scores.ours.confusion:
        return None
    heads = tuple(f"{true}, said {predicted}" for true in run.classes for predicted in run.classes)
    rows = tuple(
        (name_score(run, score), *(units.count(n) for row in score.confusion for n in row))
        for score in run.scores.ordered
        if score in (find_reference(run), run.scores.ours)
    )
    confusion = run.scores.ours.confusion
    recalls = [row[at] / sum(row) for at, row in enumerate(confusion) if sum(row)]
    of_each = [units.percent(share, 0) for share in recalls]
    if len(recalls) > FEW_CLASSES:
        of_each = [f"{units.percent(min(recalls), 0)} to {units.percent(max(recalls), 0)} of each class"]
    short = f"{units.listed(of_each)} recognised"
    return Table("Mistakes", ("Model", *heads), rows, short=short)


def tabulate_bins(run: Run) -> Table | None:
    """Predicted against true."""
    if run.scores is None or not run.scores.bins:
        return None
    unit = label_unit(run)
    rows = tuple(
        (
            f"{unit.bare(each.low)} to {unit.bare(each.high)}",
            units.count(each.n),
            unit.bare(each.predicted),
            unit.estimate(each.mean),
        )
        for each in run.scores.bins
    )
    notes = [say("bins", nouns=run.nouns, target=run.target.replace("_", " "))]
    if run.scores.n_few:
        notes.append(say("bins few", n=units.plural(run.scores.n_few, run.noun, run.nouns)))
    heads = ("Predicted", "Rows", "Mean predicted", "Mean true")
    most = max(abs(each.true - each.predicted) for each in run.scores.bins)
    short = f"off by {unit.value(most)} at most"
    return Table("Predicted against true", heads, rows, (), tuple(notes), short=short)


def tabulate_curve(run: Run, curve: CurveLine) -> Table:
    """A curve in figures."""
    unit, has_public = label_unit(run), any(point.public is not None for point in curve.points)
    rows = []
    for point in curve.points:
        low, high = point.low or 0.0, point.high or 0.0
        marked = units.marked_from(low, high)
        where = point.name or " to ".join(units.raw_number(end, marked_from=marked) for end in (low, high))
        row = [where, unit.estimate(Estimate(value=point.value, sd=point.sd))]
        row += ["–" if point.public is None else unit.bare(point.public)] if has_public else []
        rows.append(tuple(row))
    heads = (curve.column.replace("_", " "), "Prediction", *(["Public rows alone"] if has_public else []))
    return Table("As a table", heads, tuple(rows), of=f"along {curve.column}")


def tabulate_rounds(run: Run) -> Table:
    """Every question, and what it spends."""
    rows, unit = [], Unit("number", run.label_sd, run.unit)
    for number, asked in enumerate(run.privacy.asked, 1):
        ends = ""
        if "low" in (figures := asked.question.figures):
            ends = f"{unit.bare(figures['low'])} to {unit.bare(figures['high'])}"
        rows.append(
            (
                f"{number}. {say_question(asked, run.target)}",
                units.count(asked.n_asked),
                f"{asked.question.epsilon:.6g}",
                say_mechanism(asked.question),
                ends or "–",
            )
        )
    return Table("Every question", ("Question", "Asked of", "ε", "Leaves", "Moved into"), tuple(rows))


def tabulate_features(run: Run) -> Table:
    """Tabulate who shows what."""
    rows = []
    for feature in run.privacy.features:
        shown = "not sent"
        if feature.protects is not None:
            shown = f"{units.count(feature.protects)} of {units.count(run.n_private)}"
        rows.append((feature.name, feature.declared, shown))
    return Table("Who protects what", ("Column", "Declared", "Protected by"), tuple(rows))


def tabulate_actors(privacy: Privacy, *, is_scored: bool) -> Table:
    """Tabulate who sees what, for how long, and how far a belief may move."""
    rows = tuple(
        (
            actor.who,
            actor.sees,
            actor.keeps,
            "–" if actor.believes is None else units.most_percent(actor.believes),
        )
        for actor in list_actors(privacy, is_scored=is_scored)
    )
    heads = ("Who", "Sees", "Keeps it", f"A belief of {units.percent(BEFORE, 0)} becomes at most")
    return Table("Who sees what", heads, rows)


def tabulate_rows(run: Run) -> Table:
    """Rows and checks of both zones; private ones without a count of faults."""
    rows = {row.zone: row for row in run.rows}
    public, private = rows.get("public"), rows.get("private")
    away, made = "kept by the people", []
    if public is not None and private is not None:
        made.append(("read", "–" if public.read is None else units.count(public.read), away))
        if run.failure is not None:
            made.append(("kept", units.count(public.kept), units.count(private.kept)))
        else:
            made.append(("learned from", units.count(public.kept), units.count(run.n_private)))
            if run.n_earlier:
                made.append(("new in this run", "–", units.count(run.n_new)))
        if public.held_out or private.held_out:
            made.append(("kept aside to test", units.count(public.held_out), units.count(private.held_out)))
        if public.quarantined is not None:
            made.append(("set aside as faulty", units.count(public.quarantined), away))
    if run.checks:
        made.append(("checks met", _met(run, "public"), _met(run, "private")))
    if run.scores is not None:
        made.append(("copies, training and test", "–", units.count(run.scores.duplicates)))
    return Table(say_rows(run).capitalize(), ("", "Public", "Private"), tuple(made))


def _met(run: Run, zone: str) -> str:
    checks = [check for check in run.checks if check.zone == zone]
    met = sum(check.ok for check in checks)
    return f"{units.count(met)} of {units.count(len(checks))}" if checks else "kept by the people"


def group_met(checks: Sequence[Check]) -> dict[str, list[str]]:
    """The checks that are met, by whose rows meet them; columns that lie in their ranges are counted."""
    zones_of: dict[str, list[str]] = {}
    for check in checks:
        if check.ok:
            zones_of.setdefault(check.name, []).append(check.zone)
    groups: dict[str, list[str]] = {}
    for name, zones in zones_of.items():
        groups.setdefault(" and ".join(dict.fromkeys(zones)), []).append(name)
    for whose, names in groups.items():
        others = [name for name in names if " is between " not in name]
        groups[whose] = others[:LISTED_CHECKS]
        if n_ranges := len(names) - len(others):
            groups[whose].append(
                units.plural(n_ranges, "column lies in its range", "columns lie in their ranges")
            )
        if len(others) > LISTED_CHECKS:
            groups[whose].append(f"{units.count(len(others) - LISTED_CHECKS)} more")
    return groups
