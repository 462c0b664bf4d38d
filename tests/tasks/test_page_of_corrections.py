"""What the page of a correction promises, read from its text: where the public model is wrong, by how much, or that nothing was
found, and of nobody."""

from __future__ import annotations

import html
import json
import re
from dataclasses import replace

import mended_samples
import numpy as np
import pytest
from page_reader import Page

from ldptree.families.corrections import Observed, correct
from ldptree.protocol.totals import Totals
from tasks.page import mended_finding, mended_picture, mended_words, numbers, privacy, render
from tasks.page.basic_facts import Span
from tasks.page.facts import facts_from
from tasks.page.mended_facts import CellTestFacts, MendedFacts, MendFacts, SlopeFacts
from tasks.page.number_facts import NumberScore
from tasks.page.sheet import drawn_open

SAMPLES = mended_samples.MENDED_SAMPLES


@pytest.fixture(scope="module")
def facts() -> dict[str, MendedFacts]:
    return {name: getattr(mended_samples, name)() for name in SAMPLES}


@pytest.fixture(scope="module")
def pages(facts: dict[str, MendedFacts]) -> dict[str, str]:
    return {name: render.render(one) for name, one in facts.items()}


def plain(text: str) -> str:
    return re.sub(r"[\u00a0\u202f]", " ", text)


def picture_of(page: str) -> str:
    """The picture of the corrections."""
    return page.partition('<ol class="chart mends">')[2].partition("</ol>")[0]


def rows_in(drawn: str) -> list[str]:
    """The rows of a picture."""
    return re.findall(r"<li[ >].*?</li>", drawn, re.S)


@pytest.mark.parametrize("name", SAMPLES)
def test_a_page_of_corrections_is_well_formed_and_loads_and_runs_nothing(pages, name):
    page = Page(pages[name])
    assert not {"script", "iframe", "img", "object", "embed", "form", "base"} & set(page.tags)
    for tag, attribute, value in page.attributes:
        assert not attribute.startswith("on"), (tag, attribute)
        if attribute in ("href", "src", "srcset", "action", "data"):
            assert value.startswith(("#", "data:,")), (tag, value)
    assert len(pages[name].encode()) < 2_000_000
    assert not re.search(r"\bnan\b|\binf\b|None", page.words)


@pytest.mark.parametrize("name", SAMPLES)
def test_every_picture_of_a_correction_can_be_said_or_is_left_out_of_what_is_said(pages, name):
    pictures = re.findall(r'<svg class="[^"]*(?:track|axis|key|limbs)[^"]*"[^>]*>', pages[name])
    assert pictures
    assert all(
        'aria-hidden="true"' in tag or re.search(r'role="img" aria-label="[^"]+"', tag) for tag in pictures
    )


@pytest.mark.parametrize("name", SAMPLES)
def test_no_mark_of_a_correction_lies_outside_its_picture(pages, name):
    places = re.findall(r'\b(?:x|x1|x2|y1|y2|cx)="(-?[\d.]+)%"', pages[name])
    assert places
    assert all(0 <= float(place) <= 100 for place in places)


def test_what_comes_from_data_is_text_wherever_it_stands_on_a_page_of_corrections(pages, facts):
    page = Page(pages["hostile_corrections"])
    assert "fetch('//evil.example')" in page.words
    assert "{{ 7*7 }}" in page.words
    assert "<script" not in pages["hostile_corrections"]
    assert "script" not in page.tags
    assert "<script" not in render.summary_markdown(facts["hostile_corrections"])


def test_facts_of_corrections_come_back_from_json_as_they_were(facts):
    for one in facts.values():
        again = facts_from(json.loads(json.dumps(one.to_dict())))
        assert again == one
        assert isinstance(again, MendedFacts)


def test_figures_of_cells_and_nodes_are_those_of_the_model(facts):
    model, _, public, _ = mended_samples.learned()
    found, one = model.corrections, facts["mended_sample"]
    assert [cell.outputs[0].correction for cell in one.cells] == found.correction[:, 0].tolist()
    assert [cell.outputs[0].sd for cell in one.cells] == found.sd[:, 0].tolist()
    assert [cell.outputs[0].public for cell in one.cells] == public.answer[:, 0].tolist()
    assert sum(cell.people for cell in one.cells) == pytest.approx(model.n_private)
    assert one.tree.outputs[0].correction == pytest.approx(found.mean[0])
    assert one.usual[0] == pytest.approx(found.share @ public.answer[:, 0])

    def check(node):
        if node.cell is not None:
            assert node.outputs[0].correction == one.cells[node.cell].outputs[0].correction
            assert node.path == one.cells[node.cell].path
            return
        assert node.people == pytest.approx(sum(child.people for child in node.children))
        assert node.cells == sum(child.cells for child in node.children)
        mean = sum(child.people * child.outputs[0].correction for child in node.children) / node.people
        assert node.outputs[0].correction == pytest.approx(mean)
        for child in node.children:
            check(child)

    check(one.tree)


