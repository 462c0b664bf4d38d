"""The page of a run in rounds: what was asked of whom, what was learned, and the finding, from questions, model and curves."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np
from chain import RoundsChain
from numpy.typing import NDArray

from ldptree.encoding import CategoricalFeature, NumericFeature
from ldptree.families.histoftree import CellsQuestion, HistOfTreeModel, LabelQuestion
from ldptree.families.public_features import FeatureBins, LabelBins, PublicFeatureModel, ResidualQuestion
from ldptree.families.public_features.steps import steps
from ldptree.models.curves import Along, evenly, is_heard
from ldptree.partition.raw import RawTree
from ldptree.protocol.question import PublicView, Question
from page_truth import cells, every_page, scores
from page_truth.artifacts import Run
from page_truth.cells import check_line_share
from page_truth.curves import Curve, Piece, check_curves
from page_truth.places import says
from page_truth.reading import NUMBER, Element
from page_truth.rules import Checker, Rule
from tasks.artifacts import read_question, read_shown

LOW_HIGH = {"rise": "from its lowest to its highest value", "bowl": "from its middle to its ends"}


class Truth:
    """What is so of a run in rounds."""

    def __init__(self, run: Run) -> None:
        chain = run.chain
        assert isinstance(chain, RoundsChain)
        self.run, self.model = run, run.model
        self.inner: HistOfTreeModel | PublicFeatureModel = run.model.inner
        self.shown: PublicView = read_shown(run.store, chain.shown["shown"])
        self.questions: list[Question] = [read_question(run.store, one["question"]) for one in chain.asked]
        self.along = Along.from_json(run.store.file(chain.model["curves"], "curves.json").read_bytes())
        self.features = run.config.features
        self.label_range: tuple[float, float] = tuple(chain.scaled.facts["label_range"])
        self.unit = run.config.dataset.unit
        self.release = run.config.mask_release

    @cached_property
    def spends(self) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """What each holder spent, and on how many questions."""
        spent, asked = np.zeros(self.shown.n), np.zeros(self.shown.n, dtype=np.int64)
        for question in self.questions:
            who = question.respondents(self.shown)
            spent[who] += question.epsilon
            asked[who] += 1
        return spent, asked

    @property
    def columns(self) -> list[str]:
        """What encoded columns are called."""
        return [
            feature.column.replace("_", " ")
            + (
                f" is {feature.levels[at]}"
                if isinstance(feature, CategoricalFeature) and at < len(feature.levels)
                else ""
            )
            for feature in self.model.encoding.features
            for at in range(len(feature.names))
        ]

    def declared(self, column: str) -> str:
        if self.release != "all" or column in self.features.private:
            return "private"
        return "own choice" if column in self.features.protects else "public"

    @cached_property
    def protects(self) -> list[int]:
        """Of each raw column, how many protect it."""
        found, at = [], 0
        for feature in self.model.encoding.features:
            found.append(int(self.shown.protects[:, at].sum()))
            at += len(feature.names)
        return found

    @cached_property
    def visible(self) -> NDArray[np.float64]:
        return np.where(self.shown.protects, np.nan, self.shown.values)

    @cached_property
    def answers(self) -> NDArray[np.float64]:
        """The model's answers over what holders show."""
        hidden = np.nan if isinstance(self.inner, PublicFeatureModel) else 0.5
        return np.asarray(self.inner.predict(np.where(self.shown.protects, hidden, self.shown.values)))

    @cached_property
    def effects(self) -> list[dict[str, Any]]:
        """What private features add, the largest first."""
        if not isinstance(self.inner, PublicFeatureModel):
            return []
        found = []
        for effect in self.inner.effects:
            by = np.asarray(effect.coefficient(self.visible))
            typical = float(np.sqrt(effect.contrast.square * np.mean(by**2)))
            if typical:
                found.append(
                    {
                        "feature": self.columns[effect.contrast.feature],
                        "shape": effect.contrast.shape,
                        "swing": effect.contrast.swing * float(by.mean()),
                        "typical": typical,
                        "varies": bool(effect.coefficient.features),
                    }
                )
        return sorted(found, key=lambda one: -one["typical"])[:12]

    @property
    def is_helped(self) -> bool:
        return isinstance(self.inner, PublicFeatureModel) and "Private features that help" in self.inner.says

    @cached_property
    def curves(self) -> list[Curve]:
        names = self.run.config.dataset.names
        made = []
        for curve in self.along.curves:
            column = self.model.encoding.features[curve.feature].column
            pieces = []
            for one in curve.readings:
                level = one.piece.level
                name = "missing" if one.piece.is_missing else ""
                if level is not None:
                    name = names.get(column, {}).get(str(level), str(level))
                pieces.append(
                    Piece(value=one.value, sd=None, name=name, low=one.piece.low, high=one.piece.high)
                )
            made.append(
                Curve(
                    column=column.replace("_", " "),
                    strength=curve.strength,
                    pieces=pieces,
                    is_smooth=curve.is_smooth,
                )
            )
        return made

    @property
    def u(self) -> str:
        """The pattern of the unit."""
        return rf"(?: {re.escape(self.unit)})?"


