"""Defaults are the recommendation: which family learns where none is named, and that a trial asks nobody."""

from __future__ import annotations

import json

import pytest
from chain import NEW_PEOPLE, Chain, fares, fares_config, learned, rides, rides_config

from flows.budget import PAGE_IS_NOT_PRIVATE, PROTECTS_NOBODY
from flows.command import running
from flows.run_plan.show import show_plan
from ldptree.families import FEWEST_FOR_A_MODEL, choose_family
from ldptree.mechanisms import CHOICES, RESIDUAL_CHOICES
from storage.ledger.accounts import Account
from storage.store import Store
from tasks.page.captions import NOBODY
from tasks.report import read_facts

AUTO = {"estimator": "auto"}
QUICK = {"evaluate": False, "simulation": {"noise_seed": 11}}


@pytest.mark.parametrize(("label", "tree"), [("class", "lpct"), ("number", "lpdt")])
def test_a_public_model_is_corrected_where_public_rows_carry_one(label, tree):
    families = [choose_family(label, n, "auto").family for n in (0, 1, FEWEST_FOR_A_MODEL - 1)]
    assert families == [tree] * 3
    assert choose_family(label, FEWEST_FOR_A_MODEL, "auto").family == "correction"
    others = set(CHOICES) - set(RESIDUAL_CHOICES)
    assert {choose_family(label, 1000, mechanism).family for mechanism in others} == {tree}
    assert {choose_family(label, 1000, mechanism).family for mechanism in RESIDUAL_CHOICES} == {"correction"}


@pytest.mark.parametrize(
    ("make", "config", "n", "family", "base"),
    [
        (rides, rides_config, 57, "lpct", ""),
        (fares, fares_config, 57, "lpdt", ""),
        (rides, rides_config, 60, "correction", "blend"),
        (fares, fares_config, 60, "correction", "blend"),
    ],
)
def test_a_run_that_names_no_estimator_takes_the_recommended_one(
    store, tmp_path, make, config, n, family, base
):
    """A third of the rows is public."""
    changes = {"model": AUTO | {"depth": 2}, **QUICK}
    chain = Chain(store, config(make(tmp_path / "rows.csv", n, 1), **changes))
    facts = read_facts(store, chain.page["page"])
    assert (facts.estimator, chain.terms.config.model.settings.depth) == (family, 2)
    assert f"{n // 3} public rows" in facts.why_chosen
    assert facts.making.config["model.estimator"] == family
    assert chain.terms.config.model.settings.for_questions.get("base", "") == base
    named = Chain(
        store, config(tmp_path / "rows.csv", **changes | {"model": {"estimator": family, "depth": 2}})
    )
    assert named.model == chain.model
    assert read_facts(store, named.page["page"]).why_chosen == ""


def campaign(make, config, n_first):
    """A campaign of two weeks, of which the first chose by its public rows; the second has many more of them."""

    def later(store, folder, **changes):
        first, second = make(folder / "1.csv", n_first, 1), make(folder / "2.csv", 600, 2)
        terms = {"campaign": {"name": "weekly"}, **QUICK}
        begun = Chain(store, config(first, **terms, **({"model": AUTO} | changes)))
        assert begun.model
        return begun, Chain(store, config(first, second, model=AUTO, dataset=NEW_PEOPLE, **terms))

    return later


@pytest.mark.parametrize(
    ("make", "config", "begun_as", "base"),
    [
        (rides, rides_config, {}, None),
        (rides, rides_config, {"model": {"estimator": "lpct"}}, None),
        (
            fares,
            fares_config,
            {"model": {"estimator": "correction", "base": "forest"}},
            "forest",
        ),
    ],
    ids=["chosen", "by an earlier version", "by an earlier version, of a number"],
)
def test_a_campaign_goes_on_with_the_family_that_it_began_with(store, tmp_path, make, config, begun_as, base):
    begun, second = campaign(make, config, 57)(store, tmp_path, **begun_as)
    assert second.terms.config.model.estimator == begun.terms.config.model.estimator != "auto"
    assert second.protocol == begun.protocol
    assert second.totals.facts["n_private"] > begun.totals.facts["n_private"]
    assert second.terms.config.model.settings.for_questions.get("base") == base
    assert learned(second).n_private == second.totals.facts["n_private"]