def test_what_the_public_model_says_in_a_cell_is_its_mean_over_the_cells_public_rows(facts):
    model, _, _, _ = mended_samples.learned()
    raw, _ = mended_samples.people(3_000, 0, "two", shift=0.0)
    cells, said = model.cells(raw), model.public_answers(raw)[:, 0]
    for place, cell in enumerate(facts["mended_sample"].cells):
        mend = cell.outputs[0]
        assert mend.public == pytest.approx(said[cells == place].mean())
        assert mend.corrected == pytest.approx(min(max(mend.public + mend.correction, 0), 1))


def test_every_cell_is_in_the_picture_with_its_size_its_error_and_its_people(pages, facts):
    one = facts["mended_sample"]
    rows = rows_in(picture_of(pages["mended_sample"]))
    assert len(rows) == one.n_cells + 3  # heads, all trips, ends
    for cell in one.cells:
        mend = cell.outputs[0]
        size = f"{abs(100 * mend.correction):.1f} ±\u00a0{200 * mend.sd:.1f}"
        row = next(row for row in rows if f">{', '.join(cell.path)}<" in row)
        assert size in row
        assert f'<div class="held">{cell.people:,.0f}<' in row
        assert ("too often</b>" in row) == (abs(mend.correction) >= 2 * mend.sd)
        assert ("within noise</b>" in row) == (abs(mend.correction) < 2 * mend.sd)
        # a hollow mark where the sign is not known
        assert ('<g class="ours unsure">' in row) == (abs(mend.correction) < 2 * mend.sd)


def test_a_row_says_in_words_where_which_way_how_far_and_how_surely(facts):
    one = facts["mended_sample"]
    ends = [row.node for row in mended_picture.rows_of(one.tree, lambda node: True)]
    clear = next(node for node in ends if node.outputs[0].is_clear)
    said = plain(mended_words.node_aria(clear, one))
    mend = clear.outputs[0]
    assert said.startswith(f"{', '.join(clear.path)}, about {clear.people:,.0f} private trips: ")
    assert (
        f"the public model says “cash” too often, by {100 * mend.correction:.1f} points ± {200 * mend.sd:.1f}"
        in said
    )
    assert "; its reports alone +" in said


def test_branches_lead_from_the_root_to_every_row_and_are_as_thick_as_their_share(facts):
    tree = facts["mended_sample"].tree
    rows = mended_picture.rows_of(tree, lambda node: True)
    assert [row.node.cell for row in rows] == _cells_in_order(tree)
    joined = {}
    for place, row in enumerate(rows):
        assert any(limb.y1 == limb.y2 == 50.0 and limb.x2 == 100.0 for limb in row.limbs)
        for limb in row.limbs:
            if limb.y1 == limb.y2:
                joined[(limb.x1, place + limb.y1 / 100)] = limb.pixels
    thick = [pixels for pixels in joined.values() if pixels > mended_picture.THINNEST]
    assert max(thick) == joined[(0.0, min(y for x, y in joined if x == 0.0))]
    ends = {
        row.node.people: max(limb.pixels for limb in row.limbs if limb.y1 == limb.y2 == 50.0) for row in rows
    }
    ordered = [ends[people] for people in sorted(ends)]
    assert ordered == sorted(ordered)


def _cells_in_order(node):
    if node.cell is not None:
        return [node.cell]
    return [cell for child in node.children for cell in _cells_in_order(child)]


def test_of_many_cells_the_largest_branches_are_drawn_and_the_rest_together(pages, facts):
    one = facts["many_corrections"]
    opened = drawn_open(one.tree, 47)
    rows = mended_picture.rows_of(one.tree, lambda node: id(node) in opened)
    assert len(rows) == 24 < one.n_cells
    assert sum(row.node.people for row in rows) == pytest.approx(one.n_private)
    assert sum(row.node.cells for row in rows) == one.n_cells
    drawn = picture_of(pages["many_corrections"])
    assert drawn.count("cells together") == sum(row.node.cell is None for row in rows) > 0
    together = next(row.node for row in rows if row.node.cell is None)
    assert f"{abs(100 * together.outputs[0].correction):.1f} ±" in plain(drawn)