def check(run: Run) -> list[str]:
    """What a page says that is not so."""
    checker, truth, page = Checker(), Truth(run), run.page.first("main")
    every_page.check_tags(run, page, checker, form="reports")
    _check_tiles(truth, page.first("dl", "strip"), checker)
    sections = {one.attributes["aria-labelledby"]: one for one in page.every("section")}
    if run.scores is not None:
        scores.check_scores(run, sections["scores"], checker)
    checker.that(("scores" in sections) == (run.scores is not None), "scores of a release")
    _check_asked(truth, sections["asked"].first("table"), checker)
    _check_learned(truth, sections["learned"], checker)
    every_page.check_data(run, sections["data"], checker)
    every_page.check_making(run, sections["making"], checker)
    epsilon = run.config.privacy.epsilon
    exact = float(truth.spends[0].max())
    privacy = every_page.privacy_rules(run, epsilon=epsilon, spent=epsilon, exact=exact, form="reports")
    rules = {
        "scores": scores.rules(run),
        "privacy": [*privacy, *_sent(truth)],
        "asked": [*privacy, *_of_asked(truth)],
        "learned": _learned(truth),
        "header": [*_finding(truth), *every_page.warning_rules(run)],
    }
    every_page.sweep(run, rules, checker)
    return checker.faults


def _of_asked(truth: Truth) -> list[Rule]:
    never = int((truth.spends[1] == 0).sum())
    return [
        Rule.of(r"^Of {n} holders", {"n": truth.run.n_private}),
        Rule.of(r"; {never} were asked nothing", {"never": never, "so": never > 0}),
    ]


def _sent(truth: Truth) -> list[Rule]:
    most, never = int(truth.spends[1].max()), int((truth.spends[1] == 0).sum())
    n_rounds = len(truth.questions)
    return [
        Rule.of(
            r"Questions in {rounds} rounds, each published before it was answered\.",
            {"rounds": n_rounds, "so": n_rounds > 1},
        ),
        Rule.of(r"Each holder was asked in one of them at most, with the whole epsilon", {"so": most == 1}),
        Rule.of(r"; {never} were asked nothing\.", {"never": never, "so": never > 0}),
        Rule.of(
            r"Each holder answered up to {most} questions, and the epsilons of their answers add up\.",
            {"most": most, "so": most > 1},
        ),
        Rule.of(
            r"One question, put to {asked} holders\.",
            {"asked": int(truth.questions[0].respondents(truth.shown).size), "so": n_rounds == 1},
        ),
    ]


