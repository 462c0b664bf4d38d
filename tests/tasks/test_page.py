"""What the run's page promises, read from its text: it loads nothing, escapes all, and says what is so."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace

import page_samples
import pytest
from page_reader import Page

from tasks.page import charts, finding, numbers, privacy, render, run_words, words
from tasks.page.facts import CheckFacts, DiscrepancyFacts, Facts, RowFacts, Span

SAMPLES = page_samples.SAMPLES


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    return {name: render.render(getattr(page_samples, name)()) for name in SAMPLES}


@pytest.mark.parametrize("name", SAMPLES)
def test_a_page_is_well_formed_and_loads_and_runs_nothing(pages: dict[str, str], name: str) -> None:
    page = Page(pages[name])
    assert not {"script", "iframe", "img", "object", "embed", "form", "base"} & set(page.tags)
    for tag, attribute, value in page.attributes:
        assert not attribute.startswith("on"), (tag, attribute)
        if attribute in ("href", "src", "srcset", "action", "data"):
            assert value.startswith(("#", "data:,")), (tag, value)
    style = pages[name].split("<style>")[1].split("</style>")[0]
    assert "url(" not in style
    assert "@import" not in style


@pytest.mark.parametrize("name", SAMPLES)
def test_every_picture_can_be_said_or_is_left_out_of_what_is_said(pages: dict[str, str], name: str) -> None:
    pictures = re.findall(r'<svg class="[^"]*(?:track|axis|key|meter)[^"]*"[^>]*>', pages[name])
    assert pictures
    assert all(
        'aria-hidden="true"' in tag or re.search(r'role="img" aria-label="[^"]+"', tag) for tag in pictures
    )


def test_what_comes_from_data_is_text_wherever_it_stands(pages: dict[str, str]) -> None:
    page = Page(pages["hostile"])
    assert "fetch('//evil.example')" in page.words
    assert "{{ 7*7 }}" in page.words
    assert "<script" not in pages["hostile"]
    assert "script" not in page.tags


def test_a_page_stays_small_whatever_the_size_of_the_model(pages: dict[str, str]) -> None:
    assert all(len(page.encode()) < 2_000_000 for page in pages.values())
    assert "cells below, not drawn" in pages["many_cells"]
    assert "The 400 largest of 2,000 cells in figures" in pages["many_cells"]
    assert "and 1,988 more cells that together hold" in pages["many_cells"]


def test_facts_come_back_from_json_as_they_were() -> None:
    for name in SAMPLES:
        facts = getattr(page_samples, name)()
        assert Facts.from_dict(json.loads(json.dumps(facts.to_dict()))) == facts


def test_an_unknown_fact_is_refused() -> None:
    with pytest.raises(ValueError, match="fares"):
        Facts.from_dict({**page_samples.sample().to_dict(), "fares": 1})


def test_no_count_or_value_of_a_private_fault_can_be_put_on_the_page() -> None:
    with pytest.raises(ValueError, match="holders' zone"):
        CheckFacts(name="fare is positive", zone="private", ok=False, detail="-3 in line 7")
    with pytest.raises(ValueError, match="holders' zone"):
        RowFacts(zone="private", kept=10, quarantined=2)
    with pytest.raises(ValueError, match="count of faults"):
        RowFacts(zone="private", kept=10, read=12)


def test_a_finished_run_must_bring_all_of_its_cells() -> None:
    facts = page_samples.sample()
    with pytest.raises(ValueError, match="all of its 32 cells"):
        replace(facts, cells=facts.cells[:-1])


@pytest.mark.parametrize(
    ("ours", "public", "lead", "said"),
    [
        (0.688, 0.641, (0.045, 0.049), "lift the public model from 64.1\u202f% to 68.8\u202f%"),
        (
            0.631,
            0.641,
            (-0.014, -0.006),
            "make the public model worse: 63.1\u202f% right, down from 64.1\u202f%",
        ),
        (0.642, 0.641, (-0.002, 0.004), "nothing measurable"),
        (0.641, 0.641, (0.0, 0.0), "add nothing that the public rows did not say already"),
        (0.64123, 0.64098, (0.0001, 0.0004), "from 64.10\u202f% to 64.12\u202f%"),
    ],
)
def test_the_heading_tells_what_the_reports_did(
    ours: float, public: float, lead: tuple[float, float], said: str
) -> None:
    heading = finding.headline(page_samples.scored(ours, public, lead))
    assert said in heading
    assert "simulated trips" in heading
    assert "ε\u00a0=\u00a02" in heading


def test_a_gain_inside_the_test_intervals_is_not_called_a_gain_unless_pairs_show_it() -> None:
    facts = page_samples.scored(0.644, 0.641, (0.001, 0.005))
    public = facts.baseline("public_only")
    assert public is not None
    assert finding.verdict(facts, public) == "better"
    assert finding.verdict(facts, replace(public, lead=None)) == "level"
    assert finding.verdict(facts, replace(public, lead=Span(low=-0.005, high=-0.001))) == "worse"


def test_a_public_forest_that_does_better_is_admitted() -> None:
    facts = page_samples.sample()
    better = tuple(
        replace(b, metrics={"accuracy": 0.75}, lead=Span(low=-0.07, high=-0.05))
        if b.key == "public_forest"
        else b
        for b in facts.baselines
    )
    said = " ".join(finding.lead(replace(facts, baselines=better)))
    assert "a forest from public rows alone does better, with no private report: 75.0\u202f%" in said


def test_public_rows_in_the_same_tree_are_one_of_the_rivals() -> None:
    facts = page_samples.sample()
    best = tuple(
        replace(b, metrics={"accuracy": 0.67}, lead=Span(low=0.01, high=0.02))
        if b.key == "public_only"
        else b
        for b in facts.baselines
    )
    said = " ".join(finding.lead(replace(facts, baselines=best)))
    assert "the best of them, the same tree, gets 67.0\u202f%" in said


def test_a_model_no_better_than_the_most_frequent_answer_is_admitted() -> None:
    facts = page_samples.sample()
    level = tuple(
        replace(b, metrics={"accuracy": 0.688}, lead=Span(low=-0.01, high=0.01)) if b.key == "majority" else b
        for b in facts.baselines
    )
    assert "not measurably better than that" in " ".join(finding.lead(replace(facts, baselines=level)))


def test_where_no_difference_was_learned_none_is_claimed() -> None:
    nothing = DiscrepancyFacts(is_found=False, varies=False, mean=0.0, sd=0.0)
    said = finding.discrepancy(replace(page_samples.sample(), discrepancy=nothing))
    assert "no reason to think" in said
    assert finding.discrepancy(replace(page_samples.sample(), discrepancy=None)) == ""


def test_an_average_difference_within_its_error_has_no_direction() -> None:
    facts = page_samples.sample()
    level = replace(facts, discrepancy=DiscrepancyFacts(is_found=True, varies=True, mean=-0.01, sd=0.006))
    said = finding.discrepancy(level)
    assert "On average no difference" in said
    assert "depending on the cell" in said
    assert " less often" not in said
    apart = replace(facts, discrepancy=DiscrepancyFacts(is_found=True, varies=True, mean=-0.013, sd=0.006))
    assert " less often" in finding.discrepancy(apart)


def test_no_difference_is_written_into_a_cell_where_none_was_found() -> None:
    facts = page_samples.sample()
    none = tuple(replace(cell, discrepancy=0.0, discrepancy_sd=0.0) for cell in facts.cells)
    assert words.difference(none[0]) == ""
    assert "private less public" in render.render(replace(facts, cells=(*none[1:], facts.cells[0])))
    assert "private less public" not in render.render(replace(facts, cells=none))


@pytest.mark.parametrize(
    ("lam", "said"),
    [
        ("0.0", "labels do not count"),
        ("0.5", "weighs as much as 0.5 private ones"),
        ("inf", "reports do not count"),
    ],
)
def test_the_weight_of_a_public_row_is_said_in_words_that_hold(lam: str, said: str) -> None:
    assert said in run_words.weighing(replace(page_samples.sample(), lam=lam))


def test_caps_in_force_are_said_under_the_scores_and_no_others(pages: dict[str, str]) -> None:
    facts = page_samples.sample()
    said = words.score_caption(replace(facts, n_scored=50_000))
    assert said.startswith("Accuracy on 50,000 of the 55,003 simulated trips held back")
    assert (
        "“Public rows alone, own tree” and “Public rows alone, forest”: fitted on 20,000 of 24,102 public rows."
        in said
    )
    assert "fitted on about 100,000 of 220,014 private rows" in Page(pages["sample"]).words
    uncapped = replace(facts, baselines=tuple(replace(b, note="") for b in facts.baselines))
    assert "fitted on" not in words.score_caption(uncapped)
    assert words.score_caption(uncapped).startswith("Accuracy on 55,003 simulated trips")


def test_an_error_is_said_of_cells_and_of_no_node_above_them(pages: dict[str, str]) -> None:
    facts = page_samples.sample()
    tree = pages["sample"].split('<div class="tree">')[1].split("<h3>")[0].split("<p ")[0]
    assert tree.count("±") == facts.n_cells
    assert "at a cell also ± 2 sd" in pages["sample"]


def test_a_long_class_name_is_cut_in_pictures_and_whole_in_its_title() -> None:
    long = "<" + 119 * "x"
    facts = page_samples.sample()
    cells = tuple(replace(cell, decision=long) for cell in facts.cells)
    page = render.render(replace(facts, classes=("cash", long), positive=long, cells=cells))
    for part, end in (('<ol class="chart cells">', "</ol>"), ("<tbody>", "</tbody>")):
        drawn = page.split(part)[1].split(end)[0]
        text = re.sub(r'(title|aria-label)="[^"]*"', "", drawn)
        assert "&lt;" + 22 * "x" + "…" in text
        assert 30 * "x" not in text
        assert f'title="&lt;{119 * "x"}"' in drawn


def test_a_later_run_of_a_campaign_says_which_rows_it_asked_itself() -> None:
    facts = page_samples.sample()
    one = {line.title: line.private for line in run_words.data_table(facts)}
    two = {line.title: line.private for line in run_words.data_table(replace(facts, n_private=400_000))}
    assert "of these, asked in this run" not in one
    assert (two["learned from"], two["of these, asked in this run"]) == ("400,000", "220,014")


def test_without_evaluation_the_page_claims_no_accuracy(pages: dict[str, str]) -> None:
    page = Page(pages["unevaluated"])
    assert "a tree with 32 cells now predicts payment_type" in page.words
    assert "there is no score here" in page.words
    assert "How good is it?" not in page.words
    assert "accuracy" not in page.words.lower()


def test_a_failed_validation_says_so_first_and_names_the_checks(pages: dict[str, str]) -> None:
    page = Page(pages["failed"])
    assert "Stopped at validation: 2 checks failed, and nothing was learned from anyone." in page.words
    assert "no holder's privacy was spent" in page.words
    assert "✗ failed fare is between 0 and 10,000 (public) 3 of 24,102 rows" in page.words
    assert re.search(
        r"✗ failed payment_type is one of its declared values \(private\) +! warning", page.words
    )
    assert "What left a holder's hands" not in page.words
    assert "learned from" not in page.words.replace("nothing was learned from", "")
    assert "rows read 24,110" in page.words


def test_a_run_that_failed_after_the_reports_does_not_call_them_unspent() -> None:
    failed = replace(page_samples.failed(), epsilon_spent=2.0)
    assert "nothing was learned from anyone" not in finding.headline(failed)
    assert "each has spent ε\u00a0=\u00a02" in " ".join(finding.lead(failed))


def test_the_box_says_what_a_privacy_officer_has_to_know() -> None:
    said = {a.question: " ".join(a.sentences) for a in privacy.answers(page_samples.sample())}
    assert "one value of 65" in said["What was sent"]
    assert "factor of 7.4" in said["What that promises"]
    assert "ε\u00a0≤\u00a01.999\u202f999\u202f999" in said["What that promises"]
    assert "only one" in said["Who one holder is"]
    assert "protects nobody" in said["Where the noise came from"]
    assert "2.6 honest holders, in every cell at once" in said["If holders are dishonest"]
    for what in (
        "took part",
        "payment_type IN (0, 1)",
        "company_id",
        "24,102 public",
        "55,003 private",
        "every private trip of this run was read as it is",
        "no ε-LDP release. A release has",
    ):
        assert what in said["What is not protected"]


def test_the_box_states_the_largest_spend_of_any_holder_and_the_cap() -> None:
    def said(**changes: object) -> str:
        facts = replace(page_samples.sample(), **changes)
        found = {a.question: " ".join(a.sentences).replace("\u00a0", " ") for a in privacy.answers(facts)}
        return found.get("What was spent", "")

    assert "Each holder asked in this run spends ε = 2." in said()
    assert (
        "over everything asked with this noise seed in this work folder, is ε = 3.5, on 2 questions."
        in said()
    )
    assert "Nobody may spend more than ε = 4 in all" in said()
    assert "everything asked in this work folder, is" in said(seeded=False)
    assert "on 1 question. No lifetime cap was stated" in said(n_questions=1, lifetime_epsilon=None)
    assert "would spend ε = 2" in said(form="totals")
    assert said(largest_spend=0.0) == ""


def test_only_reports_with_unseeded_noise_are_called_a_release_beside_the_page() -> None:
    def is_one(**changes: object) -> bool:
        facts = replace(page_samples.sample(), **changes)
        return "the reports and the model are" in " ".join(privacy.answers(facts)[-1].sentences)

    assert is_one(seeded=False)
    assert not is_one(seeded=True)
    assert not is_one(seeded=False, form="totals")


def test_the_box_follows_the_unit_the_noise_and_the_form_of_the_run() -> None:
    facts = replace(page_samples.unevaluated(), form="totals")
    said = {a.question: " ".join(a.sentences) for a in privacy.answers(facts)}
    assert "“taxi_id”" in said["Who one holder is"]
    assert "operating system" in said["Where the noise came from"]
    assert "protects nobody" not in " ".join(said.values())
    assert "No report was written in this run, and no coin was tossed" in said["What was sent"]
    assert "had counted the true values" in said["What was sent"]
    assert "sums drawn: no report written" in finding.tags(facts)
    assert "a holder would toss" in said["What that promises"]
    assert "it promises nothing" in said["What that promises"]
    assert "exactly" not in " ".join(said.values())
    assert "without noise" not in said["What is not protected"]


def test_the_recomputed_epsilon_is_never_shown_below_what_it_is() -> None:
    for value in (1.9999999981, 2.0, 0.1 + 0.2, 3.9999999999, 1e-9):
        shown = numbers.exact_epsilon(value)
        assert float(re.sub(r"[^\d.]", "", shown)) >= value


def test_simulated_data_are_called_simulated_and_real_ones_are_not(pages: dict[str, str]) -> None:
    real = replace(page_samples.sample(), simulated_data=False, title="Chicago taxi trips", seeded=False)
    assert "simulated" not in Page(render.render(real)).words
    words_said = Page(pages["sample"]).words
    assert "private simulated trips" in words_said
    assert "public simulated trips" in words_said


def test_cells_are_drawn_by_share_and_the_rest_is_counted(pages: dict[str, str]) -> None:
    facts = page_samples.sample()
    largest = sorted(facts.cells, key=lambda cell: -cell.share_private)[:12]
    drawn = pages["sample"].split('<ol class="chart cells">')[1].split("</ol>")[0]
    # A picture's label comes once for each drawn cell, in order.
    labels = re.findall(r'role="img" aria-label="([^"]*)"', drawn)
    assert len(labels) == len(largest)
    for label, cell in zip(labels, largest, strict=True):
        assert f"believed {words.belief(cell.margin, facts)}" in label
    assert "and 20 more cells" in pages["sample"]


@pytest.mark.parametrize("name", ["sample", "one_cell", "many_cells", "four_classes"])
def test_no_mark_lies_outside_its_picture(pages: dict[str, str], name: str) -> None:
    places = re.findall(r'\b(?:x|x1|x2|cx|width)="(-?[\d.]+)%"', pages[name])
    assert places
    assert all(0 <= float(place) <= 100 for place in places)


def test_an_axis_has_round_ends_and_holds_its_values() -> None:
    axis = charts.Axis.around([0.553, 0.701], floor=0.0, ceiling=1.0)
    assert axis.holds(0.553)
    assert axis.holds(0.701)
    assert all(math.isclose(tick / axis.step, round(tick / axis.step)) for tick in (axis.low, axis.high))
    assert 2 <= len(axis.ticks) <= 7
    one = charts.Axis.around([0.5], floor=0.0, ceiling=1.0)
    assert one.low < 0.5 < one.high


def test_an_all_cached_run_says_so() -> None:
    facts = page_samples.sample()
    cached = replace(facts, steps=tuple(replace(step, state="cached") for step in facts.steps))
    assert "Every step was taken from an earlier run." in run_words.made(cached)


def test_the_summary_is_markdown_with_the_same_finding_and_no_markup_from_data() -> None:
    facts = page_samples.sample()
    summary = render.summary_markdown(facts)
    assert summary.startswith(f"## {finding.headline(facts)}")
    assert "| Private reports and public rows | 68.8\u202f% |" in summary
    hostile = render.summary_markdown(page_samples.hostile())
    assert "<script" not in hostile
    assert "\\{\\{ 7\\*7 \\}\\}" in hostile
    failed = render.summary_markdown(page_samples.failed())
    assert "- failed: payment\\_type is one of its declared values (private)" in failed


@pytest.mark.parametrize(
    ("oracle", "at_once", "said"),
    [
        ("oue", 475, "in every cell at once"),
        ("grr", 2, "in up to 2 cells of"),
        ("grr", 1, "in up to 1 cell of"),
    ],
)
def test_the_page_says_in_how_many_cells_one_dishonest_holder_counts(oracle, at_once, said):
    facts = page_samples.sample()
    facts = replace(facts, oracle=oracle, influence=replace(facts.influence, at_once=at_once))
    (answer,) = [a for a in privacy.answers(facts) if a.question == "If holders are dishonest"]
    assert said in answer.sentences[0]