@pytest.mark.parametrize(
    ("kind", "correction", "said"),
    [
        ("mended_sample", 0.11, "the public model says “cash” too often, by 11.0 points ± 2.0"),
        ("mended_sample", -0.11, "the public model says “card” too often, by 11.0 points ± 2.0"),
        ("mended_classes", 0.11, "the public model says “walks” too seldom, by 11.0 points ± 2.0"),
        ("mended_classes", -0.11, "the public model says “walks” too often, by 11.0 points ± 2.0"),
        ("mended_number", 1.5, "the public model predicts fare too low, by 1.50 $ ± 0.02"),
        ("mended_number", -1.5, "the public model predicts fare too high, by 1.50 $ ± 0.02"),
        ("mended_sample", 0.01, "within noise: the public model says “cash” too often, by 1.0 points ± 2.0"),
        ("mended_sample", 0.0, "nothing was found that is worth correcting"),
    ],
)
def test_a_correction_is_said_the_way_the_public_model_errs(facts, kind, correction, said):
    mend = MendFacts(correction=correction, sd=0.01)
    assert plain(mended_words.sentence(mend, 0, facts[kind])) == said


def test_of_several_classes_each_row_names_what_else_is_clear(pages, facts):
    """The clearest class is drawn, two more at most are said beside it, and nothing is said of one that is not clear."""
    one = facts["mended_classes"]
    drawn, rows = picture_of(pages["mended_classes"]), mended_picture.rows_of(one.tree, lambda node: True)
    assert {len(mended_words.beside(row.node, one)) for row in rows} > {0, 1}
    for row in rows:
        clear = {k for k, mend in enumerate(row.node.outputs) if mend.is_clear}
        said = mended_words.beside(row.node, one)
        assert len(said) == min(max(len(clear) - 1, 0), 2)
        for words in said:
            assert words in html.unescape(drawn)
            assert words in mended_words.node_aria(row.node, one)
            (k,) = [k for k, name in enumerate(one.outputs) if f"“{name}”" in words]
            assert k in clear - {row.node.shown}
            mend = row.node.outputs[k]
            assert f"by {abs(100 * mend.correction):.1f} ± {200 * mend.sd:.1f}" in plain(words)
            assert ("too seldom" in words) == (mend.correction > 0)
    assert "also" not in picture_of(pages["mended_sample"])


def _moved(one, found, mean):
    """The sample with these corrections of its first cells, 0.001 ± 0.1 in the others, and this mean."""
    filled = [*found, *[(0.001, 0.1)] * (one.n_cells - len(found))]
    return mended_samples.with_corrections(one, filled, MendFacts(correction=mean[0], sd=mean[1]))


@pytest.mark.parametrize(
    ("found", "mean", "said", "unsaid"),
    [
        ([(0.12, 0.01)] * 8, (0.12, 0.01), "“cash” too often, by 12.0 points ± 2.0.", "on average"),
        (
            [(0.3, 0.01)],
            (-0.12, 0.01),
            "“card” too often, on average by 12.0 points ± 2.0.",
            "“cash” too often",
        ),
        ([(0.3, 0.01)], (0.01, 0.01), "“cash” too often, by 30.0 points ± 2.0.", "average"),
        ([(-0.3, 0.01)], (0.01, 0.01), "“card” too often, by 30.0 points ± 2.0.", "average"),
        (
            [(0.1, 0.1)],
            (0.01, 0.01),
            "differ from the public model more than noise alone would, but in no place clearly",
            "often",
        ),
        ([(0.0, 0.0)] * 8, (0.0, 0.0), "but not so that any correction is worth it", "often"),
    ],
)
def test_the_heading_says_which_way_the_public_model_errs_and_no_more_than_is_known(
    facts, found, mean, said, unsaid
):
    heading = plain(mended_finding.headline(_moved(facts["mended_sample"], found, mean)))
    assert said in heading
    assert unsaid not in heading