def _check_tiles(truth: Truth, strip: Element, check: Checker) -> None:
    run = truth.run
    names = [feature.column for feature in truth.model.encoding.features]
    hidden = [name for name in names if truth.declared(name) != "public"]
    most = int(truth.spends[1].max())
    rules = [
        Rule.of(rf"^holders of private {re.escape(run.rows())}: {{n}}$", {"n": run.n_private}),
        Rule.of(
            r"^features that somebody protects; the label is always private: {hidden} of {all}$",
            {"hidden": len(hidden), "all": len(names)},
        ),
        Rule.of(
            rf"^at most, for each holder, over all rounds: {every_page.eps('epsilon')}$",
            {"epsilon": run.config.privacy.epsilon},
        ),
        Rule.of(
            r"^(?:HistOfTree|Public features): (?:(?P<one>one question each at most)|{most} questions each): {rounds} rounds?$",
            lambda said: {"rounds": len(truth.questions), "most": most, "so": ("one" in said) == (most == 1)},
        ),
    ]
    for tile in strip.children:
        title, figure = (one.text for one in tile.children)
        check.block(f"{title}: {figure}", rules, "tiles", whole=True)
    strip.is_read = True


def _check_asked(truth: Truth, table: Element, check: Checker) -> None:
    """Every question in order: what it asks, what an answer is, of how many, at what epsilon."""
    rows = table.every("tr")[1:]
    check.that(len(rows) == len(truth.questions), f"asked: {len(rows)} of {len(truth.questions)} questions")
    for number, (row, question) in enumerate(zip(rows, truth.questions, strict=False), start=1):
        count, said, answer, asked, epsilon = [cell.text for cell in row.children]
        where = f"question {number}"
        check.same(count, number, where)
        check.same(asked, float(question.respondents(truth.shown).size), where)
        check.that(
            abs(float(epsilon) - question.epsilon) <= 0.5e-3 * question.epsilon, f"{where}: epsilon {epsilon}"
        )
        check.block(said, _asks(truth, question), where)
        check.block(answer, _answers(truth, question), where)
    table.is_read = True


def _asks(truth: Truth, question: Question) -> list[Rule]:
    rules = [Rule.of(r"\(-1 to 1\)")]
    match question:
        case LabelBins(oracle=oracle):
            return [Rule.of(r"^The label, .+?: in which of {k} bins is it\?", {"k": oracle.k})]
        case FeatureBins(oracle=oracle, feature=feature):
            return [
                Rule.of(
                    r"^(?P<feature>.+?): in which of {k} bins is it\?",
                    {"k": oracle.k, "feature": truth.columns[feature]},
                )
            ]
        case CellsQuestion(partition=partition):
            return [Rule.of(r"^Which of {cells} cells is it", {"cells": partition.n_cells})]
        case ResidualQuestion(contrast=contrast) if contrast is not None:
            name = truth.columns[contrast.feature]
            middle = {"rise": f"how low or high {name} is", "bowl": f"how far {name} is from its middle"}
            return [*rules, Rule.of(r"times (?P<how>how .+?) \(-1 to 1\)", {"how": middle[contrast.shape]})]
        case _:
            return rules


def _answers(truth: Truth, question: Question) -> list[Rule]:
    u = truth.u
    match question:
        case LabelBins(oracle=oracle) | FeatureBins(oracle=oracle):
            return [Rule.of(r"^A set of {size} bins? drawn at random", {"size": oracle.size})]
        case ResidualQuestion(contrast=None):
            middle, half = question.surface.intercept, question.half
            low, high = truth.label_range
            ends = {"low": max(middle - half, low), "high": min(middle + half, high)}
            return [Rule.of(r"the label is first moved into {low} to {high}", ends)]
        case ResidualQuestion():
            return [Rule.of(rf"the difference is first cut at {{half}}{u}", {"half": question.half})]
        case LabelQuestion(low=low, high=high):
            return [Rule.of(r"the label is first moved into {low} to {high}", {"low": low, "high": high})]
        case _:
            return []


