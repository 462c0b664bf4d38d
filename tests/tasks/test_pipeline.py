"""What every run promises whatever its family: seven configurations walked plainly, then looked at and walked again."""

from __future__ import annotations

import shutil

import pytest
from chain import fares, fares_config, mended, rides, rides_config, scores_of, shells, shells_config
from first_fast import first_fast

from flows.executors import CachedOnly, InlineExecutor, Pending
from flows.pipeline import Pipeline
from storage.store import Store

CURATORS = ("partition", "add", "aggregate", "prune")
PAPER = {"prune": "paper"}
RUNS = {
    "lpct": lambda room: rides_config(rides(room / "a.csv", 600, 1)),
    "lpct, Algorithm 2": lambda room: rides_config(rides(room / "a.csv", 600, 1), model=PAPER),
    "lpdt": lambda room: fares_config(fares(room / "a.csv", 600, 1)),
    "correction": lambda room: mended(rides_config, rides(room / "a.csv", 600, 1)),
    "correction, three classes": lambda room: mended(
        rides_config,
        rides(room / "a.csv", 600, 1),
        dataset={"target": "firm", "positive": None, "classes": ["ash", "birch", "cedar"]},
    ),
    "public_features": lambda room: shells_config(shells(room / "a.parquet", 600, 1)),
    "histoftree": lambda room: shells_config(
        shells(room / "a.parquet", 600, 1), model={"estimator": "histoftree"}
    ),
}


@pytest.fixture(scope="module", params=first_fast(*RUNS, fast=RUNS.keys() - {"correction, three classes"}))
def walked(request, tmp_path_factory):
    """A finished run. Only to be read."""
    room = tmp_path_factory.mktemp("walked")
    store = Store(room / "work")
    run = Pipeline(store=store, config=RUNS[request.param](room), executor=InlineExecutor(store))
    run.walk()
    return run


class WithoutHolders(Pipeline):
    """The curator's half of a run: what holders did and sent is given, all else is asked for again."""

    def with_answers_of(self, run):
        self.before = run.conversation
        for name in ("terms", "raw", "ingested", "held", "shown")[: 5 if run.config.model.in_rounds else 4]:
            self.__dict__[name] = getattr(run, name)
        return self

    def charge(self, asked, before):
        return self.before.spent

    def answer(self, asked):
        return self.before.rounds[asked.number - 1].reports


def digests(run):
    return [(record.step, part, one.digest) for record in run.records for part, one in record.parts.items()]


def test_a_run_walked_again_finds_every_step_and_spends_nothing_more(walked):
    before = sorted(walked.store.root.rglob("*"))
    again = Pipeline(store=walked.store, config=walked.config, executor=InlineExecutor(walked.store))
    again.walk()
    assert digests(again) == digests(walked)
    assert again.conversation.spent == walked.conversation.spent
    assert sorted(walked.store.root.rglob("*")) == before


def test_the_same_seeds_learn_and_score_the_same_in_another_folder(walked, tmp_path):
    """With other holders' secrets, and so with other keys."""
    store = Store(tmp_path / "elsewhere")
    again = Pipeline(store=store, config=walked.config, executor=InlineExecutor(store))
    again.walk()
    assert scores_of(again) == scores_of(walked)
    assert again.model["model"].digest == walked.model["model"].digest


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