def test_where_the_mean_is_unclear_the_heading_says_where_it_is_clear(facts):
    one = facts["mended_sample"]
    heading = mended_finding.headline(_moved(one, [(0.1, 0.1), (0.3, 0.01)], (0.01, 0.01)))
    assert f"where {', '.join(one.cells[1].path)}, the public model says “cash” too often" in heading
    said = " ".join(mended_finding.lead(_moved(one, [(0.3, 0.01), (-0.2, 0.01)], (0.1, 0.01))))
    assert f"Furthest beyond its noise where {', '.join(one.cells[0].path)}: “cash” too often" in said
    assert f"Where {', '.join(one.cells[1].path)}: “card” too often" in said


def test_one_correction_for_all_is_not_said_as_if_every_cell_had_found_its_own(facts):
    one = facts["mended_sample"]
    same = _moved(one, [(0.12, 0.01)] * 8, (0.12, 0.01))
    assert "do not tell kinds of trip apart" in mended_finding.lead(same)[0]
    assert "all have the same correction" in mended_words.found_line(same)
    near = _moved(one, [(0.12, 0.01)] * 7 + [(0.125, 0.01)], (0.12, 0.01))
    assert mended_finding.lead(near)[0] == "That is about equally so everywhere."
    assert "In all of them" in mended_words.found_line(near)
    assert "In 6 of them" in mended_words.found_line(one)


def test_where_nothing_is_found_heading_line_and_rows_say_so(pages, facts):
    for name in ("nothing_found", "nothing_zero", "mended_number_alike"):
        assert facts[name].is_nothing
        page = Page(pages[name])
        assert "find nothing wrong with the public model beyond their noise." in page.words
        line = plain(mended_finding.nothing(facts[name]))
        assert f"no more than noise alone would make them (chance {100 * facts[name].chance:.0f} %)" in line
        assert mended_finding.nothing(facts[name]) in mended_finding.lead(facts[name])[0]
        assert "none was found" in page.words
        shown = picture_of(pages[name])
        assert "too often</b>" not in shown
        assert "too low</b>" not in shown
    assert "it is released as it is" in Page(pages["nothing_zero"]).words
    assert Page(pages["nothing_zero"]).words.count("not corrected") >= facts["nothing_zero"].n_cells
    assert "Public model against corrected model" not in pages["nothing_zero"]
    assert "released as it is" not in pages["nothing_found"]


def test_a_straight_line_is_said_where_it_is_found_and_that_it_is_not_where_it_is_not(pages, facts):
    one, alone = facts["mended_line"], facts["mended_line_alone"]
    model = mended_samples.learned(
        "number", target="fare", depth=2, n_public=300, n_private=20_000, with_slope=True
    )[0]
    found = model.corrections.slope
    assert (one.slope.amount, one.slope.sd, one.slope.is_found) == (found.amount, found.sd, True)
    size = f"{found.amount:.2f} ± {2 * found.sd:.2f}"
    words = plain(Page(pages["mended_line"]).words)
    assert f"private trips follow the line's answer by {size} of where it differs from the tree's" in words
    assert (
        f"Beside that, private trips follow a straight line rather than the public model, by {size}" in words
    )
    assert "straight line less tree above" in words
    assert facts["mended_number"].slope is None
    assert "straight line" not in Page(pages["mended_number"]).words
    assert not alone.tree.outputs[0].is_clear
    assert plain(mended_finding.headline(alone)).startswith("Private simulated trips follow a straight line")
    assert "the public model predicts fare too" in plain(mended_finding.lead(alone)[0])
    for amount, sd, is_found, said in (
        (-0.4, 0.1, True, "keep away from a straight line, by 0.40 ± 0.20 of where it differs"),
        (0.1, 0.1, True, "Within noise: beside the cells"),
        (0.1, 0.01, False, "follow the line, the reports do not show"),
    ):
        other = replace(alone, slope=SlopeFacts(amount=amount, sd=sd, is_found=is_found))
        assert said in plain(mended_finding.headline(other) + mended_words.found_line(other))
        assert other.slope.is_clear == (amount < 0)
    quiet = replace(alone, slope=SlopeFacts(amount=0.01, sd=0.1, is_found=False), is_nothing=True)
    assert "and 0.01 ± 0.20 of where a straight line differs from the tree" in plain(
        mended_finding.nothing(quiet)
    )


def test_both_models_are_named_and_compared_overall(pages, facts):
    content = mended_samples.learned()[3]
    page = pages["mended_sample"]
    rows = re.findall(r'<li class="(?:ours|public|reference)">.*?</li>', page, re.S)
    names = [re.search(r'<div class="name">(.*?)</div>', row).group(1) for row in rows]
    assert names == [
        "Most frequent public answer",
        "Public model alone",
        "Public model, corrected",
        "Corrected, had the reports no noise",
    ]
    for key, row in zip(("majority", "public_only", "ours", "no_noise"), rows, strict=True):
        figure = f"{100 * content['scores'][key]['accuracy']:.1f} %"
        assert f'<div class="value">{figure}</div>' in plain(row)