def _check_learned(truth: Truth, section: Element, check: Checker) -> None:
    check_curves(section, truth.curves, check)
    tables = {
        part.attributes["aria-label"]: part.first("table")
        for part in section.every("div", "wide")
        if part.every("table")
    }
    _check_features(truth, tables["Features"], check)
    effects = tables.get("Effects of private features")
    check.that((effects is not None) == bool(truth.effects), "effects: a table")
    if effects is not None:
        _check_effects(truth, effects, check)
    if "Steps of the trees" in tables:
        _check_steps(truth, tables["Steps of the trees"], check)
    for tree in section.every("div", "tree"):
        _check_tree(truth, tree, check)


def _check_features(truth: Truth, table: Element, check: Checker) -> None:
    n = truth.run.n_private
    known = {
        feature.column.replace("_", " "): (feature.column, truth.along.strengths[at], truth.protects[at])
        for at, feature in enumerate(truth.model.encoding.features)
    }
    rows = table.every("tr")[1:]
    check.that(len(rows) == len(known), f"features: {len(rows)} of {len(known)}")
    shares = []
    for row in rows:
        name, _, share, who = [cell.text for cell in row.children]
        _, strength, protects = known[name]
        shares.append(strength)
        check.that((share == "–") == (strength == 0), f"features: {name}: {share}")
        if share != "–":
            check_line_share(share, strength, f"features: {name}", check)
        width = float(row.first("rect", "fill").attributes["width"])
        check.that(
            abs(width - 44 * min(max(strength, 0), 1)) < 0.01, f"features: {name}: the bar is {width} of 44"
        )
        if truth.release != "all":
            check.that("not sent" in who, f"features: {name}: {who}")
        elif protects in (0, n):
            check.that(
                who == ("shown by all" if not protects else "protected by all"), f"features: {name}: {who}"
            )
        else:
            check.block(
                who,
                [Rule.of(r"protected by {some} of {n}", {"some": protects, "n": n})],
                f"features: {name}",
                whole=True,
            )
    check.that(shares == sorted(shares, reverse=True), "features: not in the order of their strength")
    table.is_read = True


def _check_effects(truth: Truth, table: Element, check: Checker) -> None:
    rows = table.every("tr")[1:]
    check.that(len(rows) == len(truth.effects), f"effects: {len(rows)} of {len(truth.effects)}")
    for row, one in zip(rows, truth.effects, strict=False):
        name, change, typical = [cell.text for cell in row.children]
        where = f"effect of {name}"
        check.that(name == one["feature"], f"{where}: is of {one['feature']}")
        check.block(
            change,
            [
                Rule.of(
                    rf"^{{swing}}{truth.u} (?P<from_to>from its \w+ to its \w+(?: value)?)",
                    {"swing": one["swing"], "from_to": LOW_HIGH[one["shape"]]},
                ),
                Rule.of(r", on average: more or less by public features$", {"so": one["varies"]}),
            ],
            where,
            whole=True,
        )
        check.same(re.findall(NUMBER, typical)[0], one["typical"], where)
    table.is_read = True


def _check_steps(truth: Truth, table: Element, check: Checker) -> None:
    assert isinstance(truth.inner, PublicFeatureModel)
    surface, encoding = truth.inner.surface, truth.model.encoding
    found = steps(surface, evenly(truth.visible, 2000))[:6]
    places = [(feature, at) for feature in encoding.features for at in range(len(feature.names))]
    rows = table.every("tr")[1:]
    check.that(len(rows) == len(found), f"steps: {len(rows)} of {len(found)}")
    for row, one in zip(rows, found, strict=False):
        asks, adds, by, share = [cell.text for cell in row.children]
        feature, at = places[one.feature]
        where = f"step {asks!r}"
        if isinstance(feature, NumericFeature) and at == 0:
            raw = feature.minimum + one.threshold * (feature.maximum - feature.minimum)
            stated = asks.removeprefix(f"{feature.column.replace('_', ' ')} above about ").rstrip("?")
            check.that(abs(_plain(stated) - raw) <= 0.501e-2 * abs(raw), f"{where}: is at {raw}")
        else:
            check.that(
                asks.startswith(truth.columns[one.feature]) or "missing" in asks,
                f"{where}: is {truth.columns[one.feature]}",
            )
        check.same(re.findall(NUMBER, adds)[0], one.change, where)
        check.block(
            by,
            [Rule.of(r"^{some} of {all} trees$", {"some": one.n_trees, "all": len(surface.trees)})],
            where,
            whole=True,
        )
        check_line_share(share, one.share, where, check)
    table.is_read = True