def test_a_trial_leaves_no_ledger_and_takes_nothing_from_a_release(store, tmp_path):
    path = rides(tmp_path / "rides.csv", 300, 1)
    unseeded = {"simulation": {"noise_seed": None}, "dataset": {"holder": "person", "drop": []}}
    unseeded["evaluation"] = {"redraws": 0}
    for epsilon in (1.0, 2.0, 3.0):
        trial = Chain(store, rides_config(path, privacy={"epsilon": epsilon}, **unseeded))
        facts = read_facts(store, trial.page["page"])
        told = facts.privacy
        assert (told.seeded, told.largest_spend, told.n_questions) == (True, 0.0, 0)
    assert len(Account(store, None).read()) == 0
    capped = {"epsilon": 3.0, "lifetime_epsilon": 3.0}
    assert Chain(store, rides_config(path, privacy=capped, release=True, **unseeded)).spent.largest == 3.0


def test_a_trial_repeats_byte_for_byte_and_a_release_does_not(tmp_path):
    path = rides(tmp_path / "rides.csv", 300, 1)
    models = {}
    for name, changes in (("a", {}), ("b", {}), ("c", {"release": True}), ("d", {"release": True})):
        config = rides_config(path, simulation={"noise_seed": None}, **changes)
        models[name] = Chain(Store(tmp_path / name), config).model["model"].digest
    assert models["a"] == models["b"]
    assert len(set(models.values())) == 3


SUMMARY = {"metrics": {}, "baselines": {}, "largest_spend": 3.0, "columns_left_out": {}, "warnings": []} | {
    "n_private": 9, "n_new": 9, "n_public": 9, "mechanism": "oue", "epsilon": 1, "form": "reports", "cells": 2,
    "model": "m", "page": "r", "details": "d", "finding": "f", "protection": f"{NOBODY}",
}  # fmt: skip


@pytest.mark.parametrize(
    ("trial", "seeded", "why"),
    [(True, True, "240 public rows are too few"), (False, True, ""), (False, False, "")],
)
def test_the_terminal_says_what_was_chosen_and_what_protects_nobody(capsys, trial, seeded, why):
    summary = SUMMARY | {"estimator": "lpct", "trial": trial, "seeded": seeded, "why_chosen": why}
    running._show(summary, is_label_declared=False, temporary=False)
    said = capsys.readouterr().out
    assert ("no privacy budget was spent" in said) is trial
    assert (PROTECTS_NOBODY in said) is (seeded and not trial)
    assert ("nobody has spent more than epsilon 3" in said) is not (seeded or trial)
    end = "Estimator: lpct, as 240 public rows are too few." if why else "Estimator: lpct, as configured."
    assert said.splitlines()[-1] == f"f {end}"


def test_the_terminal_writes_errors_of_numbers_as_the_finding_does_and_no_negative_zero(capsys):
    errors = {"ours": 9643.4916, "base": 16215.6}
    scores = {key: {"rmse": rmse, "mae": 79.8949, "r2": 0.6} for key, rmse in errors.items()}
    scores["base"]["r2"] = -0.0004  # no zero is negative
    summary = SUMMARY | {"estimator": "correction", "trial": True, "seeded": True, "why_chosen": ""}
    summary |= {"metrics": scores.pop("ours"), "baselines": scores}
    running._show(summary, is_label_declared=True, temporary=False)
    ours, public = capsys.readouterr().out.splitlines()[2:4]
    assert ours.split()[-3:] == ["9,643", "79.9", "0.600"]
    assert public.split()[-3:] == ["16,216", "79.9", "0.000"]


@pytest.mark.parametrize(("campaign", "seed"), [("weekly", 11), ("weekly", None), (None, 11)])
def test_a_plan_says_whom_a_run_with_seeded_noise_protects_as_the_run_does(tmp_path, capsys, campaign, seed):
    tables = {"campaign": {"name": campaign}} if campaign else {}
    path = rides(tmp_path / "rides.csv", 50, 1)
    config = rides_config(path, simulation={"noise_seed": seed}, evaluate=campaign is None, **tables)
    show_plan(config, tmp_path / "work", as_json=False)
    said = capsys.readouterr().out
    assert (PROTECTS_NOBODY in said) is (campaign is not None and seed is not None)
    assert PAGE_IS_NOT_PRIVATE not in said
    show_plan(config, tmp_path / "work", as_json=True)
    said = json.loads(capsys.readouterr().out)
    assert (said["seeded"], said["trial"]) == (config.is_seeded, campaign is None)


def test_a_plan_of_a_release_that_is_scored_says_that_scores_are_not_protected(tmp_path, capsys):
    path = rides(tmp_path / "rides.csv", 50, 1)
    config = rides_config(path, simulation={"noise_seed": None}, release=True)
    show_plan(config, tmp_path / "work", as_json=False)
    assert PAGE_IS_NOT_PRIVATE in capsys.readouterr().out
