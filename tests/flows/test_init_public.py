"""`ldptree init` proposes public rows that others may differ from, asks who agreed, and chooses nobody for what they said."""

from __future__ import annotations

import re

import numpy as np
import pytest
from test_init_columns import LABEL, RNG, N, first_look

import ldptree
from flows.command.init import init
from ldptree.errors import ConfigError
from schemas.config import load
from tasks.first_look.rehearsal import type_rows
from tasks.first_look.values import look

DAYS = [f"{1 + i % 28:02}.0{1 + i * 9 // N}.2024" for i in range(N)]


def rules(said):
    return [
        said["public"],
        *(one["rule"] for one in said["public_proposals"] if one["rule"] != said["public"]),
    ]


def test_the_earliest_rows_are_proposed_where_a_file_is_in_the_order_of_time(tmp_path):
    days = sorted(DAYS, key=lambda day: day[3:5] + day[:2])
    out, said = first_look(tmp_path, day=days, source=RNG.choice(["register", "vendor"], N))
    assert rules(said)[0].startswith("first ")
    assert load(out).dataset.public == said["public"]
    assert "day_month" in load(out).dataset.derive


SECONDS = RNG.permutation(1_700_000_000 + 7_000 * np.arange(N))
TIMES = {
    "a day": (RNG.permutation(DAYS), r"try_strptime\(x, '%d.%m.%Y'\) < CAST\('2024-0\d-\d\d' AS TIMESTAMP\)"),
    "seconds": (SECONDS, r"x < 170\d{7}"),
    "milliseconds": (SECONDS * 1000, r"x < 170\d{10}"),
    "a year": (RNG.integers(2015, 2022, N), r"x < 201[67]"),
    "a day, often not known": (
        np.where(RNG.random(N) < 0.1, "01.01.1900", DAYS),
        r"try_strptime\(x, '%d.%m.%Y'\) >= CAST\('2024-01-01' AS TIMESTAMP\) AND try_strptime.* < CAST\('2024-.*",
    ),
}


@pytest.mark.parametrize("name", TIMES)
def test_of_any_file_with_times_the_earliest_rows_are_proposed_and_no_code_is_among_them(tmp_path, name):
    values, rule = TIMES[name]
    out, said = first_look(tmp_path, x=values, region=RNG.choice(["n", "s", "w"], N))
    assert re.fullmatch(rule, load(out).dataset.public)
    assert rules(said)[-1].startswith("random ")
    share = typed_public(tmp_path, out).mean()
    assert 0.1 < share < 0.4


def test_a_year_alone_comes_after_a_group_whose_labels_differ(tmp_path):
    towns = np.array(["Gent", "Luik", "Namen"])[GOES]
    _, said = first_look(tmp_path, year=RNG.integers(2015, 2022, N), town=towns)
    assert [rule.partition(" ")[0] for rule in rules(said)] == ["town", "year", "random"]


def test_of_dates_of_birth_the_earliest_are_offered_and_not_begun_with(tmp_path):
    born = [f"{1940 + i * 7 % 60}-03-{1 + i % 28:02}" for i in range(N)]
    out, said = first_look(tmp_path, born=born)
    assert load(out).dataset.public.startswith("random ")
    assert rules(said)[1].startswith("CAST(born AS TIMESTAMP) < ")


def typed_public(folder, out):
    """Which rows are public by the configuration."""
    seen = look(folder / "rows.csv", target="y", public=None)
    return type_rows(seen, load(out).dataset, is_number=False).is_public.to_numpy()


WON = np.asarray(LABEL) == "won"
GOES = np.where(WON, RNG.choice(3, N, p=[0.6, 0.2, 0.2]), RNG.choice(3, N))
"""Groups 0 to 2, of which the first has more that won."""
GROUPS = {
    # values of a column "confirmed", and whether one of them is proposed
    "towns": (np.array(["Gent", "Luik", "Namen"])[GOES], True),
    "towns by chance": (RNG.choice(["Gent", "Luik", "Namen"], N), False),
    "towns for a number": (np.array(["Gent", "Luik", "Namen"])[GOES], True),
    "codes of towns": (np.array([5000, 4000, 9000])[GOES], True),
    "codes from nought on": (np.array([7, 0, 4])[GOES], False),
    "a truth": (np.where(GOES == 0, "yes", "no"), False),
    "a scale": (GOES * 2 + RNG.integers(0, 2, N), False),
    "ranges of age": (np.array(["18-29", "30-49", "50+"])[GOES], False),
    "how it ended": (np.where(WON, RNG.choice(["paid", "sent"], N), RNG.choice(["lost", "gone"], N)), False),
    "a town of one row in fifty": (np.where(RNG.random(N) < 0.02, "Gent", np.where(GOES, "Luik", "Namen")), True),
    "nearly all different": (np.char.add("town ", RNG.integers(0, 90, N).astype(str)), False),
}  # fmt: skip


