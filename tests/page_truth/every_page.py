"""What every kind of page says: who was asked, what was spent, which data, which checks, how long it took."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from importlib.metadata import version
from typing import Any

from chain import Chain

from page_truth.artifacts import Run
from page_truth.reading import NUMBER, Element, number
from page_truth.rules import Checker, Rule, agrees

EPSILON = r"ε = (?P<{}>[\d.e+\-]+)"


def eps(name: str) -> str:
    """The pattern of a budget."""
    return EPSILON.format(name)


def plural(noun: str, nouns: str) -> str:
    return rf"(?:{re.escape(noun)}|{re.escape(nouns)})"


def check_tags(run: Run, page: Element, check: Checker, *, form: str) -> None:
    """The short labels above the heading."""
    config = run.config
    tags = page.first("ul", "tags")
    expected = [config.name, config.dataset.title or config.dataset.name]
    expected += ["simulated data"] if config.dataset.simulated else []
    expected += ["seeded noise: protects nobody"] if config.is_seeded else []
    expected += ["sums drawn: no report written"] if form == "totals" else []
    made = datetime.fromisoformat(run.facts["created"])
    expected.append(f"{made.day} {made:%B %Y}, {made:%H:%M %Z}".rstrip())
    found = [one.text for one in tags.every("li")]
    check.that(found == expected, f"tags: {found}, not {expected}")
    loud = [one.text for one in tags.every("li") if "loud" in one.classes]
    check.that(loud == expected[2:-1], f"loud tags: {loud}")
    tags.is_read = True


def privacy_rules(run: Run, *, epsilon: float, spent: float, exact: float, form: str) -> list[Rule]:
    """Promise, holder, spending, noise, and what is not protected, of every kind of page."""
    n, ns = run.noun, run.nouns
    data, config = run.config.dataset, run.config
    cap = run.spent.cap
    is_released = form == "reports" and not config.is_seeded
    n_test = int(run.held.facts["n_test"])
    of_mechanism = {"factor": math.exp(epsilon), "epsilon": epsilon}

    def promised(said: Mapping[str, str]) -> dict[str, Any]:
        stated = number(re.sub(r"\s", "", said["exact"]))
        return of_mechanism | {
            # never less than what was spent, and no more than nine decimals above
            "so": 0 <= stated - exact <= 1.001e-9 and stated <= epsilon * (1 + 1e-6),
            "why": f"exactly {exact}",
            "exact": said["exact"],
        }

    return [
        Rule.of(
            rf"(?:Whatever was received|Whatever report were received), any two {re.escape(ns)} could have sent it, with "
            r"probabilities that differ at most by a factor of {factor}: that is what "
            + eps("epsilon")
            + r" claims\. Recomputed from the integers that (?:the coins are really tossed with|a holder would toss "
            r"the coins with): "
            r"ε ≤ (?P<exact>\d+\.\d{3} \d{3} \d{3})\.",
            promised,
        ),
        Rule.of(
            rf"Take any two {re.escape(ns)}(?P<less> that show the same| that could be in the same cells)?, however "
            rf"they differ in "
            r"what is protected\. Whatever was received in all rounds together, either could have sent it, with probabilities "
            r"that differ at most by a factor of {factor}: that is semi-feature local differential privacy with "
            + eps("epsilon"),
            lambda said: (
                of_mechanism
                | {
                    "less": {"all": " that show the same", "cells": " that could be in the same cells"}.get(
                        config.mask_release, ""
                    )
                }
            ),
        ),
        Rule.of(
            r"No holder spent more than " + eps("epsilon") + r" (?:in this run|over all rounds)\.",
            {"epsilon": epsilon, "so": exact <= epsilon * (1 + 1e-6)},
        ),
        Rule.of(
            r"Recomputed from the integers that the coins are really tossed with, the most that any holder spent: ε ≤ "
            r"(?P<exact>\d+\.\d{3} \d{3} \d{3})\.",
            promised,
        ),
        Rule.of(
            r"Spent by each holder: " + eps("epsilon") + r", (?:once|in {rounds} reports)\.",
            {"epsilon": spent, "so": spent != epsilon},
        ),
        Rule.of(
            rf"One {re.escape(n)}: the configuration declares that each is a person's only one\. Someone with two of "
            rf"them in the "
            r"data is protected only with " + eps("twice") + r"\.",
            {"twice": 2 * epsilon, "so": data.holder == "row"},
        ),
        Rule.of(
            r"Everyone with the same “(?P<holder>[^”]+)”\.",
            {"holder": data.holder, "so": data.holder != "row"},
        ),
        Rule.of(
            rf"Each holder asked in this run (?P<verb>would spend|spends) {eps('epsilon')}\. The largest spend of any "
            rf"holder, over "
            rf"everything asked (?P<within>with this noise seed )?in this work folder, is {eps('largest')}, "
            rf"on {{questions}} questions?\.",
            {
                "verb": "would spend" if form == "totals" else "spends",
                "epsilon": spent,
                "largest": run.spent.largest,
                "questions": run.spent.questions,
                "within": "with this noise seed " if config.is_seeded else "",
            },
        ),
        Rule.of(
            rf"The ledger charged every holder {eps('epsilon')} before the first question, whoever was asked in the "
            rf"end\. The largest "
            rf"spend of any holder, over everything asked (?P<within>with this noise seed )?in this work folder, "
            rf"is {eps('largest')}, "
            r"on {questions} collections? \(the rounds of a run are one\)\.",
            {"epsilon": epsilon, "largest": run.spent.largest, "questions": run.spent.questions},
        ),
        Rule.of(
            r"No lifetime cap was stated \(privacy\.lifetime_epsilon\): spending is counted, and not refused\.",
            {"so": cap is None},
        ),
        Rule.of(
            rf"Nobody may spend more than {eps('cap')} in all: a run that would make them is refused before anybody is asked\.",
            {"cap": cap if cap is not None else math.nan, "so": cap is not None},
        ),
        Rule.of(
            r"From a seed: this is a simulation whose noise anyone with the seed can take away again, so it protects nobody\.",
            {"so": config.is_seeded},
        ),
        Rule.of(
            r"From the operating system of whoever drew the (?P<drawn>sums|reports)\. It cannot be drawn again\.",
            {"so": not config.is_seeded, "drawn": "sums" if form == "totals" else "reports"},
        ),
        Rule.of(
            r"That “(?P<where>.+)” is true of whoever took part, for no one else was asked\.",
            {"where": re.sub(r"\s+", " ", data.where or "").strip()},
        ),
        Rule.of(
            r"“(?P<columns>[^.]+)”, which tells public \w+ from private ones: taken as known of everyone\.",
            lambda said: {
                "columns": "” and “".join(run.chain.ingested.facts["rule_columns"])
                if len(run.chain.ingested.facts["rule_columns"]) < 3
                else said["columns"]
            },
        ),
        Rule.of(rf"The {{n_public}} public {plural(n, ns)}, in any way\.", {"n_public": run.n_public}),
        Rule.of(
            rf"The private {re.escape(ns)} behind the comparisons on this page(?:\. To make them, every "
            rf"private {re.escape(n)} of this run "
            rf"was read as it is, without noise, as only a simulation may: the {{n_test}} private {plural(n, ns)} "
            rf"held back, and those "
            r"that were asked\.|: only a simulation may read them; this page itself is no release\. )",
            {"n_test": n_test, "so": config.evaluate},
        ),
        Rule.of(
            r"So this page itself is no ε-LDP release(?P<but>; the reports and the model are)?\.",
            {"so": config.evaluate, "but": "; the reports and the model are" if is_released else "nothing"},
        ),
    ]


def checks_met(run: Run) -> list[str]:
    """How many expectations the rows of each zone meet; those of private rows may stay with their holders."""
    met = {zone: [one["ok"] for one in run.checks if one["zone"] == zone] for zone in ("public", "private")}
    return [f"{sum(found):,} of {len(found):,}" if found else "kept by the holders" for found in met.values()]


def check_data(run: Run, section: Element, check: Checker) -> None:
    """The section of the data: its rows, and every check of the validation."""
    chain = run.chain
    ingested, held, scaled = chain.ingested.facts, chain.held.facts, chain.scaled.facts
    set_aside = ingested["bad_public"] + ingested["left_out_public"]
    n_asked = held["n_private"]
    away = "kept by the holders"
    expected: dict[str, tuple[Any, Any]] = {
        "rows read": (run.n_public + scaled["n_unusable"] + set_aside, away),
        "learned from": (run.n_public, run.n_private),
        "of these, asked in this run": ("–", n_asked),
        "held back for the test": (0, held["n_test"]),
        "set aside as faulty": (ingested["bad_public"], away),
        "checks met": tuple(checks_met(run)),
        "exact copies between training and test": ("–", (run.scores or {}).get("duplicates")),
    }
    must = {"rows read", "learned from", "checks met"} | (
        {"held back for the test"} if held["n_test"] else set()
    )
    table = section.first("table")
    seen = set()
    for row in table.every("tr")[1:]:
        title, *cells = [cell.text for cell in row.children]
        seen.add(title)
        check.that(title in expected, f"data: nothing is known of the line {title!r}")
        for cell, value in zip(cells, expected.get(title, ("", "")), strict=True):
            if isinstance(value, str):
                check.that(cell == value, f"data, {title}: {cell}, not {value}")
            else:
                check.same(cell, float(value), f"data, {title}")
    check.that(must <= seen, f"data: lines that are not there: {must - seen}")
    table.is_read = True
    check_expectations(run, section, check)


def check_expectations(run: Run, section: Element, check: Checker) -> None:
    """Every expectation of the validation, and what the data are."""
    config = run.config
    lists = section.every("ul", "checks")
    states = {(c["name"], c["zone"]): c for c in run.checks}
    left_out = run.chain.ingested.facts["columns_left_out"]
    for line in [line for one in lists for line in one.every("li")]:
        named = re.fullmatch(r"“(.+?)”: (.+)", line.text)
        if named:
            check.that(_plain(str(left_out.get(named[1], ""))) == named[2], f"data: left out: {line.text}")
        elif line.text[:1] in "✓✗!":
            _check_line(line.text, states, check)
        else:
            check.same(line.text.split()[1], len(left_out) - 50, f"data: left out: {line.text}")
        line.is_read = True
    of_title = re.escape(config.dataset.title or config.dataset.name)
    rules = [
        Rule.of(rf"^{of_title}"),
        Rule.of(r": simulated, no one's real ", {"so": config.dataset.simulated}),
        Rule.of(r"Public: “(?P<rule>.+?)”\.", {"rule": re.sub(r"\s+", " ", config.dataset.public).strip()}),
        Rule.of(
            r"Only .+? with “(?P<where>.+)” take part\.",
            {"where": re.sub(r"\s+", " ", config.dataset.where or "").strip()},
        ),
        Rule.of(
            r"All {n_checks} checks?; (?:private rows answer yes or no only|those of private rows stay with their holders)",
            {"n_checks": len(run.checks)},
        ),
    ]
    _sweep(section, rules, check, "data")
    section.is_read = True


def _check_line(text: str, states: Mapping[tuple[str, str], Mapping[str, Any]], check: Checker) -> None:
    """One expectation: its mark, its name, its zone, what was found."""
    found = re.fullmatch(
        r"(?P<mark>[✓✗!]) (?P<state>met|failed|warning) (?P<name>.+) \((?P<zone>public|private)\)(?P<detail>.*)",
        text,
    )
    known = found and next(
        (
            c
            for (name, zone), c in states.items()
            if re.sub(r"\s+", " ", name).strip() == found["name"] and zone == found["zone"]
        ),
        None,
    )
    if not found or known is None:
        check.that(False, f"data: no expectation is {text!r}")
        return
    state = "met" if known["ok"] else "failed" if known.get("severity", "stop") == "stop" else "warning"
    check.that(found["state"] == state, f"data: {text!r} is {state}")
    check.that(found["detail"].strip() == known.get("detail", "").strip(), f"data: {text!r}: {known}")
    check.n_numbers += len(re.findall(NUMBER, text))


def check_making(run: Run, section: Element, check: Checker) -> None:
    """The section of how it was made: steps and times as they were kept, every setting, version and digest."""
    facts = run.facts
    total = max([facts["seconds"], *(s["start"] + s["seconds"] for s in facts["steps"]), 1e-9])
    lines = section.first("ol", "steps").every("li")
    check.that(len(lines) == len(facts["steps"]), "making: a step is not shown, or one too many")
    for line, step in zip(lines, facts["steps"], strict=True):
        name = line.first("div", "name").text
        shards = f", {step['shards']} shard{'s' if step['shards'] != 1 else ''}" if step["shards"] else ""
        check.that(name == f"{step['name']}{shards}", f"making: {name}")
        value = line.first("div", "value").text
        if step["state"] == "cached":
            check.that(value == "cached", f"making: {value}")
        else:
            check.that(_is_time(value.removesuffix(", failed"), step["seconds"]), f"making: {value}: {step}")
        bar = line.first("rect").attributes
        left, width = float(bar["x"].rstrip("%")), float(bar["width"].rstrip("%"))
        check.that(
            abs(left - min(100 * step["start"] / total, 99.0)) < 0.02, f"making: {step}: begins at {left}"
        )
        long = max(min(100 * step["seconds"] / total, 100 - left), 0.6)
        check.that(abs(width - long) < 0.02, f"making: {step} is {width} long")
        line.is_read = True
    caption = section.first("figcaption")
    said = re.fullmatch(
        r"(?P<time>[\d.hmin s]+?)(?: on (?P<cores>\d+) cores?)?(?:, peak memory (?P<memory>[\d.]+ [MG]B))?\.( .*)?",
        caption.text,
    )
    check.that(said is not None and _is_time(said["time"], facts["seconds"]), f"making: {caption.text}")
    if said and said["cores"]:
        check.same(said["cores"], facts["cores"], "making: cores")
    if said and said["memory"]:
        size, unit = said["memory"].split()
        check.same(size, facts["peak_rss_mb"] / (1000 if unit == "GB" else 1), "making: memory")
    caption.is_read = True
    command = section.first("pre")
    check.that(command.text == re.sub(r"\s+", " ", facts["command"]).strip(), "making: the command")
    command.is_read = True
    for table in section.every("table", "pairs"):
        for row in table.every("tr"):
            _check_pair(run, [cell.text for cell in row.children], check)
        table.is_read = True
    _sweep(section, [], check, "making")
    section.is_read = True


def _is_time(text: str, seconds: float) -> bool:
    """Whether a duration is that many seconds, as far as it says."""
    parts = {unit: float(value) for value, unit in re.findall(r"([\d.]+) (h|min|s)", text)}
    if set(parts) == {"s"}:
        return agrees(re.findall(r"[\d.]+", text)[0], seconds)
    slack = 30.5 if "h" in parts else 0.51
    return abs(3600 * parts.get("h", 0) + 60 * parts.get("min", 0) + parts.get("s", 0) - seconds) <= slack


def _check_pair(run: Run, pair: Sequence[str], check: Checker) -> None:
    """A setting, a version or a digest."""
    key, value = pair
    flat = flattened(run.config.model_dump(mode="json"))
    if re.fullmatch(r"[0-9a-f]{64}", value):
        check.that(value == digests(run).get(key), f"making: the digest of {key}")
    elif key in flat or key.split(".")[0] in ("dataset", "model", "privacy", "evaluation", "simulation"):
        check.that(
            _plain(flat.get(key, "")) == _plain(value), f"making: {key} is {flat.get(key)!r}, not {value!r}"
        )
    else:
        check.that(version(key) == value, f"making: {key} {value}")
    check.n_numbers += len(re.findall(NUMBER, value))


def _plain(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip()


def digests(run: Run) -> dict[str, str]:
    """What the page may name by its digest."""
    found = {"model": str(run.model.digest), "public rows, scaled": run.chain.scaled["scaled"].digest}
    if isinstance(run.chain, Chain):
        return found | {"protocol": run.protocol.digest, "totals": run.chain.totals["totals"].digest}
    asked = {f"question {number}": digest for number, digest in enumerate(run.model.questions, start=1)}
    return found | asked | {"what is shown": run.chain.shown["shown"].digest}


def flattened(value: Any, prefix: str = "") -> dict[str, str]:
    """A configuration as dotted keys."""
    if isinstance(value, dict):
        return {
            key: text
            for name, item in value.items()
            for key, text in flattened(item, f"{prefix}.{name}" if prefix else name).items()
        }
    return {prefix: value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}


def warning_rules(run: Run) -> list[Rule]:
    """What is to be read first."""
    scores = run.scores or {"duplicates": 0, "n_test_all": 1}
    share = scores["duplicates"] / max(scores["n_test_all"], 1)
    return [
        Rule.of(
            r"{share%} of the held-back rows have an exact copy among the rows learned from: scores look better than "
            r"on new people\.",
            {"share": share, "so": share > 0.01},
        ),
        Rule.of(
            r"one bit for each that is listed below, at most {most} over all runs of this work folder\.",
            {"most": run.config.privacy.max_released_checks},
        ),
        Rule.of(r"The holders' noise came from a seed .*", {"so": run.config.is_seeded}),
    ]


def sweep(run: Run, rules: Mapping[str, Sequence[Rule]], check: Checker) -> None:
    """Whatever no check has read yet: every number in it is explained by a rule of its place."""
    main = run.page.first("main")
    for section in main.every("section"):
        where = section.attributes.get("aria-labelledby", "")
        if where in rules:
            _sweep(section, rules[where], check, where)
            section.is_read = True
    header = main.first("header")
    _sweep(header, rules["header"], check, "header")
    header.is_read = True
    _sweep(main, [Rule.of(rf"Written by ldptree {re.escape(version('ldptree'))}\.")], check, "page")


PICTURES = {"track", "plot", "axis", "upward", "limbs", "meter"}


def _sweep(part: Element, rules: Sequence[Rule], check: Checker, where: str) -> None:
    for block in part.blocks():
        is_heading = block.tag == "h1" or "lead" in block.classes
        check.block(block.text, rules, f"{where}: {block.tag}", whole=is_heading)
    for one in part.unread():
        label = one.attributes.get("aria-label", "")
        if re.search(r"\d", label):
            check.block(re.sub(r"\s+", " ", label), rules, f"{where}: aria-label")
        if one.tag == "svg" and one.classes & PICTURES:
            check.that(False, f"{where}: a picture that nothing checks: {one.attributes}")
