"""The audit as a command. It names mechanisms, and prints one table or one JSON object.

The arithmetic is in `ldptree.audit`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import asdict
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
from rich.table import Table

from flows.command.streams import make_console, print_json
from ldptree.audit.answers import ALARM, judge_answers
from ldptree.audit.empirical import CONFIDENCE, Audit, audit, reports_for
from ldptree.audit.exact import LAW_ALARM, MOST_VALUES, enumerated
from ldptree.audit.shuffled import shuffled_epsilon
from ldptree.coins import Words
from ldptree.errors import ConfigError
from ldptree.limits import MAX_EPSILON, MIN_EPSILON
from ldptree.mechanisms import (
    CHOICES,
    MECHANISMS,
    NUMBER_MECHANISMS,
    Mechanism,
    mechanism_for,
    number_mechanism_for,
)
from schemas.named_files import read_fault, shown_path
from tasks.answers.receive import read_protocol_at

LABELS = ("class", "number")
OF_NUMBERS = {kind.name: choice for choice, kind in NUMBER_MECHANISMS.items()}
"""What they are called here, to be told from the mechanisms of classes that the same choice stands for."""
EVERY = (
    *(name for name, kind in MECHANISMS.items() if not kind.is_simulation_device),
    *(kind.name for kind in NUMBER_MECHANISMS.values() if not kind.is_simulation_device),
)
"""Mechanisms that "all" stands for, which a real holder may use on some kind of label and number of classes."""
_BAR = 16
_MOST_ASKED = 10**7
_MOST_BYTES = 2**28
_SHOWN = 10
_TINY = 1e-300


def run_audit(
    mechanism: str,
    *,
    label: str,
    epsilon: float | None,
    cells: int,
    classes: int,
    reports: str | None,
    seed: int | None,
    holders: int,
    as_json: bool,
) -> bool:
    """Audit and print; whether every claim stands.

    Raises:
        ConfigError: no such mechanism, or a parameter is wrong.
    """
    n_asked = None if reports is None else _whole(reports)
    names = named(mechanism, label, classes)
    epsilon = _checked_claim(epsilon, cells, classes, n_asked)
    makers = {name: _maker(name, label, epsilon, classes) for name in names}
    subjects = {name: make(cells) for name, make in makers.items()}
    words = _words(seed)
    exact = {name: enumerated(make, cells, words) for name, make in makers.items()}
    n_reports = n_asked or reports_for(epsilon)
    audits = audit(subjects, words, n_reports=n_reports, claim=epsilon, exact=exact, n_holders=holders)
    stands = not any(outcome.is_beaten for outcome in audits)
    if as_json:
        facts = {
            "epsilon": epsilon,
            "cells": cells,
            "classes": classes,
            "label": label,
            "reports": n_reports,
            "confidence": CONFIDENCE,
            "law_alarm": LAW_ALARM,
            "holders": holders,
            "stands": stands,
            "audits": [
                {
                    **asdict(outcome),
                    "empirical": outcome.empirical,
                    "is_beaten": outcome.is_beaten,
                    "faults": outcome.faults,
                }
                for outcome in audits
            ],
        }
        print_json(_finite(facts))
    else:
        show(audits, holders=holders)
    return stands


def audit_answers(protocol: Path, reports: str | None, row: str, *, seed: int | None, as_json: bool) -> bool:
    """Judge a client's answers for one made-up row, and print; whether nothing is wrong with them.

    Raises:
        ConfigError, DataError, ProtocolMismatch: a file is not there or holds something else, or the row does not fit.
    """
    if reports is None:
        raise ConfigError("--row: name the file of a client's answers too, as --reports answers.jsonl")
    published = read_protocol_at(protocol, "audit")
    if (fault := read_fault(Path(reports), _MOST_BYTES)) is not None:
        raise ConfigError(f"--reports {shown_path(reports)}: {fault}. Name a file with one report a line.")
    try:
        content = json.loads(row)
    except (ValueError, RecursionError):
        content = None
    if not isinstance(content, dict):
        raise ConfigError('--row: give the row and its label as JSON, as \'{"miles": 1.5, "paid": "cash"}\'')
    lines = [line for line in Path(reports).read_text(encoding="utf-8", errors="replace").split("\n") if line]
    verdict = judge_answers(published, lines, content, _words(seed))
    if as_json:
        print_json({**asdict(verdict), "alarm": ALARM, "is_honest": verdict.is_honest})
        return verdict.is_honest
    for what, count in verdict.impossible.items():
        print(f"{count:,} lines are {what}: no client that follows the protocol sends them.")
    for way, chance in [*verdict.misfits.items()][:_SHOWN]:
        written = f"{chance:.1g}" if chance > _TINY else f"below {_TINY:g}"
        print(f"{way}: does not follow the law (honest answers differ as much with chance {written}).")
    if len(verdict.misfits) > _SHOWN:
        print(f"... and {len(verdict.misfits) - _SHOWN:,} more of such ways.")
    print(
        f"{verdict.n:,} answers, looked at in {verdict.n_ways:,} ways: "
        f"{'nothing is wrong' if verdict.is_honest else 'this client does not keep what the protocol promises'}. An honest "
        f"client is blamed once in {1 / ALARM:,.0f} tests. A bit that is set {100 * verdict.detected:.1f} points too often is "
        "noticed in 95 of 100."
    )
    return verdict.is_honest


def _whole(reports: str) -> int:
    """The number of reports to draw. Raises ConfigError."""
    if not reports.isdecimal() or not int(reports):
        raise ConfigError(f"--reports {reports}: a whole number above 0; a file of answers goes with --row")
    return int(reports)


def _words(seed: int | None) -> Words:
    return Words.system() if seed is None else Words.seeded(np.random.SeedSequence(seed))


def show_shuffled(
    mechanism: str,
    epsilon: float | None,
    *,
    cells: int,
    classes: int,
    holders: int,
    delta: float,
    as_json: bool,
) -> None:
    """Print the epsilon of one report among those of `holders` people that another party shuffles.

    Raises:
        ConfigError: no such mechanism, it has no such epsilon here, or a parameter is wrong.
    """
    if mechanism not in CHOICES:
        raise ConfigError(f'--shuffled: mechanism "{mechanism}" is none of {", ".join(CHOICES)}')
    claim = _checked_claim(epsilon, cells, classes, None)
    among = shuffled_epsilon(mechanism_for(mechanism, claim, cells, classes), holders, delta)
    if as_json:
        print_json(
            {"mechanism": mechanism, "epsilon": claim, "holders": holders, "delta": delta}
            | {"shuffled": asdict(among)}
        )
        return
    print(
        f"{mechanism}: epsilon {claim:g} of a report alone, and {among.epsilon:.3g} among {holders:,} shuffled ones, at delta "
        f"{delta:g}. Below {among.at_least:.3g} it is not true.\n"
        f"It holds where another party takes all {holders:,} reports, removes who sent them and when, shuffles them, and gives "
        "nothing else to the curator, and where all of these people are honest. For who sees a report on its way, the epsilon of "
        "a report alone holds."
    )


def _checked_claim(epsilon: float | None, cells: int, classes: int, reports: int | None) -> float:
    """Return the claim, after checking what can be wrong before a report is drawn. Raises ConfigError."""
    if epsilon is None:
        raise ConfigError("--epsilon: say what is claimed, as --epsilon 1")
    if not MIN_EPSILON <= epsilon <= MAX_EPSILON:
        raise ConfigError(f"--epsilon {epsilon:g}: must be from {MIN_EPSILON:g} to {MAX_EPSILON:g}")
    if cells * classes > MOST_VALUES:
        raise ConfigError(
            f"{cells:,} cells x {classes:,} classes are {cells * classes:,} values; at most {MOST_VALUES:,} are audited. "
            "A mechanism's claim does not depend on their number: give fewer --cells"
        )
    if reports is not None and reports > _MOST_ASKED:
        raise ConfigError(f"--reports {reports:,}: at most {_MOST_ASKED:,} are drawn of an input")
    return epsilon


def named(mechanism: str, label: str, classes: int) -> tuple[str, ...]:
    """The mechanisms that a word stands for, where the label is one of so many classes ("class") or a "number".

    Raises:
        ConfigError: none.
    """
    if label not in LABELS:
        raise ConfigError(f"--label {label}: must be {' or '.join(LABELS)}")
    if mechanism == "all":
        return tuple(name for name in EVERY if label == "number" or _is_for(name, classes))
    if label == "number" and mechanism in NUMBER_MECHANISMS:
        return (NUMBER_MECHANISMS[mechanism].name,)
    if mechanism in CHOICES or mechanism in OF_NUMBERS:
        return (mechanism,)
    near = get_close_matches(mechanism, [*CHOICES, *OF_NUMBERS, "all"], n=1)
    hint = f'did you mean "{near[0]}"? ' if near else ""
    raise ConfigError(
        f'unknown mechanism "{mechanism}"; {hint}known: {", ".join([*CHOICES, *OF_NUMBERS])}, all'
    )


def _is_for(name: str, classes: int) -> bool:
    """Return whether a mechanism is for so many classes."""
    kind = MECHANISMS.get(name)
    return kind is None or kind.for_classes in (None, classes)


def _maker(name: str, label: str, epsilon: float, classes: int) -> Callable[[int], Mechanism]:
    """The mechanism of each number of cells."""
    if name in OF_NUMBERS or (label == "number" and name in CHOICES):
        return partial(number_mechanism_for, OF_NUMBERS.get(name, name), epsilon, n_levels=classes)
    return partial(mechanism_for, name, epsilon, n_classes=classes)


def show(audits: Sequence[Audit], *, holders: int) -> None:
    """The table, and what it means."""
    console = make_console()
    claims = _table("mechanism", "claim >", "exact >", "gone through", "at least >", "")
    forces = _table(
        "mechanism",
        "told apart best by",
        "one report shifts",
        f"{math.ceil(holders / 100):,} of {holders:,} >",
    )
    top = max(max(outcome.claim, outcome.empirical) for outcome in audits)
    for outcome in audits:
        style = "bold red" if outcome.is_beaten else None
        bound = outcome.bounds[0]
        event = f"{bound.event}, {bound.inputs[0]} from {bound.inputs[1]}"
        claims.add_row(
            outcome.name,
            f"{outcome.claim:.4g}",
            *_exact(outcome),
            f"{outcome.empirical:.3f}",
            bar(outcome, top),
            style=style,
        )
        forces.add_row(outcome.name, event, *_shifts(outcome), style=style)
    console.print(claims)
    console.print()
    console.print(forces)
    fewest = min(audits, key=lambda outcome: outcome.reach)
    console.print(
        f"\nClaim, exact and at least are epsilons. All bounds hold together with {CONFIDENCE:.0%} confidence; "
        f"{fewest.n_reports:,} reports an input can prove {fewest.reach:.1f} at most. {_gone_through(audits)} Shifts are in "
        "holders: what one dishonest report adds to a total, and one per cent of the holders together.",
    )
    for outcome in audits:
        if outcome.is_beaten:
            console.print(
                f"{outcome.name}: the claim is beaten: {'; '.join(outcome.faults)}.",
                style="bold red",
            )
        elif outcome.reach <= outcome.claim:
            console.print(
                f"{outcome.name}: so few reports could not beat this claim whatever was true; ask for more with --reports.",
            )


def bar(outcome: Audit, top: float) -> str:
    """Draw what was proved, up to the claim's mark."""
    n_full, at = (min(round(_BAR * value / top), _BAR - 1) for value in (outcome.empirical, outcome.claim))
    cells = ["█" if i < n_full else "·" for i in range(_BAR)]
    cells[at] = "│"
    return "".join(cells)


