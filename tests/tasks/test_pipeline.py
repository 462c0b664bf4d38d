"""What every run promises whatever its family: a run of each walked plainly, then looked at and walked again."""

from __future__ import annotations

import shutil

import numpy as np
import polars as pl
import pytest
from chain import (
    NEW_PEOPLE,
    Chain,
    fares,
    fares_config,
    learned,
    mended,
    rides,
    rides_config,
    scores_of,
)
from families import RUNS, THREE, paid_in_three_ways

from flows.executors import CachedOnly, InlineExecutor, Pending
from flows.pipeline import Pipeline
from flows.respondents.own_holders import OwnHolders
from ldptree.baselines import select_baselines
from ldptree.errors import ProtocolMismatch
from ldptree.metrics.classes import score
from storage import tables
from storage.store import Store
from tasks.artifacts import read_encoding
from tasks.predict import load_model, predict_file
from tasks.report import read_facts

CURATORS = ("partition", "add", "aggregate", "prune")


@pytest.fixture(params=RUNS)
def walked(request, run_of):
    """A finished run. Only to be read."""
    return run_of(request.param)


class Gone(OwnHolders):
    """Holders whose answers are there, and nothing else of them."""

    def charge(self, asked, before):
        return self.run.before.spent

    def answer(self, asked):
        return self.run.before.rounds[asked.number - 1].reports


class WithoutHolders(Pipeline):
    """The curator's half of a run: what holders did and sent is given, all else is asked for again."""

    def with_answers_of(self, run):
        self.before = run.conversation
        for name in ("terms", "raw", "ingested", "held", "shown")[: 5 if run.config.model.in_rounds else 4]:
            self.__dict__[name] = getattr(run, name)
        self.__dict__["respondents"] = Gone(self)
        return self


def digests(run):
    return [(record.step, part, one.digest) for record in run.records for part, one in record.parts.items()]


# Steps


def test_a_run_walked_again_finds_every_step_and_spends_nothing_more(walked):
    before = sorted(walked.store.root.rglob("*"))
    again = Pipeline(store=walked.store, config=walked.config, executor=InlineExecutor(walked.store))
    again.walk()
    assert digests(again) == digests(walked)
    assert again.conversation.spent == walked.conversation.spent
    assert sorted(walked.store.root.rglob("*")) == before


@pytest.mark.parametrize("walked", ["lpct", "correction of three classes", "histoftree"], indirect=True)
def test_the_same_seeds_learn_and_score_the_same_in_another_folder(walked, tmp_path):
    """With other holders' secrets, and so with other keys; `test_digests` has more families, without scores."""
    store = Store(tmp_path / "elsewhere")
    again = Pipeline(store=store, config=walked.config, executor=InlineExecutor(store))
    again.walk()
    assert scores_of(again) == scores_of(walked)
    assert again.model["model"].digest == walked.model["model"].digest
    questions = [
        [
            part.digest
            for record in run.records
            if record.step == "partition"
            for part in record.parts.values()
        ]
        for run in (walked, again)
    ]
    assert questions[0] == questions[1]


def test_whoever_only_looks_finds_what_the_run_left_and_nothing_before_it(walked, tmp_path):
    found = Pipeline(store=walked.store, config=walked.config, executor=CachedOnly(walked.store))
    assert found.scaled == walked.scaled
    empty = Store(tmp_path / "work")
    nothing = Pipeline(store=empty, config=walked.config, executor=CachedOnly(empty))
    nothing.walk()
    assert nothing.records == []
    assert isinstance(nothing.model, Pending)


def test_every_holder_answers_each_question_they_are_asked_once(walked):
    asked = walked.held.facts["n_private"]
    for one in walked.conversation.rounds:
        reported = sum(record.facts["n_reports"] for record in one.reports)
        assert reported == one.asked.facts.get("n_asked", asked)
        assert one.left.facts.get("n_private", one.left.facts.get("n_answers")) == reported


def test_the_curators_steps_need_nothing_of_the_holders(walked, tmp_path):
    """The holders' zone is taken away and all the curator made but the reports: the same digests come out again."""
    work = tmp_path / "work"
    shutil.copytree(walked.store.root, work)
    for made in ("holders", "simulation", "public/scale", *(f"curator/{n}" for n in CURATORS)):
        shutil.rmtree(work / made, ignore_errors=made == "curator/add")  # there is none in rounds
    store = Store(work)
    again = WithoutHolders(store=store, config=walked.config, executor=InlineExecutor(store)).with_answers_of(
        walked
    )
    assert again.scaled
    assert again.model
    assert not (work / "holders").exists()
    made = [record for record in walked.records if record.step in ("scale", *CURATORS)]
    assert len(made) >= 4
    assert digests(again) == [(r.step, part, one.digest) for r in made for part, one in r.parts.items()]


