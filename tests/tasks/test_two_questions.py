"""A correction whose holders are asked apart: some along which column the public model is wrong, the others in each cell."""

import json
import math
import re
from dataclasses import replace

import duckdb
import numpy as np
import polars as pl
import pyarrow.parquet as pq
import pytest
from chain import Chain, Copying, rides_config
from page_truth.artifacts import Run
from page_truth.reading import read
from page_truth.statements import check

from flows.finish import finish
from flows.pipeline import Pipeline
from ldptree import CorrectionClassifier, CorrectionRegressor
from ldptree.encoding import CategoricalFeature
from ldptree.errors import BudgetError, ConfigError
from ldptree.families.contrasts import SHARE
from ldptree.protocol.ledger import Ledger
from storage.store import Store
from tasks.artifacts import read_model, read_protocol

N, D = 6000, 4


def blind(n=N, seed=1, *, is_number=False):
    """Labels by column 0; of private people also by column 3, which public labels do not depend on."""
    rng = np.random.default_rng(seed)
    X, public = rng.random((n, D)).round(4), np.arange(n) % 5 == 0
    mean = 2 * X[:, 0] + np.where(public, 0.0, 1.2 * np.sign(X[:, 3] - 0.5))
    y = mean + rng.normal(0, 0.5, n) if is_number else (rng.random(n) < 1 / (1 + np.exp(2 - 2 * mean))) * 1
    return X, y, public


def written(path, **columns):
    X, y, public = blind()
    table = {f"x{j}": X[:, j] for j in range(D)}
    paid, zone = np.where(y, "card", "cash"), np.where(public, "open", "closed")
    pl.DataFrame(table | {"paid": paid, "zone": zone} | columns).write_csv(path)
    return path


def two_questions(path, work, **changes):
    changes = {"privacy": {"epsilon": 4.0}} | changes
    model = {"estimator": "correction", "depth": "auto", "base": "forest"} | changes.pop("model", {})
    config = rides_config(path, dataset={"drop": []}, model=model, **changes)
    store = Store(work)
    return Pipeline(store=store, config=config, executor=Copying(store))


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    folder = tmp_path_factory.mktemp("two")
    run = two_questions(written(folder / "rows.csv"), folder / "work")
    run.walk()
    return run


def protocols(run):
    return [read_protocol(run.store, one.question()) for one in run.conversation.whole]


# Who is asked what


@pytest.mark.parametrize("n", [1, 2, 7, 1000, 1003])
def test_every_holder_is_asked_exactly_one_of_two_questions_whoever_they_are(done, n):
    asked = [protocol.respondents(n) for protocol in protocols(done)]
    assert [protocol.count_respondents(n) for protocol in protocols(done)] == [who.size for who in asked]
    assert sorted(np.concatenate(asked).tolist()) == list(range(n))
    assert abs(asked[0].size - n * SHARE / 1000) <= 1


def test_a_run_asks_parts_of_its_holders_apart_and_each_file_of_reports_has_those(done):
    first, second = protocols(done)
    assert (first.asked, second.asked) == ((0, SHARE), (SHARE, 1000))
    assert len(first.base.contrasts) == D + math.comb(D, 2)
    n = done.held.facts["n_private"]
    found = [sum(report["reports"].rows for report in one.reports) for one in done.conversation.whole]
    assert sum(found) == n
    assert abs(found[0] - n * SHARE / 1000) <= len(done.respondents.shards)
    for one, protocol in zip(done.conversation.whole, (first, second), strict=True):
        for report in one.reports:
            (path,) = done.store.files(report["reports"])
            table = pq.read_table(path)
            assert table.num_rows == report["reports"].rows
            assert set(table.column_names) == ({"value", "output"} if protocol is first else {"value"}) or (
                set(table.column_names) == ({"bits", "output"} if protocol is first else {"bits"})
            )


def test_the_column_that_public_labels_do_not_depend_on_is_cut_above_the_tree(done):
    _, second = protocols(done)
    assert done.ingested.facts["features"][second.partition.feature[0]] == "x3"
    scores = json.loads(done.store.file(done.scores["scores"], "scores.json").read_bytes())["scores"]
    assert scores["ours"]["accuracy"] > scores["public_only"]["accuracy"] + 0.05
    assert read_model(done.store, done.model["model"]).n_private == done.held.facts["n_private"]


def test_the_page_says_how_many_were_asked_what_and_that_each_spent_epsilon_once(done):
    html = done.store.file(done.page["page"], "page.html").read_text(encoding="utf-8")
    answers = read(html).first("dl", "answers").text
    n_first = sum(report["reports"].rows for report in done.conversation.whole[0].reports)
    n, k = done.held.facts["n_private"], protocols(done)[0].k
    assert (
        f"{n_first:,} rows sent how far the public model is off, along one of 4 columns or 6 pairs of them that a coin picks "
        f"(the choice reveals nothing): {k} possible messages" in answers
    )
    assert f"{n - n_first:,} rows sent their group, one of" in answers
    assert len(re.findall(r"the true one with probability 0\.\d+, any other with 0\.\d+", answers)) == 2
    assert "ε = 4 each, once" in read(html).first("ul", "parts").text


