"""`ldptree init` proposes public rows that others may differ from, asks who agreed, and chooses nobody for what they said."""

from __future__ import annotations

import re

import numpy as np
import pytest
from test_init_columns import LABEL, RNG, N, first_look

from flows.command.init import init
from ldptree.errors import ConfigError
from schemas.config import load

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


def test_of_an_order_that_is_not_the_files_the_time_is_offered_and_stays_a_feature(tmp_path):
    out, said = first_look(tmp_path, day=RNG.permutation(DAYS))
    assert load(out).dataset.public.startswith("random ")
    assert rules(said)[1].startswith("try_strptime(day, '%d.%m.%Y') < CAST('2024-")
    assert "day_month" in load(out).dataset.derive


def test_a_group_whose_labels_differ_most_is_proposed_and_chance_comes_last(tmp_path, capsys):
    region = np.where(
        np.asarray(LABEL) == LABEL[0],
        RNG.choice(["n", "s", "w"], N, p=[0.6, 0.2, 0.2]),
        RNG.choice(["n", "s", "w"], N),
    )
    out, said = first_look(tmp_path, branch=RNG.choice(["a", "b", "c"], N), region=region)
    assert rules(said)[0].startswith("region = ")
    assert rules(said)[1].startswith("branch = ")
    assert rules(said)[-1].startswith("random ")
    init(tmp_path / "rows.csv", target="y", public=None, out=out, force=True, as_json=False)
    assert "or random 0." in capsys.readouterr().out
    assert "reports can correct only what the public model gets wrong for everybody" in out.read_text()


@pytest.mark.parametrize("name", ["Panel", "Kohorte", "Soci\u00e9t\u00e9", "Fuente"])
def test_a_group_is_told_by_its_name_in_four_languages(tmp_path, name):
    _, said = first_look(tmp_path, **{name: np.where(np.arange(N) % 4, "new", "old")})
    assert said["public"].endswith(" = 'old'")


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


def test_a_label_that_may_be_a_count_is_offered_both_ways(tmp_path):
    out, said = first_look(tmp_path, y=RNG.integers(0, 9, N))
    assert said["label"] == "class"
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
