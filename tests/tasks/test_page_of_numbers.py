"""What the page of a label that is a number promises, read from its text: it says what is so, in the label's unit, of nobody."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import number_samples
import numpy as np
import pytest
from page_reader import Page

from ldptree.estimators.lpdt import LPDTRegressor
from ldptree.models.effects import tree_importance
from tasks.page import charts, number_finding, number_words, numbers, plots, privacy, render
from tasks.page.basic_facts import DiscrepancyFacts, Span
from tasks.page.facts import NumberFacts, facts_from
from tasks.page.number_facts import BinFacts, CurveFacts, NumberScore, PieceFacts
from tasks.page.number_learned import centre_of, curves_of, private_shares, push_of, tree_of

SAMPLES = number_samples.NUMBER_SAMPLES


@pytest.fixture(scope="module")
def facts() -> dict[str, NumberFacts]:
    return {name: getattr(number_samples, name)() for name in SAMPLES}


@pytest.fixture(scope="module")
def pages(facts: dict[str, NumberFacts]) -> dict[str, str]:
    return {name: render.render(one) for name, one in facts.items()}


@pytest.mark.parametrize("name", SAMPLES)
def test_a_page_of_numbers_is_well_formed_and_loads_and_runs_nothing(pages, name):
    page = Page(pages[name])
    assert not {"script", "iframe", "img", "object", "embed", "form", "base"} & set(page.tags)
    for tag, attribute, value in page.attributes:
        assert not attribute.startswith("on"), (tag, attribute)
        if attribute in ("href", "src", "srcset", "action", "data"):
            assert value.startswith(("#", "data:,")), (tag, value)
    assert len(pages[name].encode()) < 2_000_000
    assert not re.search(r"\bnan\b|\binf\b|None", page.words)


@pytest.mark.parametrize("name", SAMPLES)
def test_every_picture_of_numbers_can_be_said_or_is_left_out_of_what_is_said(pages, name):
    pictures = re.findall(r'<svg class="[^"]*(?:track|axis|key|meter|plot|upward)[^"]*"[^>]*>', pages[name])
    assert pictures
    assert all(
        'aria-hidden="true"' in tag or re.search(r'role="img" aria-label="[^"]+"', tag) for tag in pictures
    )


@pytest.mark.parametrize("name", SAMPLES)
def test_no_mark_of_numbers_lies_outside_its_picture(pages, name):
    across = re.findall(r'\b(?:x|x1|x2|cx|width)="(-?[\d.]+)%"', pages[name])
    assert across
    assert all(0 <= float(place) <= 100 for place in across)
    for plot in re.findall(r'<svg class="plot".*?</svg>(?=<i>)', pages[name], re.S):
        upward = re.findall(r'\b(?:y|y1|y2|cy)="(-?[\d.]+)"', plot)
        assert all(0 <= float(place) <= plots.HEIGHT for place in upward)


def test_what_comes_from_data_is_text_wherever_it_stands_on_a_page_of_numbers(pages):
    page = Page(pages["hostile_numbers"])
    assert "fetch('//evil.example')" in page.words
    assert "{{ 7*7 }}" in page.words
    assert "<script" not in pages["hostile_numbers"]
    assert "script" not in page.tags
    assert "<script" not in render.summary_markdown(number_samples.hostile_numbers())


def test_facts_of_numbers_come_back_from_json_as_they_were(facts):
    for one in facts.values():
        again = facts_from(json.loads(json.dumps(one.to_dict())))
        assert again == one
        assert isinstance(again, NumberFacts)


def test_figures_on_the_page_are_those_of_the_scores(pages):
    content = number_samples.learned()[3]
    facts = number_samples.number_sample()
    text = Page(pages["number_sample"]).words
    rows = re.findall(r'<li class="(?:ours|public|reference)">.*?</li>', pages["number_sample"], re.S)
    assert len(rows) == len(content["scores"]) == 6
    for score, row in zip(facts.scores, rows, strict=True):
        mse, r2 = content["scores"][score.key]["mse"], content["scores"][score.key]["r2"]
        assert f'<div class="value">{mse:.2f}</div>' in row
        assert f"{r2:.2f}".replace("-", "−") in row
        low, high = content["scores"][score.key]["interval"]
        assert f"95 % interval {low:.{numbers.digits_of(mse)}f} to {high:.{numbers.digits_of(mse)}f}" in row
        assert number_words.metric(score, "mae") in row
    for one in content["bins"]:
        assert facts.measure.bare(one["true"]) in text
        assert f"{one['n']:,}" in text


def test_figures_on_the_page_are_those_of_the_model(pages):
    model, _, totals, _ = number_samples.learned()
    facts = number_samples.number_sample()
    leaves = model.partition.leaves
    assert [cell.value for cell in facts.cells] == model.estimate[:, 0][leaves].tolist()
    assert [cell.value_sd for cell in facts.cells] == model.estimate_sd[:, 0][leaves].tolist()
    assert [cell.difference for cell in facts.cells] == model.discrepancy[:, 0][leaves].tolist()
    assert [cell.public for cell in facts.cells] == (
        model.public_total[:, 1][leaves] / model.public_total[:, 0][leaves]
    ).tolist()
    assert sum(cell.people for cell in facts.cells) == pytest.approx(totals.n_private)
    table = pages["number_sample"].split('aria-label="Cells in figures"')[1].split("</table>")[0]
    for value, sd in zip(model.estimate[:, 0][leaves], model.estimate_sd[:, 0][leaves], strict=True):
        assert f"{value:.2f} ±\u00a0{2 * sd:.2f}" in table


def test_what_the_reports_of_a_cell_say_alone_is_their_sum_over_their_number():
    """With many reports and little noise: the sum of labels over the people, to within the noise (4 sd, all cells)."""
    model, protocol, totals, _ = number_samples.learned(epsilon=8.0)
    facts = number_samples.facts_of(model, protocol, totals, None)
    leaves = model.partition.leaves
    plain = model.private_total[:, 1][leaves] / model.private_total[:, 0][leaves]
    for cell, mean in zip(facts.cells, plain, strict=True):
        if cell.people > 2_000:
            assert cell.reports_sd is not None
            assert abs(cell.reports - mean) < 4 * cell.reports_sd + 0.01 * abs(mean - centre_of(model))


def test_every_leaf_of_the_tree_says_its_value_its_error_its_people_and_what_it_rests_on(pages):
    facts = number_samples.number_sample()
    tree = pages["number_sample"].split('<div class="tree wider">')[1].split("<p ")[0]
    leaves = tree.count('<div class="leaf">')
    assert leaves == facts.n_cells
    assert tree.count("±") == facts.n_cells
    for cell in facts.cells:
        assert facts.measure.bare(cell.value) in tree
        assert f">{numbers.count(cell.people)}<" in tree
        assert facts.measure.error(cell.value_sd) in tree
    assert all(said in tree for said in ("private reports", "both"))


def test_a_node_above_cells_says_their_average_and_their_people():
    model = number_samples.learned()[0]

    def check(node):
        if not node.children:
            assert node.cells == 1
            assert node.value_sd is not None
            return
        assert node.value_sd is None
        assert node.evidence is None
        assert node.people == pytest.approx(sum(child.people for child in node.children))
        mean = sum(child.people * child.value for child in node.children) / node.people
        assert node.value == pytest.approx(mean, rel=1e-6)
        for child in node.children:
            check(child)

    check(tree_of(model, {}))


def test_the_heading_says_where_and_by_how_much_private_people_differ():
    facts = number_samples.number_sample()
    heading = number_finding.headline(facts).replace("\u00a0", " ")
    model = number_samples.learned()[0]
    mean, sd = model.mean_discrepancy[0], model.mean_discrepancy_sd[0]
    assert f"fare {mean:.2f} $ (± {2 * sd:.2f}) higher than the public rows say on average" in heading
    assert heading.startswith("120,000 private reports on simulated trips at ε = 3 show")
    peak = max(facts.cells, key=lambda cell: abs(cell.difference or 0) - 2 * (cell.difference_sd or 0))
    assert "most where " + ", ".join(peak.path) in heading
    assert f"by {peak.difference:.2f} $" in heading


def test_where_nothing_is_found_the_heading_says_so(pages):
    heading = number_finding.headline(number_samples.alike())
    assert (
        "show no difference in fare between private trips and the public ones beyond their noise" in heading
    )
    assert "no reason to think" in Page(pages["alike"]).words
    assert re.search(r"noise, which could hide one of \d+\.\d+\s\$ on average\.$", heading)
    assert "private less public" not in pages["alike"]


@pytest.mark.parametrize(
    ("mean", "sd", "difference", "difference_sd", "said", "unsaid"),
    [
        (2.0, 0.2, 2.0, 0.2, "fare 2.00 $ (± 0.40) higher than the public rows say, about equally", "most"),
        (
            -2.0,
            0.2,
            -6.0,
            1.0,
            "fare 2.00 $ (± 0.40) lower than the public rows say on average, most where",
            "high",
        ),
        (2.0, 0.2, -6.0, 1.0, "higher than the public rows say on average, but lower where", "most where"),
        (0.1, 0.2, 6.0, 1.0, "fare 6.00 $ (± 2.00) higher than the public rows say where", "most where"),
        (
            0.1,
            0.2,
            0.3,
            1.0,
            "differs from what the public rows say, but in no place beyond its error",
            "higher",
        ),
        (2.0, 0.2, 3.0, 1.6, "higher than the public rows say, on average", "where"),
    ],
)
def test_a_direction_is_only_given_beyond_its_error(mean, sd, difference, difference_sd, said, unsaid):
    facts = number_samples.found(mean, sd, difference=difference, difference_sd=difference_sd)
    heading = number_finding.headline(facts).replace("\u00a0", " ")
    assert said in heading
    assert unsaid not in heading


def test_without_evaluation_no_figure_of_accuracy_is_claimed(pages, facts):
    words = Page(pages["released"]).words
    assert "this run does not know" in words
    for absent in ("How good is it?", "Predicted against true", "squared error", "R²"):
        assert absent not in words
    unasked = replace(facts["released"], discrepancy=None)
    assert "From 120,000 private reports" in number_finding.headline(unasked)
    assert f"a tree with {unasked.n_cells} cells now predicts fare" in number_finding.headline(unasked)


@pytest.mark.parametrize(
    ("lead", "said"),
    [
        ((0.1, 1.9), "10.0 with the reports and 11.0 without them, 9.1\u202f% less"),
        ((-0.2, 2.2), "no difference that these test rows can tell"),
    ],
)
def test_a_gain_is_only_claimed_where_the_pairs_show_it(lead, said):
    facts = _scored(10.0, 11.0, lead)
    assert said in " ".join(number_finding.lead(facts))


def test_reports_that_make_it_worse_are_said_to():
    said = " ".join(number_finding.lead(_scored(10.0, 9.0, (-1.5, -0.5))))
    assert "the reports make the model worse: a mean squared error of 10.00, up from 9.00" in said
    said = " ".join(number_finding.lead(_scored(10.0, 9.0, None)))
    assert "make the model worse" in said  # the intervals do not meet


def test_a_mean_that_does_as_well_and_a_public_model_that_does_better_are_admitted():
    facts = _scored(10.0, 11.0, (0.5, 1.5))
    constant = NumberScore(key="constant", metrics={"mse": 10.1}, lead=Span(low=-0.1, high=0.3))
    tree = NumberScore(key="public_tree", metrics={"mse": 8.0}, lead=Span(low=-3.0, high=-1.0))
    said = " ".join(number_finding.lead(replace(facts, baselines=(*facts.baselines, constant, tree))))
    assert "not measurably better than that" in said
    assert "a tree of its own from public rows alone does better, with no private report: 8.00" in said


def _scored(ours: float, public: float, lead: tuple[float, float] | None) -> NumberFacts:
    facts = number_samples.number_sample()
    assert facts.ours is not None
    return replace(
        facts,
        ours=replace(facts.ours, metrics={"mse": ours}, interval=Span(low=ours - 0.3, high=ours + 0.3)),
        baselines=(
            NumberScore(
                key="public_only",
                metrics={"mse": public},
                interval=Span(low=public - 0.3, high=public + 0.3),
                lead=None if lead is None else Span(low=lead[0], high=lead[1]),
            ),
        ),
    )


def test_a_lead_with_the_wrong_sign_is_refused():
    with pytest.raises(ValueError, match="theirs less ours"):
        _scored(10.0, 11.0, (-1.9, -0.1))


def test_no_private_row_or_point_can_be_put_on_the_page(pages):
    with pytest.raises(ValueError, match="at least 10"):
        BinFacts(low=0, high=1, n=9, predicted=0.5, true=0.4, true_sd=0.1)
    facts = number_samples.number_sample()
    assert sum(one.n for one in facts.bins) + facts.n_few == facts.n_scored
    plot = re.search(
        r'aria-label="fare, \$, predicted against true.*?</svg>(?=<i>)', pages["number_sample"], re.S
    )
    assert plot is not None
    assert plot.group().count('<circle class="mark"') == len(facts.bins) < facts.n_scored / 10
    # no label of a test row is on the page in full
    _, labels = number_samples.trips(4_000, 2, dearer=True)
    assert not [label for label in labels if f"{label:.6f}" in pages["number_sample"]]


def test_the_curves_are_those_of_the_two_strongest_columns_with_what_public_rows_say():
    model = number_samples.learned()[0]
    leaves = model.partition.leaves
    found = tree_importance(model.raw_tree, model.estimate[:, 0][leaves], private_shares(model)[leaves])
    curves = curves_of(model, {})
    assert [curve.column for curve in curves] == [name.replace("_", " ") for name in list(found)[:2]]
    assert [curve.strength for curve in curves] == pytest.approx(list(found.values())[:2])
    low, high = model.estimate[:, 0][leaves].min(), model.estimate[:, 0][leaves].max()
    for curve in curves:
        assert all(low - 1e-9 <= piece.value <= high + 1e-9 for piece in curve.pieces)
        assert all(piece.public is not None and piece.sd > 0 for piece in curve.pieces)
    miles, area = curves
    assert [piece.name for piece in area.pieces] == ["O'Hare", "any other"]
    assert miles.pieces[0].high == miles.pieces[1].low


def test_curves_are_drawn_with_their_band_and_said_in_figures(pages):
    facts = number_samples.number_sample()
    miles, area = facts.curves
    page = pages["number_sample"]
    assert page.count('<rect class="band"') == len(miles.stretches)
    label = re.search(r'aria-label="(fare, \$ along trip miles[^"]*)"', page)
    assert label is not None
    first = miles.stretches[0]
    assert f"{facts.measure.value(first.value)} {facts.measure.error(first.sd)}" in label.group(1)
    for piece in area.named:
        assert f"{facts.measure.bare(piece.value)} <span>{facts.measure.error(piece.sd)}" in page


def test_larger_numbers_stand_higher(pages):
    facts = number_samples.number_sample()
    plot = re.search(
        r'<svg class="plot"[^>]*predicted against true.*?</svg>(?=<i>)', pages["number_sample"], re.S
    )
    assert plot is not None
    discs = re.findall(r'<circle class="mark" cx="([\d.]+)%" cy="([\d.]+)"', plot.group())
    across, down = zip(*((float(x), float(y)) for x, y in discs), strict=True)
    assert np.argsort(across).tolist() == np.argsort([one.predicted for one in facts.bins]).tolist()
    assert np.argsort(down).tolist() == np.argsort([-one.true for one in facts.bins]).tolist()
    labels = re.search(r'<svg class="upward".*?</svg>', pages["number_sample"], re.S)
    assert labels is not None
    ticks = re.findall(r'y="([\d.]+)" dy="4">([\d.]+)<', labels.group())
    by_height = [float(label) for _, label in sorted(ticks, key=lambda tick: -float(tick[0]))]
    assert by_height == sorted(by_height)
    assert len(by_height) > 2


def test_codes_of_a_curve_are_called_by_their_names():
    model = number_samples.learned()[0]
    curves = curves_of(model, {"pickup_area": {"O'Hare": "the airport"}})
    assert "the airport" in [piece.name for piece in curves[1].pieces]


def test_a_long_flat_end_of_a_column_is_not_drawn_and_many_values_are_cut():
    pieces = [
        PieceFacts(value=1.0, sd=0.1, low=0.0, high=2.0),
        PieceFacts(value=2.0, sd=0.1, low=2.0, high=900.0),
    ]
    axis = plots.column_axis(CurveFacts(column="fare", strength=1.0, pieces=tuple(pieces)))
    assert axis is not None
    assert (axis.low, axis.high) == (0.0 + 2.0 - 0.35 * (axis.high - 2.0) if axis.low else 0.0, 2.7)
    facts = number_samples.number_sample()
    levels = tuple(PieceFacts(value=float(i), sd=0.1, name=f"level {i}") for i in range(40))
    page = render.render(replace(facts, curves=(CurveFacts(column="firm", strength=1.0, pieces=levels),)))
    assert "and 28 more values between these" in page
    assert "level 39" in page
    assert "level 20" not in page


def test_one_answer_for_all_has_no_curve_and_no_tree(pages):
    words = Page(pages["one_answer"]).words
    assert "one cell and predicts" in words
    assert "strongest feature" not in words
    assert "The tree " not in words.replace("The tree has one cell", "")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("number_sample", "rounded at random to one of 4 equally spaced levels, so that averages stay exact"),
        ("by_paper", "9 bits, one for each kind and one for none, and a number apart"),
        ("by_laplace", "16 numbers, two for each kind"),
        ("by_laplace", "a simulation device"),
    ],
)
def test_the_box_says_what_was_sent_of_a_number(facts, name, said):
    sent = " ".join(privacy.answers(facts[name])[0].sentences)
    assert said in sent
    assert "moved to the nearer end where it lies outside 0 to 80\u00a0$" in sent


def test_the_noise_of_a_number_sent_apart_is_said_in_its_unit(facts):
    _, protocol, _, _ = number_samples.learned(
        n_private=number_samples.FEWER,
        mechanism="randomized_response",
        lam=0.0,
        prune="none",
        rule="ratio",
        depth=3,
        epsilon=4.0,
    )
    sd = 80 * protocol.mechanism.label_variance**0.5
    assert f"standard deviation {sd:.2f}\u00a0$" in privacy.answers(facts["by_paper"])[0].sentences[0]


def test_what_one_dishonest_holder_can_do_is_said_in_the_labels_unit(facts):
    one = facts["number_sample"]
    model, protocol, totals, _ = number_samples.learned()
    (answer,) = [a for a in privacy.answers(one) if a.question == "If holders are dishonest"]
    in_unit = answer.sentences[1].replace("\u00a0", " ")
    assert one.push is not None
    assert f"up to {one.push:.2f} $" in in_unit
    assert f"(7,500 {one.nouns})" in in_unit
    # the bound holds of every report there is, against every other: unary bits may be set at will
    levels = np.array(protocol.classes) - centre_of(model)
    oracle = protocol.mechanism.oracle
    furthest = np.abs(levels).sum() / (oracle.p - oracle.q)
    assert one.push == pytest.approx(furthest)
    force = protocol.mechanism.poisoning_bound(totals.n_private)
    assert push_of(force, model, 4) == pytest.approx(one.push)


def test_whoever_can_move_both_ends_of_every_cell_moves_every_cell(facts):
    (answer,) = [a for a in privacy.answers(facts["by_paper"]) if a.question == "If holders are dishonest"]
    assert "in every cell at once" in answer.sentences[0]


def test_an_influence_without_bound_is_said_and_not_put_in_figures(facts):
    (answer,) = [a for a in privacy.answers(facts["by_laplace"]) if a.question == "If holders are dishonest"]
    assert len(answer.sentences) == 1
    assert "as far as they like" in answer.sentences[0]


def test_the_claimed_and_the_recomputed_epsilon_are_on_the_page(pages, facts):
    for name in ("number_sample", "by_paper", "many_numbers"):
        one, words = facts[name], Page(pages[name]).words.replace("\u00a0", " ")
        assert one.epsilon_exact <= one.epsilon
        assert numbers.epsilon(one.epsilon).replace("\u00a0", " ") in words
        shown = numbers.exact_epsilon(one.epsilon_exact).replace("\u00a0", " ").replace("\u202f", " ")
        assert shown in words.replace("\u202f", " ")


def test_a_model_of_the_estimator_can_be_put_on_a_page_without_public_rows():
    rng = np.random.default_rng(0)
    X = rng.random((3_000, 2))
    y = np.sign(X[:, 0] - 0.5) * 0.5 + rng.normal(0, 0.1, 3_000)
    made = LPDTRegressor(epsilon=4.0, random_state=0, feature_range=(0.0, 1.0), depth=3).fit(X, y)
    facts = number_samples.facts_of(made.model_, made.protocol_, made.totals_, None, unit="")
    assert facts.discrepancy is None
    assert facts.curves[0].column == "x0"
    assert all(piece.public is None for curve in facts.curves for piece in curve.pieces)
    words = Page(render.render(facts)).words
    assert "now predicts" in words
    assert "public rows alone" not in words


def test_the_summary_of_numbers_is_markdown_with_the_same_finding():
    facts = number_samples.number_sample()
    summary = render.summary_markdown(facts)
    assert summary.startswith("## 120,000 private reports on simulated trips")
    assert f"| Private reports and public rows | {facts.ours.figure:.2f} |" in summary
    assert "| model | mean squared error | 95 % interval |" in summary


@pytest.mark.parametrize(
    ("values", "most"),
    [([0.53, 0.57], 6), ([223.1, 6.6], 6), ([1e-7, 3e-7], 6), ([-4e6, 9e6], 4), ([5.0, 5.0], 6)],
)
def test_an_axis_over_numbers_of_any_size_is_round_and_holds_them(values, most):
    axis = charts.Axis.over(values, most_ticks=most)
    assert all(axis.holds(value) for value in values)
    assert 2 <= len(axis.ticks) <= most + 1
    assert len({numbers.tick(tick, axis.step) for tick in axis.ticks}) == len(axis.ticks)


def test_one_answer_for_all_far_out_is_an_arrow_and_the_others_keep_their_room():
    facts = number_samples.number_sample()
    axis = charts.error_axis(facts.scores)
    constant = facts.baseline("constant")
    assert constant is not None
    assert not axis.holds(constant.figure)
    assert all(axis.holds(score.figure) for score in facts.scores if score.key != "constant")
    track = charts.score_track(axis, constant, "far out")
    assert "<path" in track
    assert "circle" not in track


def test_numbers_are_written_with_the_decimals_their_spread_calls_for():
    assert numbers.Measure(0.8, "").value(5.6789) == "5.679"
    assert numbers.Measure(250.0, "€").value(-12345.6) == "−12,346\u00a0€"
    assert numbers.Measure(4.0).error(0.00002) == "±\u00a00.00004"
    assert numbers.Measure(4.0).bare(-0.001, signed=True) == "0.00"
    assert numbers.fixed(0.2, 1, signed=True) == "+0.2"


def test_a_difference_asked_for_and_not_found_is_told_from_one_that_was_not_asked_for():
    facts = number_samples.number_sample()
    nothing = DiscrepancyFacts(is_found=False, varies=False, mean=0.0, sd=0.0)
    assert "no difference" in number_finding.headline(replace(facts, discrepancy=nothing))
    unasked = number_finding.headline(replace(facts, discrepancy=None))
    assert "difference" not in unasked
    assert "mean squared error of 14.6 in fare, and public rows alone one of 23.5" in unasked