WILD = {
    "lpct": (rides, rides_config),
    "lpdt": (fares, fares_config),
    "correction": (rides, lambda path, **more: mended(rides_config, path, **more)),
    "correction of a number": (fares, lambda path, **more: mended(fares_config, path, **more)),
}


@pytest.mark.parametrize("family", WILD)
def test_nothing_of_private_rows_but_their_number_moves_what_the_curator_publishes(tmp_path, family):
    """Of private rows every value is another one, some of them far from any public one: ranges, levels, fills, the public
    rows as scaled and the question are the same.
    """
    write, make = WILD[family]
    one, other = (pl.read_csv(write(tmp_path / f"{seed}.csv", 300, seed)) for seed in (2, 3))
    public, private = one.filter(pl.col("zone") == "open"), one.filter(pl.col("zone") == "closed")
    wild = other.filter(pl.col("zone") == "closed").with_columns(
        miles=1e9 * (-1) ** pl.int_range(pl.len()), firm=pl.lit("a private firm")
    )
    if family in ("lpdt", "correction of a number"):
        wild = wild.with_columns(paid=pl.col("paid") * 1e6)
    runs = []
    for name, rows in (("plain", private), ("wild", wild)):
        pl.concat([public, rows]).write_csv(tmp_path / f"{name}.csv")
        runs.append(Chain(Store(tmp_path / name), make(tmp_path / f"{name}.csv", evaluate=False)))
    assert runs[0].held["train"].digest != runs[1].held["train"].digest
    for step in ("scaled", "published"):
        first, second = ({n: m.digest for n, m in getattr(run, step).parts.items()} for run in runs)
        assert first == second


# Scores


def test_scores_have_ours_and_every_rival_and_say_what_they_promise(walked):
    scores = scores_of(walked)
    of_all, n = scores["scores"], walked.held.facts["n_test"]
    is_class, in_rounds = "accuracy" in of_all["ours"], walked.config.model.in_rounds
    chief = "accuracy" if is_class else "mse"
    baselines = select_baselines(len(learned(walked).classes) if is_class else 0)
    assert of_all.keys() == {"ours", *baselines, *(() if in_rounds else ("public_only", "no_noise"))}
    assert scores["n_test"] == scores["n_test_all"] == n
    for key, one in of_all.items():
        assert one["interval"][0] <= one[chief] <= one["interval"][1]
        assert ("lead" in one) == (key != "ours")
        if key != "ours":
            lead = (one[chief] - of_all["ours"][chief]) * (-1 if is_class else 1)
            assert one["lead"][0] <= lead <= one["lead"][1]
            off = abs(sum(one["lead"]) / 2 - lead)  # a score interval is drawn towards 0, by few rows
            assert off < 4 / n if is_class else off <= 1e-7 * abs(lead)
        if is_class:
            assert one.keys() >= {"balanced_accuracy", "auc", "log_loss"}
            assert np.sum(one["confusion"]) == one["n"] - one["n_outside"]
    assert sum(b["n"] for b in scores.get("bins", ())) == (0 if is_class else n)
    assert len(scores["redraws"]) == (0 if in_rounds else walked.config.evaluation.redraws)
    # A tree that public rows decide answers all alike; `test_evaluate` has one of more rows.
    assert in_rounds or "kind" not in scores or len(set(scores["redraws"])) > 1


def test_a_file_is_scored_by_the_released_model_and_our_score_is_of_these_answers(walked, tmp_path):
    """On the held-back rows, whose labels all are known."""
    path = walked.store.file(walked.model["model"], "model.json")
    model, rows = load_model(path), tables.read(walked.store.files(walked.held["test"]))
    pq_rows = tmp_path / "rows.parquet"
    pl.from_arrow(rows).write_parquet(pq_rows, row_group_size=50)
    assert predict_file(path, pq_rows, tmp_path / "out.parquet") == rows.num_rows
    said, ours = pl.read_parquet(tmp_path / "out.parquet"), scores_of(walked)["scores"]["ours"]
    raw, label = tables.raw_matrix(rows, model.encoding), rows.column(walked.config.dataset.target)
    if "accuracy" in ours:
        is_right = said["prediction"].to_numpy() == np.array(label.to_pylist())
        assert ours["accuracy"] == pytest.approx(is_right.mean())
        shares = np.column_stack([said[f"probability of {name}"] for name in model.classes])
        np.testing.assert_array_equal(shares, model.predict_proba(raw))
        codes = np.array([[str(name) for name in model.classes].index(each) for each in label.to_pylist()])
        assert ours["log_loss"] == score(codes, shares).log_loss
    else:
        np.testing.assert_array_equal(said["prediction"].to_numpy(), model.predict(raw))
        error = said["prediction"].to_numpy() - label.to_numpy()
        assert ours["mse"] == pytest.approx(np.mean(error**2))
        assert ours["mae"] == pytest.approx(np.mean(np.abs(error)))