def test_a_category_is_one_column_whatever_it_is_encoded_as(done):
    first = protocols(done)[0]
    twice = tuple(cut._replace(feature=min(cut.feature, 1)) for cut in first.base.contrasts[:D])
    halves = (CategoricalFeature("a", ("x", "y")), CategoricalFeature("b", ("u", "v")))
    encoding = replace(first.encoding, features=halves)
    assert [one.describe().figures["columns"] for one in (first, replace(first, encoding=encoding))] == [4, 2]
    assert replace(first, base=replace(first.base, contrasts=twice)).describe().figures["columns"] == 2


@pytest.mark.slow
def test_every_statement_of_the_page_is_so(done):
    assert check(Run(Chain(done.store, done.config))) == []


def test_the_warehouse_has_the_reports_of_both_questions(done):
    finish(done)
    with duckdb.connect(str(done.store.zone("curator") / "warehouse.duckdb"), read_only=True) as warehouse:
        (n,) = warehouse.execute("SELECT sum(holders) FROM reports_per_shard").fetchone()
        (n_runs, stated) = warehouse.execute("SELECT count(*), max(n_private) FROM runs").fetchone()
    assert (n_runs, n) == (1, done.held.facts["n_private"])
    assert stated == n


# What it costs


def test_a_release_charges_everybody_once_before_the_first_question_and_goes_on_where_it_stopped(
    tmp_path, monkeypatch
):
    """The public model is that of the first question: it is not fitted again."""
    run = two_questions(
        written(tmp_path / "rows.csv"), tmp_path / "work", simulation={"noise_seed": None}, evaluate=False
    )
    asked = run.ask([])
    spent = run.respondents.charge(asked, None)
    assert (spent.largest, spent.questions) == (4.0, 1)
    run.respondents.answer(asked)  # and stops here
    monkeypatch.setattr("ldptree.families.correction.fit_public", None)
    again = two_questions(
        tmp_path / "rows.csv", tmp_path / "work", simulation={"noise_seed": None}, evaluate=False
    )
    again.walk()
    assert (again.conversation.spent.largest, again.conversation.spent.questions) == (4.0, 1)
    assert len(again.conversation.whole) == 2
    once_more = two_questions(
        tmp_path / "rows.csv", tmp_path / "work", simulation={"noise_seed": None}, evaluate=False
    )
    once_more.walk()
    assert once_more.model == again.model
    assert once_more.conversation.spent == again.conversation.spent
    other = two_questions(
        tmp_path / "rows.csv",
        tmp_path / "work",
        simulation={"noise_seed": None},
        evaluate=False,
        model={"questions": 1},
        privacy={"epsilon": 4.0, "lifetime_epsilon": 4.0},
    )
    monkeypatch.undo()
    with pytest.raises(BudgetError):
        other.walk()


def test_a_campaign_asks_one_question(tmp_path):
    path = written(tmp_path / "rows.csv")
    run = two_questions(path, tmp_path / "work", campaign={"name": "weekly"}, evaluate=False)
    run.walk()
    (only,) = protocols(run)
    assert only.asks_everybody
    with pytest.raises(ConfigError, match=r"model\.questions: a campaign publishes one question"):
        two_questions(path, tmp_path / "work", campaign={"name": "weekly"}, model={"questions": 2})


# What is asked


@pytest.mark.parametrize("estimator", [CorrectionClassifier, CorrectionRegressor])
def test_where_noise_hides_any_column_everybody_is_asked_about_cells(estimator):
    X, y, public = blind(is_number=estimator is CorrectionRegressor)
    fits = {
        epsilon: estimator(epsilon, base="forest", random_state=1).fit(X, y, public=public)
        for epsilon in (0.1, 4.0)
    }
    assert {epsilon: len(fit.protocols_) for epsilon, fit in fits.items()} == {0.1: 1, 4.0: 2}
    plain = estimator(4.0, base="forest", questions=1, random_state=1).fit(X, y, public=public)
    assert plain.protocols_[0].asks_everybody
    aware = fits[4.0]
    assert aware.score(X[~public], y[~public]) > plain.score(X[~public], y[~public]) + 0.04
    assert Ledger(entries=aware.ledger_.entries).largest_spend().epsilon == 4.0


def test_two_questions_that_cannot_be_asked_are_refused_with_the_reason():
    X, y, public = blind(600)
    with pytest.raises(ConfigError, match=r'questions = 2: base "tree" has the cells of its own tree'):
        CorrectionClassifier(base="tree", questions=2).fit(X, y, public=public)
    with pytest.raises(ConfigError, match="questions must be 'auto', 1 or 2"):
        CorrectionClassifier(questions=3).fit(X, y, public=public)