@pytest.mark.parametrize("name", GROUPS)
@pytest.mark.parametrize("title", ["confirmed", "ville"])
def test_a_group_is_proposed_for_its_size_and_its_labels_whatever_it_is_called(tmp_path, title, name):
    values, is_proposed = GROUPS[name]
    y = WON * 10 + RNG.normal(0, 5, N).round(2) if name.endswith("number") else LABEL
    out, said = first_look(tmp_path, **{title: values}, y=y)
    assert load(out).dataset.public.startswith(f"{title} = " if is_proposed else "random ")
    assert rules(said)[-1].startswith("random ") or not is_proposed
    if is_proposed:
        assert 0.03 <= typed_public(tmp_path, out).mean() <= 0.5
        why = f"values of {title}, .*% of the rows, where labels differ from elsewhere: .* against "
        assert re.search(why, out.read_text())


def test_of_two_groups_the_one_whose_labels_differ_more_comes_first_and_chance_last(tmp_path, capsys):
    less = np.where(RNG.random(N) < 0.5, GOES, RNG.integers(0, 3, N))
    towns = np.array(["n", "s", "w"])
    y = np.where(GOES == 0, RNG.random(N) < 0.8, RNG.random(N) < 0.2)
    out, said = first_look(tmp_path, branch=towns[less], region=towns[GOES], y=np.where(y, "won", "lost"))
    assert [rule.partition(" ")[0] for rule in rules(said)] == ["region", "branch", "random"]
    init(tmp_path / "rows.csv", target="y", public=None, out=out, force=True, as_json=False)
    assert "or random 0." in capsys.readouterr().out
    assert "reports can correct only what the public model gets wrong for everybody" in out.read_text()


def test_a_label_that_no_proposed_public_row_has_is_said_with_its_share(tmp_path, capsys):
    site = np.repeat(["a", "b", "c", "d"], N // 4)
    y = np.where((site != "a") & (RNG.random(N) < 0.4), "draw", LABEL)
    out, said = first_look(tmp_path, site=site, y=y)
    assert (load(out).dataset.public, said["labels_without_public_rows"]) == ("site = 'a'", ["draw"])
    line = f"no public row has draw ({np.mean(y == 'draw'):.0%}): a public model never predicts it"
    assert line in out.read_text()
    init(tmp_path / "rows.csv", target="y", public=None, out=out, force=True, as_json=False)
    assert line in capsys.readouterr().out
    _, said = first_look(tmp_path, site=site, y=LABEL)
    assert said["labels_without_public_rows"] == []


@pytest.mark.parametrize(
    "name", ["hasConsent", "Einwilligung", "data_sharing", "May we publish this? I agree"]
)
def test_those_who_may_have_agreed_are_asked_about_and_never_chosen(tmp_path, name):
    out, said = first_look(tmp_path, **{name: RNG.choice(["Yes", "yes", "No"], N)})
    assert load(out).dataset.public.startswith("random ")
    assert rules(said)[1].endswith("= 'yes'")
    assert "would be read in the clear: did they agree to that?" in out.read_text()


WEIGHTS = {
    "fnlwgt": (RNG.integers(10_000, 90_000, N), True),
    "final_weight": (RNG.gamma(2, 5, N), True),
    "weight": (RNG.gamma(4, 1 / 4, N), True),
    "body_weight_kg": (RNG.normal(70, 9, N), False),
    "Gewicht": (RNG.normal(70, 9, N), False),
    "perwt": (RNG.normal(0, 9, N), False),
    "height": (RNG.gamma(4, 1 / 4, N), False),
}


@pytest.mark.parametrize("name", WEIGHTS)
def test_a_column_that_looks_like_survey_weights_is_named_and_not_chosen(tmp_path, name):
    values, is_named = WEIGHTS[name]
    out, said = first_look(tmp_path, **{name: values.round(3)})
    assert said["weight_proposals"] == [name] * is_named
    assert load(out).dataset.weight is None
    if is_named:
        out.write_text(out.read_text().replace("# weight = ", "weight = "))
        with pytest.raises(ConfigError, match=r"dataset\.weight: only a public forest or boosting"):
            load(out)
        spec = load(out, ["model.estimator=correction", "model.base=forest"]).dataset
        assert spec.weight == name
        assert name not in spec.features(["number", name, "y"])


def test_a_label_that_may_be_a_count_is_offered_both_ways(tmp_path, capsys):
    out, said = first_look(tmp_path, y=RNG.integers(0, 9, N))
    assert said["label"] == "class"
    ldptree.init(tmp_path / "rows.csv", target="y")
    assert 'or label = "number", where it counts something' in capsys.readouterr().out
    text = out.read_text().replace('label = "class"', 'label = "number"')
    begin = text.index("# [model]")
    out.write_text(text[:begin] + re.sub("^# ", "", text[begin:], flags=re.MULTILINE))
    config = load(out)
    assert (config.label, config.model.settings.label_range) == ("number", (0, 8))
    out, said = first_look(tmp_path, y=np.where(np.asarray(LABEL) == "won", 1, 0))
    assert "[model]" not in out.read_text()


def test_what_a_target_is_measured_in_is_written_too(tmp_path):
    prices = [f"£{one:,}" for one in np.random.default_rng(1).integers(900, 900_000, N)]
    out, said = first_look(tmp_path, y=prices)
    assert said["label"] == "number"
    assert load(out).dataset.unit == "£"