LARGE_BUDGETS = {
    "lpct": lambda room: rides_config(rides(room / "a.csv", 900, 1), privacy={"epsilon": 30.0}),
    "lpdt": lambda room: fares_config(
        fares(room / "a.csv", 1500, 2), privacy={"epsilon": 40.0, "mechanism": "grr"}
    ),
    "correction of a number": lambda room: mended(
        fares_config,
        fares(room / "a.csv", 900, 2),
        privacy={"epsilon": 40.0, "mechanism": "grr"},
        model={"depth": 1, "residual_range": 15.0},  # that nobody's error is clipped
    ),
}


@pytest.mark.parametrize("family", LARGE_BUDGETS)
def test_with_a_large_budget_the_noise_costs_nothing(tmp_path, family):
    run = Chain(Store(tmp_path / "work"), LARGE_BUDGETS[family](tmp_path))
    scores = scores_of(run)
    ours, exact = (scores["scores"][key] for key in ("ours", "no_noise"))
    if family == "lpct":
        assert ours["confusion"] == exact["confusion"]
        assert set(scores["redraws"]) == {ours["accuracy"]}
        return
    within = {"lpdt": 0.05}.get(family, 0.02)
    assert ours["mse"] == pytest.approx(exact["mse"], rel=within)
    assert scores["redraws"] == pytest.approx([exact["mse"]] * 3, rel=within)


@pytest.mark.parametrize(("write", "make"), [(rides, rides_config), (fares, fares_config)])
def test_caps_are_kept_and_said(tmp_path, write, make):
    caps = {"test_rows": 40, "private_rows": 50, "public_rows": 60, "redraws": 0}
    run = Chain(Store(tmp_path / "work"), make(write(tmp_path / "a.csv", 900, 1), evaluation=caps))
    scores, facts = scores_of(run), read_facts(run.store, run.page["page"])
    assert (scores["n_test"], scores["redraws"]) == (40, [])
    assert scores["n_test_all"] == run.held.facts["n_test"] > 40
    assert facts.scores.n == 40 < facts.n_test
    notes = {score.key: score.note for score in facts.scores.models}
    assert notes["public_tree"] == notes["public_forest"] == "fitted on 60 of 300 public rows"
    assert notes["non_private"] == f"fitted on about 50 of {run.held.facts['n_private']:,} private rows"


# Campaigns


CAMPAIGNS = {
    "lpct": (lambda path, seed: rides(path, 300, seed), rides_config, [{"estimator": "correction"}]),
    "lpdt": (lambda path, seed: fares(path, 600, seed), fares_config, [{"label_range": [0, 90]}]),
    "correction of a number": (
        lambda path, seed: fares(path, 600, seed),
        lambda *paths, **more: mended(fares_config, *paths, **more),
        [{"base": "boosting"}, {"residual_range": 3.0}],
    ),
    "correction of three classes": (
        lambda path, seed: rides(path, 600, seed, **paid_in_three_ways(600, seed)),
        lambda *paths, **more: mended(
            rides_config, *paths, **more | {"dataset": THREE | more.get("dataset", {})}
        ),
        [{"label_levels": 9}],
    ),
}
"""How rows are written, the configuration, and keys of the model, each of which is told where it is not the campaign's."""


@pytest.mark.parametrize("family", CAMPAIGNS)
def test_a_campaign_goes_on_with_what_it_published_and_takes_new_rows(tmp_path, family):
    write, make, others = CAMPAIGNS[family]
    paths = [write(tmp_path / f"{number}.csv", number) for number in (1, 2)]
    terms = {"campaign": {"name": "weekly"}, "evaluate": False}
    first = Chain(Store(tmp_path / "work"), make(paths[0], **terms))
    before = learned(first)
    later = Chain(first.store, make(*paths, **terms, dataset=NEW_PEOPLE))
    after = learned(later)
    assert later.protocol == first.protocol
    before_and_after = [read_encoding(run.store, run.scaled["encoding"])[0] for run in (first, later)]
    assert before_and_after[0] == before_and_after[1]
    assert (after.n_private, after.n_public) == (2 * before.n_private, 2 * before.n_public)
    assert later.scaled["scaled"].rows == after.n_public
    if "correction" in family:
        assert after.base.text == before.base.text
    for model in others:
        with pytest.raises(ProtocolMismatch, match=rf"model\.{next(iter(model))}"):
            assert Chain(first.store, make(paths[0], **terms, model=model)).named


def test_without_scores_there_is_no_simulation_and_the_page_is_the_curators(tmp_path):
    run = Chain(Store(tmp_path / "work"), rides_config(rides(tmp_path / "a.csv", 300, 1), evaluate=False))
    facts = read_facts(run.store, run.page["page"])
    assert (run.page["page"].zone, facts.scores) == ("curator", None)
    assert not list(run.store.zone("simulation").rglob("*"))