def _plain(text: str) -> float:
    return float(text.replace(",", "").replace("−", "-"))


def _check_tree(truth: Truth, drawn: Element, check: Checker) -> None:
    """HistOfTree's tree with the largest cells of its histogram under each leaf."""
    model = truth.inner
    assert isinstance(model, HistOfTreeModel)
    product = model.partition
    tree = product.tree
    shape = (product.histogram.n_cells, tree.n_leaves)
    shares, values, heard = (a.reshape(shape) for a in (model.shares, model.value, is_heard(model)))
    weights = np.maximum(shares, 1e-9)
    below = cells.below(tree)
    raw = RawTree.of(tree, truth.model.encoding)
    known = values[heard] if heard.any() else None
    lines = [(line, depth) for line, depth in cells.drawn_nodes(drawn)]
    names = truth.run.config.dataset.names
    for (line, _), node in zip(lines, cells.in_tree(tree, lines, check), strict=True):
        inside = below[node]
        spans = [one for one in line.children if one.tag == "span"]
        head = spans[0]
        where = f"tree: {head.text!r}"
        fault = says(head.first("b").text, raw, node, names, last=True, every=f"all {truth.run.nouns}")
        check.that(not fault, f"{where}: {fault}")
        average = float((weights[:, inside] * values[:, inside]).sum() / weights[:, inside].sum())
        told = [one for one in head.first("span", "told").children if one.tag != "svg"]
        check_line_share(told[0].text, float(shares[:, inside].sum()), where, check)
        check.same(told[1].text, average, where)
        is_noise = shape[0] == 1 and len(inside) == 1 and not heard[0, inside[0]]
        check.that((told[2].text == "in the noise") == is_noise, f"{where}: {told[2].text}")
        if known is not None:
            _check_bar(head, average, known, where, check)
        if tree.feature[node] < 0 and shape[0] > 1:
            _check_boxes(
                shares[:, inside[0]], values[:, inside[0]], heard[:, inside[0]], spans[1:], where, check
            )
        else:
            _check_cut(line, spans[1:], len(inside) * shape[0], tree.feature[node] >= 0, where, check)
    drawn.is_read = True


def _check_bar(head: Element, value: float, known: NDArray[np.float64], where: str, check: Checker) -> None:
    low, high = float(known.min()), float(known.max())
    place = min(max((value - low) / (high - low), 0.0), 1.0) if high > low else 0.5
    width = float(head.first("rect", "fill").attributes["width"])
    check.that(abs(width - 44 * place) < 0.01, f"{where}: the bar is {width} of 44")


def _check_boxes(
    shares: NDArray[np.float64],
    values: NDArray[np.float64],
    heard: NDArray[np.bool_],
    spans: list[Element],
    where: str,
    check: Checker,
) -> None:
    """The largest cells of a leaf's histogram, in their order."""
    largest = np.sort(np.argsort(-shares, kind="stable")[:12])
    boxes = [one for one in spans if "box-of" in one.classes]
    check.that(len(boxes) == len(largest), f"{where}: {len(boxes)} cells of a histogram")
    for box, cell in zip(boxes, largest.tolist(), strict=False):
        told = [one for one in box.first("span", "told").children if one.tag not in ("svg", "i")]
        check_line_share(told[0].text, float(shares[cell]), where, check)
        check.same(told[1].text, float(values[cell]), where)
        check.that((told[2].text == "in the noise") == (not heard[cell]), f"{where}: {told[2].text}")
    left = len(shares) - len(largest)
    more = [one.text for one in spans if "hush" in one.classes]
    check.that(bool(more) == bool(left), f"{where}: {more}")
    for text in more:
        check.same(re.findall(NUMBER, text)[0], left, where)