@pytest.mark.parametrize(
    ("lead", "said"),
    [
        ((0.01, 0.03), "lift it from 60.0 % to 62.0 %"),
        ((-0.01, 0.05), "is right 62.0 % of the time, before 60.0 %: not measurably better"),
        ((-0.03, -0.01), "which is worse than"),
    ],
)
def test_what_the_reports_are_worth_rests_on_the_paired_interval(facts, lead, said):
    one = facts["mended_sample"]
    ours = replace(one.ours, metrics={"accuracy": 0.62})
    public = replace(
        one.baseline("public_only"), metrics={"accuracy": 0.60}, lead=Span(low=lead[0], high=lead[1])
    )
    assert said in plain(mended_finding.headline(replace(one, ours=ours, baselines=(public,))))


def test_both_models_are_compared_in_every_cell_in_answers_and_on_rows_held_back(pages, facts):
    content = mended_samples.learned()[3]
    page = plain(pages["mended_sample"])
    drawn = page.partition('<ol class="chart answers')[2].partition("</ol>")[0]
    for cell, test in zip(facts["mended_sample"].cells, content["cells"], strict=True):
        mend = cell.outputs[0]
        row = next(row for row in rows_in(drawn) if f">{', '.join(cell.path)}<" in row)
        assert f"{100 * mend.public:.0f} % → <b>{100 * mend.corrected:.0f} %</b>" in row
        assert f"of {test['n']:,} held back" in row
        assert f"{100 * test['public']:.1f} %" in row
        assert f"{100 * test['ours']:.1f} %" in row
    assert "the public model says 47 % “card”, corrected 54 %" in Page(page).words


def test_of_numbers_answers_and_errors_are_in_the_labels_unit(pages, facts):
    one = facts["mended_number"]
    content = mended_samples.learned("number", target="fare", depth=3, n_private=80_000)[3]
    page = plain(pages["mended_number"])
    for cell, test in zip(one.cells, content["cells"], strict=True):
        mend = cell.outputs[0]
        assert f"{mend.public:.2f} $ → <b>{mend.corrected:.2f} $</b>" in page
        assert f"of {test['n']:,} held back" in page
    assert f"by {one.tree.outputs[0].correction:.2f} $ ± {2 * one.tree.outputs[0].sd:.2f}" in page
    assert "cut its mean squared error from" in Page(page).words
    assert "Predicted against true" in page


def test_of_several_classes_the_one_most_clearly_off_is_shown_and_all_are_in_the_table(pages, facts):
    one = facts["mended_classes"]
    for cell in one.cells:
        strengths = [abs(mend.correction) / mend.sd if mend.sd else 0.0 for mend in cell.outputs]
        assert cell.shown == int(np.argmax(strengths))
    table = pages["mended_classes"].split('aria-label="Cells in figures"')[1].split("</table>")[0]
    assert table.count("<tr>") == 1 + one.n_cells * len(one.outputs)
    drawn = Page(picture_of(pages["mended_classes"])).words
    assert "“takes the train” too seldom" in drawn
    for name in one.outputs:
        assert f"all trips , “ {name} ”" in drawn or f"“{name}”" in drawn


def test_without_evaluation_a_page_of_corrections_claims_no_accuracy(pages):
    page = Page(pages["mended_release"])
    assert "private reports at ε = 4 correct it." in page.words
    assert "there is no score here" in page.words
    assert "How good is it?" not in page.words
    assert "accuracy" not in page.words.lower()
    assert "held back" not in page.words.replace("no private row was held back", "").replace(
        "held back for the test", ""
    )
    assert "public model says" in page.words


def test_where_a_cell_has_no_public_row_nothing_is_said_of_the_public_models_answer_there(facts):
    one = facts["mended_sample"]
    cells = (
        replace(one.cells[0], outputs=(replace(one.cells[0].outputs[0], public=None, corrected=None),)),
        *one.cells[1:],
    )
    page = render.render(replace(one, cells=cells, usual=(), usual_corrected=()))
    said = html.unescape(page)
    assert f"{', '.join(one.cells[0].path)}: no public row here" in said
    assert "Over all private trips" not in said


