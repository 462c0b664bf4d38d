"""What was asked and sent: the mechanism of a question, from its protocol."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from ldptree.mechanisms import Joint
from page_truth.artifacts import Run
from page_truth.every_page import eps, plural
from page_truth.reading import Element
from page_truth.rules import Checker, Rule


def chances(run: Run) -> dict[str, float]:
    """With what probability a report says the truth, and what else it says."""
    mechanism = run.protocol.mechanism
    match mechanism.name:
        case "joint":
            assert isinstance(mechanism, Joint)
            return {"kept": mechanism.oracle.p, "other": mechanism.oracle.q}
        case "randomized_response":
            return {"kept": mechanism.bits.p, "other": mechanism.bits.q, "label": mechanism.label.p}
        case "signed_subset":
            return {"kept": mechanism.p, "other": mechanism.q, "label": mechanism.label_p}
        case "number_response":
            return {"kept": mechanism.bits.p, "other": mechanism.bits.q}
        case _:
            return {}


def kind(run: Run) -> str:
    """What a report is made of."""
    L, C = run.protocol.n_cells, run.protocol.mechanism.n_classes
    mechanism = run.protocol.mechanism
    name = mechanism.oracle.name if isinstance(mechanism, Joint) else mechanism.name
    size = {
        "grr": "1 number",
        "olh": "a hash and 1 number",
        "number_response": f"{L + 1:,} bits and a number",
        "number_laplace": f"{2 * L:,} numbers",
        "laplace": f"{L * C:,} numbers",
        "discrete_laplace": f"{L * C:,} numbers",
        "signed_subset": f"{2 * (L + 1):,} bits",
        "randomized_response": f"{L + 1:,} bits and a label",
    }.get(name, f"{run.protocol.k:,} bits")
    return f"{name.replace('_', ' ')}, {size}"


def check_tiles(run: Run, page: Element, check: Checker, *, form: str) -> None:
    """The strip of figures under the heading."""
    strip = page.first("dl", "strip")
    sent = "the sum of their reports drawn" if form == "totals" else "one report each"
    by_row = run.config.dataset.holder == "row"
    numbers = run.protocol.mechanism.name.startswith("number_")
    values = (
        Rule.of(
            rf"^kinds and a number in a report \({re.escape(kind(run))}\): 1 of {{n_cells}}$",
            {"n_cells": run.protocol.n_cells},
        )
        if numbers
        else Rule.of(rf"^values in a report \({re.escape(kind(run))}\): 1 of {{k}}$", {"k": run.protocol.k})
    )
    rows = re.escape(run.rows())
    rules = [
        Rule.of(rf"^{'' if by_row else 'holders of '}private {rows}, {sent}: {{n}}$", {"n": run.n_private}),
        Rule.of(rf"^public {rows}: {{n}}$", {"n": run.n_public}),
        Rule.of(
            rf"^(?P<verb>claimed for each report|spent by each holder), once: {eps('epsilon')}$",
            {
                "epsilon": run.config.privacy.epsilon,
                "verb": "claimed for each report" if form == "totals" else "spent by each holder",
            },
        ),
        values,
    ]
    for tile in strip.children:
        title, figure = (one.text for one in tile.children)
        check.block(f"{title}: {figure}", rules, "tiles", whole=True)
    check.that(len(strip.children) == len(rules), "tiles: one too many or too few")
    strip.is_read = True


def rules(run: Run, *, form: str, what: str = r".*?") -> list[Rule]:
    """What one report says, how it is hidden, and what dishonest holders can do; `what`: the pattern of what is asked."""
    protocol, n = run.protocol, run.n_private
    mechanism = protocol.mechanism
    L, k = protocol.n_cells, protocol.k
    odds = chances(run)
    n_levels = mechanism.n_classes
    size = odds["kept"] + L * odds["other"] if mechanism.name == "signed_subset" else math.nan
    of_oracle = odds.get("kept", math.nan) + (k - 1) * odds.get("other", math.nan)
    name = mechanism.oracle.name if isinstance(mechanism, Joint) else mechanism.name
    spare = k == L * n_levels + 1
    force = mechanism.poisoning_bound(n)

    def dishonest(said: Mapping[str, str]) -> dict[str, Any]:
        # a total is of a cell and a label: so many totals can lie in so many cells, and in no more than there are
        in_cells = min(force.totals_at_once, L)
        return {
            "one": force.one,
            "cells": in_cells,
            "many": force.one_percent,
            "share": force.one_percent / max(n, 1),
            "so": (in_cells == L) == ("every cell" in said["where"])
            or ("the one cell" in said["where"] and L == 1),
            "why": f"{force} of {L} cells",
        }

    where = (
        r"(?P<where>in every cell at once|in the one cell|in up to {cells} cells? of their choice at once)"
    )
    written = {"n": n, "so": form == "reports"}
    return [
        Rule.of(
            rf"(?:One report|Two reports[^:]*): (?:which of {{kinds}} kinds of {re.escape(run.noun)} it is, and )?",
            {"kinds": L},
        ),
        Rule.of(
            r"Together that is one value of {k}(?P<spare>, one of which stands for anything else)?\.",
            lambda said: {"k": k, "so": ("spare" in said) == spare},
        ),
        Rule.of(r"rounded at random to one of {n_levels} equally spaced levels", {"n_levels": n_levels}),
        Rule.of(r"rounded at random to one of these two ends", {"so": n_levels == 2}),
        Rule.of(
            r"the true value is kept with probability {kept}, and otherwise replaced by one of the others, each with "
            r"probability {other}\.",
            odds | {"so": name == "grr"},
        ),
        Rule.of(
            r"It leaves as {k} bits, each tossed at random: the true value's bit is set with probability {kept}, "
            r"every other one with probability {other}\.",
            odds | {"k": k, "so": name in ("oue", "sue")},
        ),
        Rule.of(
            r"It leaves as {bits} bits, one for each kind and one for none, and a label apart: the true kind's bit is set with "
            r"probability {kept}, every other one with probability {other}, and the label is the true one with "
            r"probability {label}\.",
            odds | {"bits": L + 1, "so": name == "randomized_response"},
        ),
        Rule.of(
            r"among those that fit with probability {kept}, every other one with probability {other}\.",
            odds | {"so": name == "olh"},
        ),
        Rule.of(
            r"It leaves as a set of {size} of these values, drawn at random: the true one is among them with "
            r"probability {kept}, every other one with probability {other}\.",
            odds | {"size": round(of_oracle) if name == "ss" else 0, "so": name == "ss"},
        ),
        Rule.of(
            r"It leaves as a set of {size} of {kinds} kinds \(one stands for anything else\), drawn at random, each "
            r"with one of the two "
            r"(?:label|end)s and never with both: the true kind is among them with probability {kept}, and then has "
            r"the true (?:label|end) "
            r"with probability {label}; every other kind is among them with probability {other}, and its "
            r"(?:label|end) is a fair coin\.",
            odds
            | {"size": round(size) if size == size else 0, "kinds": L + 1, "so": name == "signed_subset"},
        ),
        Rule.of(
            r"It leaves as {cells} (?:whole )?numbers: a 0 or a 1 for each kind, and for each kind with a given "
            r"label, each with (?:discrete )?Laplace noise of its own added \(standard deviation {sd}\)\.",
            {
                "cells": L * n_levels,
                "sd": math.sqrt(mechanism.noise_variance)
                if hasattr(mechanism, "noise_variance")
                else math.nan,
            },
        ),
        *_of_numbers(run),
        Rule.of(r"{n} such reports? (?:was|were) written\.", written),
        Rule.of(r"what {n} such reports? would add up to\.", {"n": n, "so": form == "totals"}),
        Rule.of(
            rf"One who sends what they like counts for up to {{one}} honest holders, {where}\. 1 % of them together "
            rf"count for up to "
            rf"{{many}}, {{share%}} of all who reported\.",
            dishonest,
        ),
        Rule.of(
            r"One who sends what they like can move every total as far as they like, in every cell at once\.",
            {"so": math.isinf(force.one)},
        ),
    ]


def _of_numbers(run: Run) -> list[Rule]:
    """How a number is sent beside its kind."""
    mechanism = run.protocol.mechanism
    L, odds = run.protocol.n_cells, chances(run)
    if not mechanism.name.startswith("number_"):
        return []
    low, high = run.protocol.label_range
    width = high - low
    if mechanism.name == "number_response":
        sd = math.sqrt(mechanism.label_variance) * width
        return [
            Rule.of(
                r"It leaves as {bits} bits, one for each kind and one for none, and a number apart: the true kind's "
                r"bit is set with "
                r"probability {kept}, every other one with probability {other}, and the number is the .+? with noise added "
                r"\(discrete Laplace in steps of its range, standard deviation {sd}[^)]*\)\.",
                odds | {"bits": L + 1, "sd": sd},
            )
        ]
    of_cell, of_label = mechanism.scales
    return [
        Rule.of(
            r"It leaves as {numbers} numbers, two for each kind: .+? \(standard deviation {cell} of a \w+ for the "
            r"kind and {label}[^)]*"
            r" for the label\)\.",
            {"numbers": 2 * L, "cell": math.sqrt(2) * of_cell, "label": math.sqrt(2) * of_label * width},
        )
    ]


__all__ = ["check_tiles", "plural", "rules"]