def _check_cut(
    line: Element, spans: list[Element], n_cells: int, is_inner: bool, where: str, check: Checker
) -> None:
    said = [one for one in spans if "hush" in one.classes]
    if line.tag == "div" and is_inner:
        check.that(len(said) == 1, f"{where}: cells below")
        check.same(said[0].text.split()[0], n_cells, where)


def _learned(truth: Truth) -> list[Rule]:
    run, along = truth.run, truth.along
    rules = [
        Rule.of(r"over {averaged}(?: of {n})? holders", {"averaged": along.n_averaged, "n": run.n_private}),
        Rule.of(
            r"at one step {most%} of the averaged answers are those of cells in the noise",
            {"most": max((one.in_noise for one in along.curves), default=0.0)},
        ),
        Rule.of(r"± 2 sd"),
    ]
    if isinstance(truth.inner, HistOfTreeModel):
        return rules + _of_shape(truth, truth.inner)
    surface = truth.inner.surface
    rows = evenly(truth.visible, 2000)
    line = (surface.columns(rows) - surface.stand_ins) @ surface.slopes
    beyond = surface(rows) - line
    return [
        *rules,
        Rule.of(r"the mean of {trees} small trees", {"trees": len(surface.trees)}),
        Rule.of(
            rf"Over what is shown the line spreads answers by {{line}}{truth.u} \(sd\), and the trees correct it "
            rf"by {{trees}}{truth.u}\.",
            {"line": float(line.std()), "trees": float(beyond.std())},
        ),
        *_of_effects(truth),
    ]


def _of_effects(truth: Truth) -> list[Rule]:
    """What is said where private features have a part in the model, and none is found to help."""
    return [
        Rule.of(
            r"What the reports say of private features, too little to count as help, is in the model all the same\.",
            {"so": bool(truth.effects) and not truth.is_helped},
        )
    ]


def _of_shape(truth: Truth, model: HistOfTreeModel) -> list[Rule]:
    histogram, tree = model.partition.histogram, model.partition.tree
    return [
        Rule.of(
            r"a histogram of t = {bins} bins on s = {binned} features? \((?P<names>[^)]+)\)",
            {"bins": histogram.bins, "binned": len(histogram.features)},
        ),
        Rule.of(
            r"a tree of depth p = {depth} on the others", {"depth": tree.max_depth, "so": tree.max_depth > 0}
        ),
        Rule.of(r": {cells} cells?\.", {"cells": model.partition.n_cells}),
        Rule.of(r"the paper's \(15\) chooses them", {"so": model.partition.n_cells == 1}),
        Rule.of(
            r"How many holders are in a cell is estimated from reports\.", {"so": model.mechanism is not None}
        ),
        Rule.of(r"Which cell a holder is in follows from what is shown", {"so": model.mechanism is None}),
    ]