def test_no_private_row_can_be_put_on_a_page_of_corrections(pages):
    with pytest.raises(ValueError, match="at least 10"):
        CellTestFacts(n=9, public=0.5, ours=0.6)
    _, labels = mended_samples.people(4_000, 2, "number", shift=0.18)
    assert not [label for label in labels if f"{label:.6f}" in pages["mended_number"]]


def test_facts_that_do_not_fit_each_other_are_refused(facts):
    one = facts["mended_sample"]
    with pytest.raises(ValueError, match="one correction for each"):
        replace(one, cells=(replace(one.cells[0], outputs=()), *one.cells[1:]))
    with pytest.raises(ValueError, match="two classes have one output"):
        replace(one, positive=None)
    number = facts["mended_number"]
    wrong = NumberScore(
        key="public_only",
        metrics={"mse": number.ours.figure + 1.0},
        lead=Span(low=-1.5, high=-0.5),
    )
    with pytest.raises(ValueError, match="theirs less ours"):
        replace(number, baselines=(wrong,))


def _answer(one: MendedFacts, question: str) -> str:
    return plain(" ".join(next(a for a in privacy.answers(one) if a.question == question).sentences))


def test_what_a_report_says_is_said_in_words_an_officer_can_repeat(facts):
    said = _answer(facts["mended_sample"], "What was sent")
    assert said.startswith(
        "One report: which of 8 kinds of trip it is, and how far the public model is off: 1 if the payment_type is “card” and 0 "
        "if not, less the share that the model gives it, between −1 and 1, rounded at random to one of 4 equally spaced levels"
    )
    k = facts["mended_sample"].k
    assert k == 8 * 4 + 1
    assert f"Together that is one value of {k}, one of which stands for anything else." in said
    several = _answer(facts["mended_classes"], "What was sent")
    assert (
        "The class is one of 4, drawn at random by each holder, whatever its mode is, and sent along as it is. Together that is "
        "one value of"
    ) in several
    number = facts["mended_number"]
    half = f"{number.residual_range:.2f}"
    assert f"its fare less what the model predicts, between −{half} and {half} $" in _answer(
        number, "What was sent"
    )
    whole = _answer(facts["mended_as_a_whole"], "What was sent")
    assert whole.startswith("One report: how far the public model is off")


def test_no_report_moves_the_sum_of_errors_of_a_cell_by_more_than_is_said():
    """Any report in the place of any other one, in every cell."""
    model, protocol, public, _ = mended_samples.learned()
    one = mended_samples.facts_of(model, protocol, public, None)
    mechanism = protocol.mechanism
    assert mechanism.oracle.name == "grr"  # a report is a value: its support is one-hot
    sums = []
    for report in np.eye(mechanism.k, dtype=np.int64):
        totals = Totals.from_raw(report, mechanism=mechanism, n_private=1, depth=1)
        sums.append(totals.counts @ np.array(public.plan.levels) / public.plan.range.slope)
    moved = np.ptp(np.stack(sums), axis=0).max()
    assert 0.5 * one.push <= moved <= one.push + 1e-9


def test_what_a_correction_rests_on_is_how_far_it_moves_with_the_reports_of_its_own_cell():
    model, protocol, public, _ = mended_samples.learned()
    one, found = mended_samples.facts_of(model, protocol, public, None), model.corrections
    means, variance = found.observed[:, 0], found.noise_sd[:, 0] ** 2
    for place, cell in enumerate(one.cells):
        moved = means + 1e-4 * (np.arange(means.size) == place)
        seen = [Observed(mean=mean, variance=variance, mass=found.share) for mean in (means, moved)]
        before, after = (correct(public.plan, [one]).correction[place, 0] for one in seen)
        assert cell.private_weight == pytest.approx((after - before) / 1e-4, rel=0.01)
        assert cell.evidence == ("private" if cell.private_weight >= 0.5 else "neighbours")
    assert {cell.evidence for cell in mended_samples.nothing_zero().cells} == {"public"}


def test_the_markdown_summary_carries_heading_and_both_models(facts):
    said = plain(render.summary_markdown(facts["mended_sample"]))
    assert said.startswith("## On private simulated trips the public model says “cash” too often")
    assert "| Public model alone |" in said
    assert "| Public model, corrected |" in said
    assert numbers.percent(facts["mended_sample"].ours.figure) in render.summary_markdown(
        facts["mended_sample"]
    )
