"""What every page promises, whatever the family: it is whole, loads and runs nothing, escapes what comes from data, and its
heading and figures are those of the run.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from chain import Chain, RoundsChain, fares, fares_config, mended, rides, rides_config, shells, shells_config
from page_reader import Page
from page_truth.reading import Element, count_words, read

from ldptree.models.description import Cell, Condition, Description, Estimate, Node
from storage.store import Store
from tasks.page import findings, privacy, summary, units
from tasks.page.data import Check, Failure, Hidden, Influence, Run, Score, Scores, Span
from tasks.page.render import SECTIONS, render, summarize
from tasks.progress import Timeline
from tasks.report import describe_stop, read_facts

N = 900
THREE = {"paid": np.random.default_rng(3).choice(["a", "b", "c"], N, p=[0.6, 0.3, 0.1])}
CORRECTED = ("a correction", "a release")
CASES = ("classes", "three classes", "a number", *CORRECTED, "rounds", "a tree of rounds", "stopped")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Run]:
    """A run of every kind of page."""

    def chain(make: Any, configured: Any, columns: Any = None, **changes: Any) -> Chain:
        folder = tmp_path_factory.mktemp("run")
        path = make(folder / "rows.csv", N, 1, **(columns or {}))
        return Chain(Store(folder / "work"), configured(path, **changes))

    def rounds(**changes: Any) -> RoundsChain:
        folder = tmp_path_factory.mktemp("rounds")
        path = shells(folder / "shells.parquet", N, 1)
        return RoundsChain(Store(folder / "work"), shells_config(path, **changes)).converse()

    def corrected(*paths: Any, **changes: Any) -> Any:
        return mended(rides_config, *paths, **changes)

    made = {
        "classes": chain(rides, rides_config, privacy={"mechanism": "oue"}),
        "three classes": chain(rides, rides_config, THREE, dataset={"positive": None}),
        "a number": chain(fares, fares_config),
        "a correction": chain(rides, corrected),
        "a release": chain(rides, corrected, evaluate=False, simulation={"noise_seed": None}),
        "rounds": rounds(),
        "a tree of rounds": rounds(model={"estimator": "histoftree", "t": 2, "s": 1, "p": 1}),
    }
    found = {name: read_facts(one.store, one.page["page"]) for name, one in made.items()}
    one = made["classes"]
    stopped = describe_stop(
        one.config,
        Timeline(),
        "ldptree run rides",
        "",
        store=one.store,
        ingested=one.ingested,
        checked=one.checked,
    )
    check = Check(name="miles is between 0 and 5", zone="public", ok=False, detail="7 rows: 6.5")
    failure = Failure(step="validate", message="not in all public rows: miles is between 0 and 5")
    return found | {"stopped": replace(stopped, checks=(*stopped.checks, check), failure=failure)}


@pytest.mark.parametrize("name", CASES)
def test_a_page_is_well_formed_and_loads_and_runs_nothing(runs: dict[str, Run], name: str) -> None:
    html = render(runs[name])
    page = Page(html)
    assert not {"script", "iframe", "object", "form"} & set(page.tags)
    assert "default-src 'none'" in html
    loads = [value for _, key, value in page.attributes if key in ("src", "href", "action")]
    assert all(value.startswith(("data:", "#")) for value in loads)
    assert not [key for _, key, _ in page.attributes if key.startswith("on")]
    assert "url(" not in html
    ids = [value for _, key, value in page.attributes if key == "id"]
    assert len(ids) == len(set(ids))
    described = [v for _, key, v in page.attributes if key in ("aria-labelledby", "aria-describedby")]
    assert {one for value in described for one in value.split()} <= set(ids)
    assert len(html) < 150_000


@pytest.mark.parametrize("name", CASES)
def test_every_picture_can_be_said_or_is_left_out_and_no_mark_lies_outside(
    runs: dict[str, Run], name: str
) -> None:
    html = render(runs[name])
    for tag in re.findall(r"<svg [^>]*>", html):
        assert "aria-hidden" in tag or "aria-label" in tag or 'class="ov"' in tag
    places = [float(x) for x in re.findall(r'\b(?:cx|x|x1|x2)="(-?[\d.]+)%"', html)]
    assert all(0 <= place <= 100 for place in places)


@pytest.mark.parametrize("name", CASES)
def test_figures_of_a_column_have_equally_many_decimals(runs: dict[str, Run], name: str) -> None:
    """But exponents, and what a first column names."""
    for table in read(render(runs[name])).every("table"):
        rows = [[cell.text for cell in row.children] for row in table.first("tbody").every("tr")]
        for column in [*zip(*rows, strict=True)][1:]:
            found = [re.fullmatch(r"[+\u2212-]?[\d,]+(?:\.(\d+))?(?: .*)?", text) for text in column]
            assert len({len(each[1] or "") for each in found if each}) <= 1, column


@pytest.mark.parametrize("name", CASES)
def test_whatever_is_folded_has_its_answer_beside_its_title(runs: dict[str, Run], name: str) -> None:
    folds = read(render(runs[name])).every("details")
    assert len(folds) >= 4
    assert all(fold.first("summary").first("span", "short").text for fold in folds)


@pytest.mark.parametrize("name", CASES)
def test_a_page_is_read_in_minutes(runs: dict[str, Run], name: str) -> None:
    page = read(render(runs[name]))
    assert count_words(page, closed=False) <= 700
    assert count_words(page, closed=True) <= 1800


@pytest.mark.parametrize("name", CASES)
def test_a_heading_has_at_most_14_words_and_the_lead_at_most_two_sentences(
    runs: dict[str, Run], name: str
) -> None:
    """A figure and its unit are one word."""
    run = runs[name]
    texts = [summary.headline(run).text]
    texts += [summary.headline(_scored(run, lead)).text for lead in LEADS] if run.scores else []
    for text in texts:
        assert len(text.replace("\u202f", "").replace("\u00a0", "").split()) <= 14, text
    assert len(summary.lead(run)) <= 2


def test_the_question_is_the_configurations_or_made_of_the_classes(runs: dict[str, Run]) -> None:
    def said(run: Run) -> str:
        return read(render(run)).first("p", "question").text

    assert said(runs["classes"]) == "“cash” or “card”? Predict “paid” of a row, without seeing anyone’s row."
    assert said(runs["a number"]) == "Predict “paid” of a row, without seeing anyone’s row."
    assert said(replace(runs["classes"], question="Card or cash?")) == "Card or cash?"


@pytest.mark.parametrize("name", CASES)
def test_what_comes_from_data_is_text_wherever_it_stands(runs: dict[str, Run], name: str) -> None:
    evil = "<b onclick=x>&\"'|`"
    text = json.dumps(runs[name].to_dict(), ensure_ascii=False)
    for column in ("miles", "hour", "firm", "weight", "size"):
        text = text.replace(f'"{column}"', json.dumps(evil))
    run = replace(
        Run.from_dict(json.loads(text)),
        name=evil,
        title=evil,
        noun=evil,
        nouns=evil,
        target=evil,
        warnings=(evil,),
    )
    assert "<b onclick" not in render(run)
    assert "<b onclick" not in summarize(run)
    Page(render(run))


@pytest.mark.parametrize("name", CASES)
def test_a_run_comes_back_from_json_as_it_was(runs: dict[str, Run], name: str) -> None:
    text = json.dumps(runs[name].to_dict())
    assert Run.from_dict(json.loads(text)) == runs[name]
    with pytest.raises(ValueError, match="more"):
        Run.from_dict(json.loads(text) | {"more": 1})


LEADS = ((0.01, 0.03), (-0.03, -0.01), (-0.01, 0.03), (-0.001, 0.001))
"""Of each verdict one paired interval."""


def _said(run: Run) -> set[str]:
    """The keys of the sentences under the heading, and beside the groups."""
    return {one.key for one in (*summary.lead(run), *summary.explain_finding(run))}


def _scored(run: Run, lead: tuple[float, float], before: float = 0.61, ours: float = 0.63) -> Run:
    """The same run with other scores."""
    interval = Span(low=0.5, high=0.7)
    models = (
        Score(key="ours", metrics={"accuracy": ours}, interval=interval),
        Score(
            key="public_only",
            metrics={"accuracy": before},
            interval=interval,
            lead=Span(low=lead[0], high=lead[1]),
        ),
    )
    return replace(run, scores=Scores(models=models, n=500, redraws=0, duplicates=0))


@pytest.mark.parametrize(
    ("noiseless", "lead", "said"),
    [
        (0.65, (-0.05, -0.01), "The noise costs 2.0\u00a0points (1.0 to 5.0)."),
        (0.65, (-0.05, 0.01), "The noise made no measurable difference (−1.0 to 5.0\u00a0points)."),
        (0.61, (0.01, 0.03), "The noise helped here by chance, by 2.0\u00a0points (1.0 to 3.0)."),
    ],
)
def test_what_noise_costs_is_no_negative_cost(
    runs: dict[str, Run], noiseless: float, lead: tuple[float, float], said: str
) -> None:
    run = _scored(runs["a correction"], (0.01, 0.03))
    assert run.scores is not None
    exact = Score(
        key="no_noise",
        metrics={"accuracy": noiseless},
        interval=Span(low=0.5, high=0.7),
        lead=Span(low=lead[0], high=lead[1]),
    )
    run = replace(run, scores=replace(run.scores, models=(*run.scores.models, exact)))
    assert said in [one.text for one in summary.costs(run)]


def test_the_lead_gives_one_chance_and_the_groups_beside_them_the_other(runs: dict[str, Run]) -> None:
    run = runs["a release"]
    assert run.model.tree is not None
    tree = replace(run.model.tree, estimates=(Estimate(value=0.05, sd=0.04),))
    found = replace(
        run.model, tree=tree, is_found=True, chance=0.5, is_particular=True, chance_alike=0.88, statements=()
    )
    run = replace(run, public_rule="zone = 'north'")
    clear = replace(run, description=replace(found, cells=_with_estimates(found.cells, sd=0.01)))
    assert [one.key for one in summary.lead(clear)] == ["off together"]
    assert "particular" in {one.key for one in summary.explain_finding(clear)}


def test_no_model_is_called_wrong_somewhere_where_it_is_clearly_off_nowhere(runs: dict[str, Run]) -> None:
    """It is said instead how large a difference could hide."""
    run = runs["a correction"]
    assert run.model.tree is not None
    tree = replace(run.model.tree, estimates=(Estimate(value=0.05, sd=0.04),))
    found = replace(run.model, tree=tree, is_found=True, chance=0.05, is_particular=True, chance_alike=0.05)
    run = replace(run, public_rule="zone = 'north'", hidden=Hidden(difference=0.1, is_small=False))
    for sd, key in ((0.04, "hidden"), (0.01, "particular")):
        made = replace(run, description=replace(found, cells=_with_estimates(found.cells, sd=sd)))
        said = {one.key for one in (*summary.lead(made), *summary.explain_finding(made))}
        assert {"hidden", "particular"} & said == {key}


def _with_estimates(cells: tuple[Cell, ...], sd: float) -> tuple[Cell, ...]:
    """The cells with corrections of 5 points and less, each with this standard deviation."""
    return tuple(
        replace(cell, estimates=(Estimate(value=0.05 / (1 + at), sd=sd),)) for at, cell in enumerate(cells)
    )


def test_where_nothing_is_found_the_paragraph_says_so(runs: dict[str, Run]) -> None:
    run = runs["a correction"]
    run = replace(_scored(run, (-0.01, 0.001)), description=replace(run.model, is_found=False), hidden=None)
    assert "no difference" in {one.key for one in summary.lead(run)}
    blind = replace(run, hidden=Hidden(difference=0.3, is_small=False))
    assert "no difference" not in _said(blind)
    better = replace(_scored(run, (0.01, 0.03)), description=replace(run.model, is_found=False))
    assert {"no difference", "not by reports"} & _said(better) == {"not by reports"}


def test_reports_that_are_blind_do_not_say_that_none_are_needed(runs: dict[str, Run]) -> None:
    run = runs["a correction"]
    run = replace(_scored(run, (-0.001, 0.001)), description=replace(run.model, is_found=False, chance=0.5))

    def said(difference: float, *, is_small: bool) -> str:
        return summary.say_finding(
            found := replace(run, hidden=Hidden(difference=difference, is_small=is_small))
        ) + summary.say_details(found)

    blind = said(0.36, is_small=False)
    assert "could be off by 36.0\u00a0points unseen" in blind
    assert "needs no reports" not in blind
    assert "could be anything" in said(1.2, is_small=False)
    sharp = said(0.03, is_small=True)
    assert "could be off by 3.0\u00a0points unseen" in sharp
    assert "needs no reports" in sharp


def test_a_direction_is_only_given_beyond_its_error(runs: dict[str, Run]) -> None:
    run = runs["a correction"]
    assert run.model.tree is not None
    for value, sd, key in ((0.05, 0.01, "expects class"), (0.05, 0.04, "average unclear")):
        tree = replace(run.model.tree, estimates=(Estimate(value=value, sd=sd),))
        found = replace(run, description=replace(run.model, tree=tree, is_found=True, chance=None))
        assert key in [one.key for one in summary.lead(found)]


def test_a_run_in_rounds_says_why_no_other_epsilon_is_drawn(runs: dict[str, Run]) -> None:
    for name, run in runs.items():
        is_said = "each would need a new collection" in render(run)
        assert is_said == (name in ("rounds", "a tree of rounds")), name


def test_without_scores_the_page_claims_no_accuracy(runs: dict[str, Run]) -> None:
    run = runs["a release"]
    html = render(run)
    assert run.scores is None
    assert "Not scored" in html
    assert "so there are no scores." in html
    assert "Collection: nobody’s answer can be read." in html
    assert "All scores</h2>" not in html


def test_a_stopped_run_says_so_first_and_names_the_checks(runs: dict[str, Run]) -> None:
    page = Page(render(runs["stopped"])).words
    assert page.index("miles is between 0 and 5") < page.index("The run stopped at the step “validate”")
    assert "no privacy was spent" in page
    assert "The command that stopped" in page
    assert "again" not in page.partition("The command that stopped")[0], "the same command would stop again"
    assert "✗ failed" in page
    assert "7 rows: 6.5" in page


def test_the_heading_of_a_stopped_run_is_the_sentence_that_says_why(runs: dict[str, Run]) -> None:
    def page(message: str) -> Element:
        failure = Failure(step="ingest", message=message)
        return read(render(replace(runs["stopped"], failure=failure)))

    found = page('a.csv, column "km": not a number (details in a/b.txt). Correct it. Or declare it a text.')
    assert found.first("h1").text == 'a.csv, column "km": not a number (details in a/b.txt).'
    assert found.first("div", "stop").text == "Correct it. Or declare it a text."
    assert "stopped at the step “ingest”" in found.first("p", "lead").text
    long = page("x " * 300)
    assert "stopped at the step" in long.first("h1").text
    assert "x x x" in long.first("div", "stop").text


def test_a_finished_run_needs_its_model_and_nobody_spends_more_than_claimed(runs: dict[str, Run]) -> None:
    run = runs["classes"]
    with pytest.raises(ValueError, match="description"):
        replace(run, description=None)
    with pytest.raises(ValueError, match="spent"):
        replace(run, privacy=replace(run.privacy, epsilon_exact=2.1))
    with pytest.raises(ValueError, match="one estimate"):
        replace(run.model, outputs=("a", "b", "c"))


@pytest.mark.parametrize("name", [name for name in CASES if name != "stopped"])
def test_a_privacy_officer_reads_what_they_have_to_know(runs: dict[str, Run], name: str) -> None:
    run = runs[name]
    said = " ".join(one.text for answer in privacy.answers(run) for one in answer.sentences)
    assert units.exact_epsilon(run.privacy.epsilon_exact) in said
    assert "differ by a factor of" in said
    assert ("Drawn from a known seed" in said) == run.privacy.seeded
    assert "“zone”" in said
    page = render(run)
    assert ("rows kept aside, exactly" in page) == (run.scores is not None)
    assert ("repeats exactly on the same processor" in page) == run.privacy.seeded
    assert f"{run.n_public:,}" in said


def test_a_release_that_is_scored_says_that_its_page_is_not_for_others(runs: dict[str, Run]) -> None:
    run = runs["a correction"]
    page = render(replace(run, privacy=replace(run.privacy, seeded=False)))
    assert "Scored collection: do not publish this page." in page
    assert "only a simulation" not in page
    assert "protected, this page is not: do not publish it." in page
    assert "rows kept aside, exactly" in page
    assert "do not publish" not in render(run)


@pytest.mark.parametrize(
    "where", ["consent = 'yes'", "TRY(CAST(replace(Price, '£', '') AS DOUBLE)) IS NOT NULL"]
)
def test_whoever_protects_data_reads_no_functions_of_sql(runs: dict[str, Run], where: str) -> None:
    run = replace(runs["classes"], where=where)
    said = " ".join(one.text for answer in privacy.answers(run) for one in answer.sentences)
    assert ("is true of whoever took part" in said) == (where in said) == ("(" not in where)
    assert ("meets “where” of the configuration" in said) == ("(" in where)


def test_the_ledgers_figures_and_the_influence_are_said(runs: dict[str, Run]) -> None:
    run = runs["classes"]
    force = Influence(one=2.6, one_percent=31.0, at_once=1)
    run = replace(
        run,
        privacy=replace(run.privacy, largest_spend=3.0, n_questions=2, lifetime_epsilon=4.0, influence=force),
    )
    said = " ".join(one.text for answer in privacy.answers(run) for one in answer.sentences)
    for text in (
        "is ε = 3, on 2 questions",
        "more than ε = 4 in all",
        "can outweigh 2.6 honest ones, in up to 1 group",
    ):
        assert text.replace(" ", "") in said.replace("\u00a0", "").replace(" ", "")
    endless = replace(force, one=float("inf"))
    run = replace(run, privacy=replace(run.privacy, influence=endless, holder="person"))
    said = " ".join(one.text for answer in privacy.answers(run) for one in answer.sentences)
    assert "as far as they like" in said
    assert "Everyone with the same “person”" in said


@pytest.mark.parametrize("largest", [2.0, 10.0])
def test_what_was_spent_in_earlier_runs_stands_beside_who_reported(
    runs: dict[str, Run], largest: float
) -> None:
    run = runs["classes"]
    private = replace(run.privacy, epsilon_spent=2.0, largest_spend=largest, n_questions=2)
    run = replace(run, privacy=private)
    said = read(render(run)).first("ul", "parts").text
    assert ("10, on 2 questions" in said) == (largest > 2)


def test_where_coins_chose_the_public_rows_no_model_is_wrong_where_private_rows_are(
    runs: dict[str, Run],
) -> None:
    run = runs["a correction"]
    found = replace(run.model, is_found=True, is_particular=True, chance_alike=0.03)
    found = replace(found, cells=_with_estimates(found.cells, sd=0.01))
    by_rule, by_coins = (
        " ".join(
            one.text
            for made in (replace(run, description=found, public_rule=rule),)
            for one in (*summary.lead(made), *summary.explain_finding(made))
        )
        for rule in ("zone = 'north'", "random 0.1")
    )
    assert "wrong where private rows are" in by_rule
    assert "In 3 of 100 collections chance alone would look like this." in by_rule
    assert "where private rows are" not in by_coins
    assert "it is wrong for everybody" in by_coins


@pytest.mark.parametrize("name", CASES)
def test_the_summary_has_the_finding_the_scores_and_the_steps(runs: dict[str, Run], name: str) -> None:
    text, run = summarize(runs[name]), runs[name]
    assert text.startswith("## ")
    assert text.count("\n| ") >= (len(run.scores.models) if run.scores else 0)
    assert "### How it was made" in text
    assert ("| Model |" in text) == (run.scores is not None)
    assert ("### What left a person's hands" in text) == (run.failure is None)


def _large(cells: int) -> Run:
    """A corrected run with so many cells."""

    def node(low: int, high: int) -> Node:
        estimate = (Estimate(value=0.01 * (low % 7 - 3), sd=0.004),)
        if high - low == 1:
            return Node(conditions=(), cells=1, share=1 / cells, estimates=estimate, cell=low)
        middle = (low + high) // 2
        children = node(low, middle), node(middle, high)
        return Node(
            conditions=(), cells=high - low, share=(high - low) / cells, estimates=estimate, children=children
        )

    made = tuple(
        Cell(
            path=(),
            share=1 / cells,
            rests_on="private",
            estimates=(Estimate(value=0.01 * (i % 7 - 3), sd=0.004),),
        )
        for i in range(cells)
    )
    return Description(figure="correction", outputs=("yes",), tree=node(0, cells), cells=made, is_found=True)  # type: ignore[return-value]


def test_a_section_that_is_registered_stands_on_every_page_that_it_says_something_of(
    runs: dict[str, Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(SECTIONS, "one", lambda _: findings.Table("One more", ("", "n"), (("all", "7"),)))
    monkeypatch.setitem(SECTIONS, "none", lambda _: None)
    html = render(runs["classes"])
    assert "<summary>One more<" in html
    assert html.index("Every group of rows") < html.index("One more") < html.index("Privacy in full")


def _is_met(one: Condition, value: Any) -> bool:
    if one.low is not None or one.high is not None:
        return (one.low is None or value > one.low) and (one.high is None or value <= one.high)
    return (value in one.levels) != one.is_not if one.levels else one.is_not


@pytest.mark.parametrize("name", ["classes", "a number", "a correction", "a tree of rounds"])
def test_every_raw_row_is_in_exactly_one_kind(runs: dict[str, Run], name: str) -> None:
    """The conditions of a kind, bins of a histogram among them, are in the units of the raw columns."""
    rng = np.random.default_rng(2)
    numbers = {"miles": 20.0, "hour": 24.0, "weight": 1.0, "size": 1.0}
    levels = {"firm": ["ash", "birch", "cedar"], "kind": ["calm", "wild"]}
    cells = runs[name].model.cells
    assert len(cells) > 1
    for _ in range(300):
        row = {column: rng.random() * most for column, most in numbers.items()}
        row |= {column: rng.choice(values) for column, values in levels.items()}
        met = [cell for cell in cells if all(_is_met(one, row[one.column]) for one in cell.path)]
        assert len(met) == 1


def test_a_tree_is_drawn_open_where_most_people_are(runs: dict[str, Run]) -> None:
    """Down to its groups where it is small; each line is as thick as what it holds."""
    tree = read(render(runs["a number"])).first("ul", "tree")
    groups = [leaf.first("em").text for leaf in tree.every("li", "leaf")]
    assert groups == [str(one + 1) for one in range(len(runs["a number"].model.cells))]
    root = next(one for one in tree.children if one.tag == "li")
    below = next(one for one in root.children if one.tag == "ul")
    shares = [
        float(one.attributes["style"].removeprefix("--s:")) for one in below.children if one.tag == "li"
    ]
    assert sum(shares) == pytest.approx(1.0, abs=0.01)


def test_a_page_stays_small_whatever_the_size_of_the_model(runs: dict[str, Run]) -> None:
    run = replace(runs["a release"], description=_large(3000), n_cells=3000)  # type: ignore[arg-type]
    html = render(run)
    assert len(html) < 400_000
    assert html.count('class="leaf') <= 16
    assert "groups</i>" in html
    assert "The 400 largest of 3,000" in html


def test_simulated_rows_are_called_simulated_and_real_ones_are_not(runs: dict[str, Run]) -> None:
    run = runs["classes"]
    assert summary.status(run)[0] == "Trial on your own rows."
    assert summary.status(replace(run, simulated=True))[0] == "Trial on simulated rows."