def _table(*titles: str) -> Table:
    """Columns; ">" after a title puts its figures to the right."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in titles:
        side: Literal["left", "right"] = "right" if title.endswith(" >") else "left"
        table.add_column(title.removesuffix(" >"), justify=side, no_wrap=title != "told apart best by")
    return table


def _exact(outcome: Audit) -> tuple[str, str]:
    if outcome.exact is None:
        return "-", "not gone through"
    return f"{outcome.exact.epsilon:.4g}", f"{outcome.exact.n_cells:,} of {outcome.exact.most_cells:,} cells"


def _gone_through(audits: Sequence[Audit]) -> str:
    """Return what the column of that name means, of these."""
    how = "with so many of the cells that could be, and the reports of every value were held against it."
    is_exact = [outcome.exact is not None for outcome in audits]
    if all(is_exact):
        return f"Every output was gone through {how}"
    none = "no output was gone through: the bound from its reports is all that is known beside the claim."
    if not any(is_exact):
        return none.capitalize()
    return f"Where cells are stated, every output was gone through {how} Elsewhere {none}"


def _shifts(outcome: Audit) -> tuple[str, str]:
    force = outcome.influence
    if force is None:
        return "", ""
    if not math.isfinite(force.one):
        return "without bound", "-"
    return f"{force.totals_at_once:,} totals by {force.one:,.1f}", f"{force.one_percent:,.0f}"


def _finite(value: Any) -> Any:
    """Return a value for JSON, with null in place of infinity."""
    if isinstance(value, dict):
        return {key: _finite(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