def _finding(truth: Truth) -> list[Rule]:
    run, found = truth.run, scores.scores_of(truth.run)
    target = re.escape(run.config.dataset.target.replace("_", " "))
    on = rf"{{n}} {re.escape(run.rows(run.n_private))} at {every_page.eps('epsilon')}"
    about: dict[str, Any] = {"n": run.n_private, "epsilon": run.config.privacy.epsilon}
    best = truth.effects[0] if truth.effects else None
    helped = truth.is_helped and best is not None
    rules = [
        Rule.of(
            rf"^From {on}: {target} is about {{swing}}{truth.u} (?P<way>higher|lower) (?P<from_to>from its .+?) of "
            rf"the private (?P<feature>.+?)\.",
            {**about, "so": False}
            if best is None
            else about
            | {
                "swing": abs(best["swing"]),
                "way": "higher" if best["swing"] >= 0 else "lower",
                "from_to": LOW_HIGH[best["shape"]],
                "feature": best["feature"],
                "so": helped,
            },
        ),
        Rule.of(
            rf"^{on} give a model of {target} with a mean squared error of {{ours}}(?P<of>, to which private features .+?)?\.",
            lambda said: (
                about
                | {
                    "ours": found.figure("ours") if found else np.nan,
                    "so": not helped and ("add nothing" in said.get("of", "")) <= (not truth.effects),
                    "why": truth.effects,
                }
            ),
        ),
        Rule.of(
            rf"^From {on}, a model now predicts {target}(?P<of>, to which private features .+?)?\.",
            lambda said: (
                about
                | {
                    "so": found is None
                    and not helped
                    and ("add nothing" not in said.get("of", "") or not truth.effects)
                }
            ),
        ),
        Rule.of(
            rf"Over what the holders show, answers run from {{low}}{truth.u} to {{high}}{truth.u}\.",
            {"low": truth.answers.min(), "high": truth.answers.max()},
        ),
        *_of_effects(truth),
        *_own_words(truth),
    ]
    return rules + (_compared(truth, found) if found else scores.comparison_rules(run, {}, public=()))


def _own_words(truth: Truth) -> list[Rule]:
    """What the model says of itself, which is in the model as it stands."""
    if not isinstance(truth.inner, PublicFeatureModel):
        return []
    said = truth.inner.says
    plain = dict(zip(truth.model.encoding.names, truth.columns, strict=True))
    for name in sorted(plain, key=len, reverse=True):
        said = said.replace(name, plain[name])
    return [Rule.of(re.escape(re.sub(r"\s+", " ", said)))]


def _compared(truth: Truth, found: scores.Scores) -> list[Rule]:
    run = truth.run
    ours = found.of["ours"]
    what = {"public_tree": "a tree", "public_forest": "a forest"}
    best = found.best(*what)
    rows = rf"the {{n_public}} public {re.escape(run.nouns)}, all features and labels known"
    rival: dict[str, Any] = {
        "n_public": run.n_public,
        "value": found.figure(best),
        "what": what[best],
    }

    def claimed(key: str, verdict: str, more: Mapping[str, Any]) -> dict[str, Any]:
        return {**more, "so": found.verdict(key) == verdict, "why": found.verdict(key)}

    constant = {"value": found.figure("constant")}
    return [
        Rule.of(
            rf"On {{scored}} {re.escape(run.rows(found.content['n_test']))} held back the mean squared error "
            rf"is {{ours}}(?:, R² {{r2}})?\.",
            {"scored": found.content["n_test"], "ours": ours["mse"], "r2": ours["r2"]},
        ),
        Rule.of(
            r"Always predicting the mean of the public labels has {value}\.",
            claimed("constant", "better", constant),
        ),
        Rule.of(
            r"Always predicting the mean of the public labels has {value}: the model is not measurably better than that\.",
            claimed("constant", "level", constant),
        ),
        Rule.of(
            r"Always predicting the mean of the public labels has {value}: the model is worse than that\.",
            claimed("constant", "worse", constant),
        ),
        Rule.of(rf"The best model from {rows}, <what>, gets {{value}}\.", claimed(best, "better", rival)),
        Rule.of(
            rf"But <what> from {rows}, does better, with no report: {{value}}\. Their labels are not used by this "
            rf"estimator, which takes "
            r"only ranges from public rows\.",
            claimed(best, "worse", rival),
        ),
        Rule.of(
            rf"The best model from {rows}, <what>, gets {{value}}: too near to say on these test rows which is better\.",
            claimed(best, "level", rival),
        ),
        Rule.of(
            rf"A tree that reads the private {re.escape(run.nouns)} themselves gets {{value}}\.",
            {"value": found.figure("non_private"), "so": found.is_ahead("non_private", "ours")},
        ),
    ]
