"""`ldptree plan`: what a collection would bring, told from public rows alone; a mistake has one sentence and exit code 2."""

from __future__ import annotations

import json

import pytest
from chain import rides

from flows.command.main import main
from ldptree.planning import forecast

CONFIG = """
name = "rides"
seed = 7

[dataset]
name = "rides"
path = ["rides.csv"]
target = "paid"
positive = "card"
public = "zone = 'open'"
drop = ["person"]

[model]
estimator = "lpct"
depth = 3

[privacy]
epsilon = 2.0
"""


@pytest.fixture
def typed(capsys, tmp_path, monkeypatch):
    """What a plan exits with and prints: (code, standard output, standard error)."""
    (tmp_path / "rides.toml").write_text(CONFIG)
    rides(tmp_path / "rides.csv", 600, seed=1)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(forecast, "N_SPLITS", 2)
    monkeypatch.setattr(forecast, "DRAWS", 1)

    def type_in(*words):
        with pytest.raises(SystemExit) as end:
            main(["plan", "rides.toml", *map(str, words)])
        shown = capsys.readouterr()
        return end.value.code, shown.out, shown.err

    return type_in


def test_a_plan_tells_a_grid_and_a_page_that_loads_nothing(typed, tmp_path):
    code, out, _ = typed("--holders", "500,5_000", "--epsilon", "2", "--json", "--out", "plan.html")
    found = json.loads(out)
    assert code == 0
    assert set(found) == {
        *(
            "name",
            "estimator",
            "epsilon",
            "label",
            "figure",
            "n_public",
            "one_answer",
            "difference",
            "level",
            "power",
            "collect",
            "says",
            "verdict",
        ),
        *("public", "grid", "reach", "detect"),
    }
    assert [(one["holders"], one["epsilon"]) for one in found["grid"]] == [(500, 2), (5000, 2)]
    page = (tmp_path / "plan.html").read_text()
    assert all(sentence in page for sentence in found["says"].removesuffix(".").split(". "))
    assert "<script" not in page
    assert "http" not in page.replace("http-equiv", "")
    assert not any((tmp_path / "work" / "curator").glob("reports/*")), "somebody was asked"
    assert not (tmp_path / "work" / "public" / "validate").exists(), (
        "private rows were checked, and the answers told"
    )
    assert not (tmp_path / "work" / "holders" / "holders.db").exists(), "somebody was charged"


def test_no_private_row_moves_a_plan(typed, tmp_path):
    """The private rows change their features and labels, the public ones stay; the plan does too, to the last digit."""
    words = ("--holders", "2000", "--epsilon", "2", "--detect", "0.2", "--json")
    before = typed(*words)[1]
    path = tmp_path / "rides.csv"
    head, *rows = path.read_text().splitlines()
    others = [
        ",".join((*row.split(",")[:2], "1.5", "3", "ash", "cash")) if "closed" in row else row for row in rows
    ]
    assert others != rows
    path.write_text("\n".join([head, *others]) + "\n")
    assert typed(*words)[1] == before


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--set", "evaluate=false"), "how many people would report? Private rows are not counted"),
        (("--holders", "5000,many"), "'many' is not a whole number"),
        (("--holders", "-5"), "-5 people: from 1 to 10,000,000"),
        (("--holders", "5,000"), "5,000 is 5 and 000; write 5000 or 5_000"),
        (("--holders", "500,2,050,000"), "2,050,000 is 2 and 050 and 000; write 2050000 or 2_050_000"),
        (("--holders", "5000", "--epsilon", "0"), "epsilon must be a number above 0"),
        (("--holders", "5000", "--accuracy", "1.2"), "--accuracy 1.2: a share above 0 and below 1"),
        (("--holders", "5000", "--accuracy", "1"), "--accuracy 1: a share above 0 and below 1"),
        (
            ("--holders", "5000", "--mse", "4"),
            "the label is a class; say which share predicted correctly is wanted, --accuracy",
        ),
        (("--holders", "5000", "--detect", "2"), "an error of a class's share is below 1"),
        (("--holders", "5000", "--accuracy", "0.9", "--detect", "0.1"), "ask for one of them at a time"),
        (("--holders", "5000", "--out", "nowhere/plan.html"), "there is no folder nowhere"),
        (("--holders", "5000", "--out", "."), "--out .: a folder. Name a file."),
        (
            (
                *("--holders", "9", "--set", "dataset.target=hour", "--set", "model.estimator=lpdt"),
                *("--set", "dataset.positive=", "--accuracy", "0.9"),
            ),
            "the label is a number; say which mean squared error is wanted, --mse",
        ),
    ],
)
def test_a_mistake_has_one_sentence_and_leaves_nothing(typed, tmp_path, words, message):
    code, out, err = typed(*words)
    assert (code, out) == (2, "")
    assert message in err
    assert len(err.splitlines()) == 1
    assert not (tmp_path / "work").exists()


