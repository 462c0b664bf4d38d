"""The steps of a run whose label is a number: what each leaves, what it refuses, and that private labels stay where they are."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from chain import NEW_PEOPLE, Chain, fares, fares_config, published, scores_of
from page_truth.reading import read

from flows.finish import stop_where_failed
from ldptree.baselines import select_baselines
from ldptree.errors import ConfigError, DataError, ProtocolMismatch
from ldptree.estimators import LPDTRegressor
from ldptree.families.tree_fit import fit_regression
from ldptree.families.tree_public import PublicLabels
from ldptree.mechanisms import CHOICES
from storage import tables
from storage.store import Store
from tasks.artifacts import read_evidence, read_model, read_protocol
from tasks.page import findings, summary
from tasks.page.render import render
from tasks.perturb import values_of
from tasks.predict import load_model, predict_file
from tasks.report import read_facts

ONE_OF_EACH_FORM = ("oue", "laplace", "discrete_laplace", "randomized_response", "signed_subset")
PLAIN = {"dataset": {"drop": ["person", "firm"], "missing": "drop"}}


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    """A scored run on 1,500 fares, 1,000 of them private, to be read and copied."""
    folder = tmp_path_factory.mktemp("fares")
    chain = Chain(Store(folder / "work"), fares_config(fares(folder / "a.csv", 1500, 1)))
    assert chain.page
    return chain


@pytest.fixture
def run(tmp_path):
    """Columns of `fares` to replace, and changes of the configuration, to a run on 600 of them."""

    def run(name="work", columns=None, n=600, path=None, **changes):
        path = path or fares(tmp_path / "a.csv", n, 2, **(columns or {}))
        return Chain(Store(tmp_path / name), fares_config(path, **changes))

    return run


# Rows


def test_a_label_is_kept_as_a_number_though_public_ones_are_whole(run):
    paid = np.where(np.arange(600) % 3 == 0, "7", "7.5").tolist()
    paid[0] = "9"
    chain = run(columns={"paid": paid})
    assert ["paid", "number", "double"] in chain.ingested.facts["columns"]
    assert all(check.ok for check in read_checks_of(chain))


def read_checks_of(chain):
    from tasks.report import read_checks

    return read_checks(chain.store, chain.checked["checks"])


def test_a_suite_asks_of_a_label_that_it_is_known_and_nothing_of_its_size(base):
    suite = json.loads(base.store.file(base.checked["checks"], "suite.json").read_text())
    about = [e["expectation"] for e in suite["expectations"] if e.get("column") == "paid"]
    assert about == ["read"]


def test_a_declared_range_of_the_label_is_an_expectation_like_any_other(run):
    chain = run(dataset={"ranges": {"paid": [0, 20]}})
    checks = {(c.zone, c.name): c.ok for c in read_checks_of(chain)}
    assert checks["public", "paid is between 0 and 20"] is False
    assert all(c.detail == "" for c in read_checks_of(chain) if c.zone == "private")


@pytest.mark.parametrize("value", ["CANARY", "12,50 $", "inf", "true"])
def test_a_label_that_is_no_number_is_refused_with_file_and_column(run, value):
    paid = ["5", "6", "7", "8"] * 150
    paid[3] = f'"{value}"'
    with pytest.raises(DataError) as fault:
        assert run(columns={"paid": paid}).ingested
    message = str(fault.value)
    assert message.startswith('a.csv, column "paid": not a number in ')
    assert "choose another dataset.target" in message
    assert "a text" not in message
    assert value in message
    assert fault.value.exit_code == 3


@pytest.mark.parametrize("value", ["", "CANARY"])
def test_a_private_label_that_is_none_reports_outside_and_stops_a_trial_unless_put_aside(run, value):
    paid = ["5", "6", "7", "8"] * 150
    paid[4] = value
    chain = run(columns={"paid": paid})
    with pytest.raises(
        DataError, match="not in all private rows: every row can be read, and paid is never missing"
    ):
        stop_where_failed(chain)
    chain = run("other", columns={"paid": paid}, dataset={"on_bad_rows": "quarantine"})
    stop_where_failed(chain)
    assert chain.ingested["private"].rows == 400
    assert chain.ingested.facts["bad_public"] == 0
    protocol = published(chain)
    values = np.concatenate([values_of(path, protocol) for path in chain.store.files(chain.held["train"])])
    assert np.count_nonzero(values == protocol.mechanism.n_values - 1) == 1


def test_true_and_false_of_a_parquet_are_no_numbers(run, tmp_path):
    frame = pl.read_csv(fares(tmp_path / "a.csv", 60, 1)).with_columns(paid=pl.col("hour") > 10)
    frame.write_parquet(tmp_path / "a.parquet")
    with pytest.raises(
        DataError, match=r'a\.parquet, column "paid" \(the target\): true and false are not numbers'
    ):
        assert run(path=tmp_path / "a.parquet").ingested


def test_numbers_written_as_texts_in_a_parquet_are_numbers(run, tmp_path):
    frame = pl.read_csv(fares(tmp_path / "a.csv", 300, 1))
    for name, column in (("numbers", pl.col("paid")), ("texts", pl.col("paid").cast(pl.String))):
        frame.with_columns(paid=column).write_parquet(tmp_path / f"{name}.parquet")
    one, other = (
        run(n, path=tmp_path / f"{n}.parquet").published["question"].digest for n in ("numbers", "texts")
    )
    assert one == other


def test_a_target_that_is_not_there_is_told_once(run):
    with pytest.raises(
        DataError,
        match=r'dataset\.target: no column "pay" \(did you mean .paid.|dataset\.target: no column "pay"',
    ) as fault:
        assert run(dataset={"target": "pay"}).ingested
    assert str(fault.value).count("no column") == 1


# The range of the label


def test_the_range_is_that_of_the_public_labels(base):
    public = tables.read([p for p in base.store.files(base.ingested["public"]) if p.suffix == ".parquet"])
    y = public.column("paid").to_numpy()
    assert base.scaled.facts["label_range"] == [y.min(), y.max()]
    assert read_protocol(base.store, base.protocol).label_range == (y.min(), y.max())


def test_a_range_that_is_given_holds(run):
    chain = run(model={"label_range": [0, 100]})
    assert read_protocol(chain.store, chain.protocol).label_range == (0, 100)
    assert read_model(chain.store, chain.model["model"]).label.range == (0, 100)


def test_a_range_that_does_not_cover_the_public_labels_is_refused_before_anybody_is_asked(run):
    chain = run(model={"label_range": [10, 20]})
    with pytest.raises(
        ConfigError, match=r"model\.label_range \(10, 20\) does not cover the public labels.*widen it"
    ):
        assert chain.scaled
    assert not (chain.store.zone("curator") / "reports").exists()


def test_public_labels_that_are_all_equal_give_no_range(run):
    paid = np.where(np.arange(600) % 3 == 0, 5, np.arange(600)).tolist()
    miles = np.where(np.arange(600) == 0, "", "3.5").tolist()
    paid[0] = 6  # the one public row that differs lacks a feature
    chain = run(columns={"paid": paid, "miles": miles}, dataset={"missing": "drop"})
    with pytest.raises(DataError, match='target "paid": the public rows have one label only, 5'):
        assert chain.scaled


def test_no_private_label_moves_anything_the_curator_publishes(run, tmp_path):
    """Only their number and the features of private rows differ in what two curators see before reports come in."""
    rows = pl.read_csv(fares(tmp_path / "a.csv", 600, 2))
    wild = rows.with_columns(
        paid=pl.when(pl.col("zone") == "open").then("paid").otherwise(pl.col("paid") * 1e6)
    )
    wild.write_csv(tmp_path / "wild.csv")
    plain, other = run("plain"), run("wild", path=tmp_path / "wild.csv")
    for step in ("scaled", "published"):
        parts = [{n: m.digest for n, m in getattr(c, step).parts.items()} for c in (plain, other)]
        assert parts[0] == parts[1]


# The tree and the reports


@pytest.mark.parametrize("floor", [5, 60])  # deep as public rows, or as private ones carry
def test_the_protocol_is_that_of_the_estimator_with_the_same_rows(run, floor):
    chain = run(model={"depth": "auto", "min_samples_leaf": floor}, evaluate=False, **PLAIN)
    rows = pl.read_csv(chain.config.dataset.path[0])
    X, y = rows.select("miles", "hour").to_numpy().astype(float), rows["paid"].to_numpy()
    alone = LPDTRegressor(2.0, min_samples_leaf=floor, random_state=1).fit(
        X, y, public=(rows["zone"] == "open").to_numpy()
    )
    published = read_protocol(chain.store, chain.protocol)
    assert published.partition.to_json() == alone.partition_.to_json()
    assert published.mechanism == alone.mechanism_
    assert published.classes == alone.protocol_.classes
    model = fit_regression(
        published,
        alone.totals_,
        PublicLabels.from_json(read_evidence(chain.store, chain.published["evidence"])),
    )
    np.testing.assert_array_equal(model.estimate, alone.model_.estimate)
    np.testing.assert_array_equal(model.estimate_sd, alone.model_.estimate_sd)


@pytest.mark.parametrize(
    ("mechanism", "form"),
    [
        *(
            (m, "reports") if m in ONE_OF_EACH_FORM else pytest.param(m, "reports", marks=pytest.mark.slow)
            for m in CHOICES[1:]
        ),
        ("grr", "totals"),
        ("laplace", "totals"),
    ],
)
def test_every_mechanism_learns_from_reports_and_from_drawn_totals(run, mechanism, form):
    """At epsilon 16 and in one cell, 400 labels have a mean known to a tenth of their range (5 standard deviations or more)."""
    limit = {"reports": 2**31, "totals": 0}[form]
    chain = run(
        privacy={"epsilon": 16.0, "mechanism": mechanism, "max_report_bytes": limit},
        model={"depth": 0, "lam": 0.0, "prune": "none"},
        evaluate=False,
    )
    model = read_model(chain.store, chain.model["model"])
    assert not model.classes
    (path,) = chain.store.files(chain.reports[0]["reports"])
    assert pq.read_schema(path).metadata[b"form"].decode() == form
    private = pl.read_csv(chain.config.dataset.path[0]).filter(pl.col("zone") == "closed")["paid"]
    low, high = model.label.range
    assert model.estimate[:, 0][0] == pytest.approx(private.clip(low, high).mean(), abs=0.1 * (high - low))


@pytest.mark.parametrize(
    "mechanism",
    [
        "randomized_response",
        "laplace",
        "discrete_laplace",
        pytest.param("signed_subset", marks=pytest.mark.slow),
    ],
)
def test_the_page_of_every_kind_of_noise_says_what_was_sent(run, mechanism):
    chain = run(privacy={"epsilon": 4.0, "mechanism": mechanism}, model={"depth": 2}, evaluate=False)
    facts = read_facts(chain.store, chain.page["page"])
    named = {"randomized_response": "number_response", "laplace": "number_laplace"}.get(mechanism, mechanism)
    privacy, (asked,) = facts.privacy, facts.privacy.asked
    assert privacy.mechanism == asked.question.mechanism == named
    assert privacy.epsilon_exact <= privacy.epsilon == 4.0
    assert ("label_noise_sd" in asked.question.figures) == (
        mechanism not in ("discrete_laplace", "signed_subset")
    )
    assert (privacy.influence.push is None) == (mechanism == "laplace")  # without bound


@pytest.mark.parametrize(
    "model",
    [
        {"partition": "max-edge"},
        {"partition": "random-edge"},
        {"lam": 0.0, "prune": "none", "rule": "ratio"},
        {"lam": "auto", "prune": "fallback"},
        {"lam": float("inf")},
        {"depth": 0},
        {"rho": 0.3},
    ],
)
def test_every_variant_of_the_estimator_runs(run, model):
    mechanism = "randomized_response" if "rho" in model or model.get("rule") == "ratio" else "auto"
    chain = run(model=model, privacy={"epsilon": 4.0, "mechanism": mechanism}, evaluate=False)
    learned = read_model(chain.store, chain.model["model"])
    assert learned.prune == model.get("prune", "smooth")
    assert np.isfinite(learned.estimate[:, 0]).all()


def test_another_seed_rounds_and_randomises_otherwise(run):
    one, other = (
        run(name, simulation={"noise_seed": seed}, evaluate=False) for name, seed in (("one", 1), ("two", 2))
    )
    assert one.published["question"].digest == other.published["question"].digest
    assert one.totals["totals"].digest != other.totals["totals"].digest


def test_a_campaign_goes_on_with_its_protocol_and_takes_new_public_rows(run, tmp_path):
    names = [fares(tmp_path / f"{k}.csv", 600, k) for k in (1, 2)]
    first = Chain(Store(tmp_path / "work"), fares_config(names[0], campaign={"name": "fares"}))
    assert first.model
    later = Chain(first.store, fares_config(*names, campaign={"name": "fares"}, dataset=NEW_PEOPLE))
    assert later.protocol == first.protocol
    model, before = (read_model(c.store, c.model["model"]) for c in (later, first))
    assert model.n_private > before.n_private
    assert (model.n_public, before.n_public) == (400, 200)
    with pytest.raises(ProtocolMismatch, match=r"model\.label_range"):
        assert Chain(
            first.store, fares_config(*names, campaign={"name": "fares"}, model={"label_range": [0, 90]})
        ).named


# Scores, pages and what a user does with a model


def test_scores_have_every_rival_and_say_what_they_promise(base):
    scores = scores_of(base)
    assert scores["kind"] == "regression"
    assert scores["scores"].keys() == {"ours", "public_only", "no_noise", *select_baselines(0)}
    assert len(scores["redraws"]) == base.config.evaluation.redraws
    assert len(set(scores["redraws"])) > 1
    assert sum(b["n"] for b in scores["bins"]) == scores["n_test"] == base.held.facts["n_test"]
    ours = scores["scores"]["ours"]
    for key, one in scores["scores"].items():
        assert one["interval"][0] <= one["mse"] <= one["interval"][1]
        if key != "ours":
            assert sum(one["lead"]) / 2 == pytest.approx(one["mse"] - ours["mse"])
    assert scores["scores"]["non_private"]["mse"] < ours["mse"] < scores["scores"]["constant"]["mse"]


def test_our_score_is_that_of_the_released_model_on_the_held_back_rows(base):
    model = read_model(base.store, base.model["model"])
    rows = tables.read(base.store.files(base.held["test"]))
    error = model.predict(tables.raw_matrix(rows, model.encoding)) - rows.column("paid").to_numpy()
    ours = scores_of(base)["scores"]["ours"]
    assert ours["mse"] == pytest.approx(np.mean(error**2))
    assert ours["mae"] == pytest.approx(np.mean(np.abs(error)))


def test_with_a_large_budget_the_noise_costs_nothing(run):
    scores = scores_of(run(privacy={"epsilon": 40.0, "mechanism": "grr"}, n=1500))
    ours, exact = (scores["scores"][key]["mse"] for key in ("ours", "no_noise"))
    assert ours == pytest.approx(exact, rel=0.05)
    assert scores["redraws"] == pytest.approx([exact] * 3, rel=0.05)


def test_caps_are_kept_and_said(run):
    chain = run(n=900, evaluation={"test_rows": 40, "private_rows": 50, "public_rows": 60, "redraws": 0})
    scores = scores_of(chain)
    assert (scores["n_test"], scores["redraws"]) == (40, [])
    assert scores["n_test_all"] == chain.held.facts["n_test"] > 40
    facts = read_facts(chain.store, chain.page["page"])
    notes = {score.key: score.note for score in facts.scores.models}
    assert notes["public_tree"] == notes["public_forest"] == "fitted on 60 of 300 public rows"
    n_private = chain.held.facts["n_private"]
    assert notes["non_private"] == f"fitted on about 50 of {n_private:,} private rows"
    assert facts.scores.n == 40 < facts.n_test


def test_the_page_is_of_a_number_and_says_its_scores(base):
    facts = read_facts(base.store, base.page["page"])
    assert facts.model.figure == "number"
    assert facts.scores.ours.metrics == pytest.approx(
        {k: scores_of(base)["scores"]["ours"][k] for k in ("mse", "mae", "r2")}
    )
    assert (facts.unit, facts.n_cells) == ("$", len(facts.model.cells))
    assert facts.scores.bins
    page = base.store.file(base.page["page"], "report.html").read_text()
    assert "paid" in page


def test_a_file_is_scored_with_numbers_and_their_intervals(base, tmp_path):
    model = load_model(base.store.file(base.model["model"], "model.json"))
    rows = tables.read(base.store.files(base.held["test"]))
    pq.write_table(rows, tmp_path / "rows.parquet", row_group_size=50)
    n = predict_file(
        base.store.file(base.model["model"], "model.json"),
        tmp_path / "rows.parquet",
        tmp_path / "out.parquet",
    )
    said = pq.read_table(tmp_path / "out.parquet")
    assert n == rows.num_rows == said.num_rows
    assert said.schema.names == ["prediction", "mean_lower", "mean_upper"]
    raw = tables.raw_matrix(rows, model.encoding)
    np.testing.assert_array_equal(said.column("prediction").to_numpy(), model.predict(raw))
    low, high = (end[model.nodes(raw), 0] for end in model.interval(0.9))
    np.testing.assert_array_equal(said.column("mean_lower").to_numpy(), low)
    np.testing.assert_array_equal(said.column("mean_upper").to_numpy(), high)
    changed = rows.set_column(0, "miles", pa.array(["far"] * rows.num_rows))
    pq.write_table(changed, tmp_path / "rows.parquet")
    with pytest.raises(DataError, match="another type"):
        predict_file(
            base.store.file(base.model["model"], "model.json"),
            tmp_path / "rows.parquet",
            tmp_path / "x.parquet",
        )


def test_the_page_tells_of_the_parts_of_cells_that_reports_were_asked_about(run):
    chain = run(n=900, model={"depth": "auto", "min_samples_leaf": 5}, evaluate=False, **PLAIN)
    facts = read_facts(chain.store, chain.page["page"])
    learned = read_model(chain.store, chain.model["model"])
    asked = read_protocol(chain.store, chain.protocol).partition
    assert facts.n_cells == asked.n_leaves < learned.partition.n_leaves == len(facts.model.cells)
    assert sum(cell.share for cell in facts.model.cells) == pytest.approx(1.0, rel=0.01)
    said = {one.key: one.text for one in (summary.people(facts), *findings.tabulate_cells(facts).notes)}
    assert f"{asked.n_leaves} groups of {learned.partition.n_leaves} kinds" in said["kinds of groups"]
    assert "shared out" in said
    found = replace(facts, description=replace(facts.model, is_found=True))
    assert "groups" in [one.key for one in summary.lead(found)]
    page = read(render(facts))
    folded = [one for one in page.every("details") if "along its strongest columns" in one.text]
    assert len(folded) == 1, "a tree of groups has as many words as an open page may have"