def test_a_figure_that_public_rows_reach_needs_nobody(typed):
    code, out, _ = typed("--holders", "1000", "--epsilon", "2", "--accuracy", "0.3", "--json")
    assert code == 0
    assert json.loads(out)["reach"] == {"wanted": 0.3, "is_reached": True, "holders": [], "epsilon": []}


def test_too_few_public_rows_are_refused(typed, tmp_path):
    rides(tmp_path / "rides.csv", 150, seed=1)
    code, _, err = typed("--holders", "1000")
    assert code == 2
    assert "50 public rows: a forecast takes 100" in err


@pytest.mark.slow
def test_it_tells_of_the_epsilon_that_is_configured_first(typed):
    """And of a row it says the same in words and in the table."""
    code, out, _ = typed("--holders", "100", "--epsilon", "2,8")
    assert code == 0
    verdict, lead, *_ = [line for line in out.splitlines() if "epsilon 2" in line]
    assert "at epsilon 2, as configured" in verdict
    (row,) = [line for line in out.splitlines() if line.split()[:2] == ["100", "2"]]
    assert row.split("%")[0].split(maxsplit=2)[2] in lead
    elsewhere = typed("--holders", "100", "--epsilon", "4")[1]
    assert "as configured" not in elsewhere
    grid = json.loads(typed("--holders", "100", "--set", "privacy.epsilon=3", "--json")[1])["grid"]
    assert [one["epsilon"] for one in grid] == [0.5, 1, 2, 3, 4]


@pytest.mark.slow
def test_an_error_that_no_model_can_make_is_never_found(typed):
    """The share of a class is about a half: it cannot be off by all that few, very noisy reports would miss."""
    _, out, _ = typed("--holders", "20", "--epsilon", "0.25")
    assert "would find: none" in out
    assert "private people in particular" not in out
    found = json.loads(typed("--holders", "20", "--epsilon", "0.25", "--json")[1])
    assert found["grid"][0]["smallest"]["error"] > 0.6


def test_of_a_number_it_says_by_how_much_the_error_falls(typed):
    changes = ("dataset.target=hour", "model.estimator=lpdt", "dataset.positive=")
    words = [word for change in changes for word in ("--set", change)]
    _, out, _ = typed("--holders", "500", "--epsilon", "8", *words)
    assert "Squared error falls by" in out
    assert "Gain" not in out


@pytest.mark.slow
def test_the_grid_fits_into_80_columns(typed, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    _, out, _ = typed("--holders", "151_899", "--epsilon", "0.5,2")
    head, *_ = [at for at, line in enumerate(out.splitlines()) if "People" in line]
    assert max(map(len, out.splitlines()[head - 1 : head + 3])) <= 80


@pytest.mark.slow
def test_no_figure_of_the_grid_is_cut_off(typed, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    _, out, _ = typed("--holders", "500,5_000", "--epsilon", "2")
    assert "…" not in out
    assert "Worth it" in out
