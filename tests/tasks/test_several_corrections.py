"""A run that mends a public model of more than two classes: one question, of which each holder draws the class it is about."""

from __future__ import annotations

import json

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from chain import NEW_PEOPLE, Chain, learned, mended, published, rides, rides_config, scores_of
from page_truth.reading import read
from scipy.stats import chi2

from ldptree.errors import ConfigError, DataError, ProtocolMismatch
from ldptree.estimators import CorrectionClassifier
from ldptree.families.correction import fit_corrected
from ldptree.families.corrections import ResidualEstimates, correct
from ldptree.metrics.classes import score
from ldptree.models.corrected import shares_of
from ldptree.models.export.corrected_sql import TOLERANCE
from ldptree.protocol.protocol import Protocol
from storage import tables
from storage.store import Store
from tasks.answers.add import add
from tasks.artifacts import read_public, read_totals
from tasks.perturb import manifest_of
from tasks.predict import predict_file
from tasks.report import read_facts
from tasks.scoring.held_back import read_rows

CLASSES = ["app", "card", "cash"]
DECLARED = {"dataset": {"positive": None, "classes": CLASSES}}


def paid(n, seed, share=0.45):
    """Long rides are paid by card; where the zone is closed, `share` of all pay by app instead."""
    rng = np.random.default_rng(seed)
    miles, is_closed = rng.gamma(2.0, 3.0, n), np.arange(n) % 3 != 0
    toss = rng.random(n)
    card = np.where(miles > 6, 0.7, 0.2)
    found = np.where(toss < card, "card", np.where(toss < card + 0.5 * (1 - card), "cash", "app"))
    found = np.where(is_closed & (rng.random(n) < share), "app", found)
    return {"miles": miles.round(2), "paid": found}


@pytest.fixture
def run(tmp_path):
    """Columns to replace, and changes of the configuration, to a run on 600 such rides."""

    def run(name="work", columns=None, n=600, path=None, seed=2, **changes):
        path = path or rides(tmp_path / f"{name}.csv", n, seed, **(paid(n, seed) | (columns or {})))
        dataset = DECLARED["dataset"] | changes.pop("dataset", {})
        return Chain(Store(tmp_path / name), mended(rides_config, path, dataset=dataset, **changes))

    return run


@pytest.fixture(scope="module")
def scored(tmp_path_factory):
    """A scored run on 1,200 rides, to be read and copied."""
    folder = tmp_path_factory.mktemp("rides")
    path = rides(folder / "a.csv", 1200, 1, **paid(1200, 1, share=0.35))
    changes = {"privacy": {"epsilon": 4.0}, "evaluation": {"redraws": 5}, "model": {"depth": 2}}
    chain = Chain(Store(folder / "work"), mended(rides_config, path, **DECLARED, **changes))
    assert chain.page
    return chain


def totals_of(chain):
    return read_totals(chain.store, chain.totals["totals"], published(chain))


def private(chain, part="train"):
    """Raw rows, labels, cells and the true residuals [n, 3]."""
    asked = published(chain)
    rows = read_rows(chain.store.files(chain.held[part]), asked)
    return rows, asked.cells(rows.raw), asked.base.all_residuals(asked.encoding, rows.raw, rows.labels)


# One question


def test_there_is_one_question_and_everybody_is_charged_for_it_once(scored, run):
    asked, model = published(scored), learned(scored)
    assert (asked.base.output, asked.n_outputs, asked.label_classes) == ("drawn", 3, tuple(CLASSES))
    assert model.protocol_digests == (asked.digest,)
    assert asked.epsilon == 4.0
    release = run(release=True, privacy={"epsilon": 4.0}).spent
    assert (release.largest, release.questions) == (4.0, 1)
    assert model.n_private == scored.held.facts["n_private"] == sum(t.n_private for t in totals_of(scored))
    assert model.classes == tuple(CLASSES)


def test_each_report_names_its_class_and_adds_up_there_alone(scored):
    asked, store = published(scored), scored.store
    tables_ = [pq.read_table(path) for r in scored.reports for path in store.files(r["reports"])]
    assert all(table.column_names[1] == "output" for table in tables_)
    outputs = np.concatenate([table.column("output").to_numpy() for table in tables_])
    found = totals_of(scored)
    assert [t.n_private for t in found] == np.bincount(outputs, minlength=3).tolist()
    raw = pq.read_table(store.file(scored.totals["totals"], "raw.parquet"))
    for output in range(3):
        mine = pl.from_arrow(raw).filter(pl.col("output") == output)["raw"].to_numpy()
        by_hand = asked.mechanism.no_reports()
        for table in tables_:
            (column,) = (table.column(0).filter(pa.array(table.column("output").to_numpy() == output)),)
            reports = (
                column.to_numpy()
                if column.type == pa.uint32()
                else asked.mechanism.unpack(
                    np.frombuffer(b"".join(column.to_pylist()), np.uint8).reshape(len(column), -1)
                )
            )
            by_hand = by_hand + asked.mechanism.aggregate(reports)
        assert mine.tolist() == by_hand.tolist()
    by_cell = pl.from_arrow(pq.read_table(store.file(scored.totals["totals"], "totals.parquet")))
    by_node = pl.from_arrow(pq.read_table(store.file(scored.totals["totals"], "cells.parquet")))
    for output, totals in enumerate(found):
        cells = by_cell.filter(pl.col("output") == output)
        assert cells["unbiased"].to_numpy() == pytest.approx(totals.counts.ravel())
        root = by_node.filter((pl.col("output") == output) & (pl.col("node") == 0))
        assert root["unbiased"].to_numpy() == pytest.approx(totals.counts.sum(axis=0))


def test_the_page_says_that_the_class_of_a_report_is_drawn_apart_from_the_row_and_travels_in_the_clear(
    scored,
):
    html = scored.store.file(scored.page["page"], "report.html").read_text(encoding="utf-8")
    said = read(html).first("dl", "facts").text
    assert "A coin, not the row, draws the class; sent in the clear, it tells nothing." in said


@pytest.mark.parametrize(("mechanism", "form"), [("grr", "reports"), ("oue", "reports"), ("olh", "totals")])
def test_every_form_of_reports_says_how_wrong_the_model_is_about_each_class(run, mechanism, form):
    """At eps 16, of about 130 people a class: known to a tenth of the range, over three standard errors of whom they are."""
    limit = {"reports": 2**31, "totals": 0}[form]
    chain = run(
        privacy={"epsilon": 16.0, "mechanism": mechanism, "max_report_bytes": limit},
        model={"depth": 0},
        evaluate=False,
    )
    (path,) = chain.store.files(chain.reports[0]["reports"])
    assert pq.read_schema(path).metadata[b"form"].decode() == form
    _, _, errors = private(chain)
    assert learned(chain).corrections.observed[0] == pytest.approx(errors.mean(axis=0), abs=0.15)
    assert np.ptp(errors.mean(axis=0)) > 0.4


def test_the_draws_of_two_classes_are_apart_where_sums_are_drawn(run, monkeypatch):
    """As many on each class, all with the same value: the sums differ by their noise alone, and they do differ."""
    columns = paid(600, 2)
    columns["paid"] = np.where(np.arange(600) % 3 == 0, columns["paid"], "owed")
    monkeypatch.setattr(Protocol, "draw_outputs", lambda self, n, words: np.arange(n) % 3)
    chain = run(
        columns=columns,
        privacy={"mechanism": "oue", "max_report_bytes": 0},
        dataset={"test_fraction": 0.0},
        evaluate=False,
    )
    assert [totals.n_private for totals in totals_of(chain)] == [134, 133, 133]
    sums = pq.read_table(chain.store.file(chain.totals["totals"], "raw.parquet"))["raw"].to_numpy()
    _, one, other = sums.reshape(3, -1)
    assert (one != other).any()


def test_the_question_and_the_model_are_those_of_the_estimator_with_the_same_rows(run):
    chain = run(dataset={"drop": ["person", "firm"], "missing": "drop"}, model={"depth": 2}, evaluate=False)
    rows = pl.read_csv(chain.config.dataset.path[0])
    X, y = rows.select("miles", "hour").to_numpy().astype(float), rows["paid"].to_numpy()
    alone = CorrectionClassifier(2.0, base="tree", depth=2, random_state=1).fit(
        X, y, public=(rows["zone"] == "open").to_numpy()
    )
    (theirs,), asked = alone.protocols_, published(chain)
    assert asked.partition.to_json() == theirs.partition.to_json()
    assert (asked.mechanism, asked.classes) == (theirs.mechanism, theirs.classes)
    assert asked.base.to_json() == theirs.base.to_json()
    known = read_public(chain.store, chain.published["evidence"], asked)
    again = fit_corrected(asked, known, alone.totals_, epsilon=2.0)
    for name in ("correction", "sd", "observed", "discrepancy", "share"):
        np.testing.assert_array_equal(
            getattr(again.corrections, name), getattr(alone.corrections_, name), err_msg=name
        )


# Labels


def test_a_class_that_no_public_row_has_is_found_by_the_reports(run):
    """Public people never pay by cheque, a third of the private ones do."""
    columns = paid(900, 4, share=0.0)
    columns["paid"] = np.where(np.arange(900) % 3 == 1, "cheque", columns["paid"])
    chain = run(
        n=900,
        columns=columns,
        dataset={"classes": [*CLASSES, "cheque"]},
        privacy={"epsilon": 16.0},
        correction={"base": "forest"},
        model={"depth": 0},
        evaluate=False,
    )
    model = learned(chain)
    rows, _, _ = private(chain)
    assert model.classes[3] == "cheque"
    assert shares_of(model.public_answers(rows.raw))[:, 3].max() < 0.1
    assert model.predict_proba(rows.raw)[:, 3].mean() == pytest.approx((rows.labels == 3).mean(), abs=0.15)


def test_a_label_that_is_not_declared_counts_as_outside_of_whatever_class_was_drawn(run):
    columns = paid(900, 5)
    columns["paid"] = np.where(np.arange(900) % 6 == 1, "owed", columns["paid"])
    chain = run(
        n=900,
        columns=columns,
        privacy={"epsilon": 40.0, "mechanism": "grr"},
        model={"depth": 1},
        evaluate=False,
    )
    rows, _, _ = private(chain)
    outside = [totals.outside for totals in totals_of(chain)]
    assert sum(outside) == pytest.approx((rows.labels < 0).sum(), abs=0.5)
    assert min(outside) > 20
    assert np.isfinite(learned(chain).corrections.correction).all()


def test_a_positive_class_is_the_second_of_the_classes_and_all_are_mended(run):
    chain = run(n=300, dataset={"classes": None, "positive": "cash"}, model={"depth": 0}, evaluate=False)
    assert published(chain).label_classes == ("app", "cash", "card")
    assert learned(chain).corrections.correction.shape[1] == 3
    facts = read_facts(chain.store, chain.page["page"])
    assert facts.model.outputs == facts.classes == ("app", "cash", "card")


def test_fewer_people_than_classes_are_refused_before_anybody_is_asked(run):
    """Two private people, three classes."""
    zone = np.array(["open"] * 200)
    zone[:2] = "closed"
    chain = run(n=200, columns={"zone": zone}, dataset={"test_fraction": 0.0}, evaluate=False)
    with pytest.raises(DataError, match=r'2 private people for the 3 classes of "paid": .*dataset\.classes'):
        assert chain.published
    assert not list(chain.store.root.rglob("reports"))


def test_a_class_that_nobody_drew_is_not_corrected_and_all_else_is(run):
    """Four people: with this seed somebody is on two classes, and nobody on the third."""
    zone = np.array(["open"] * 200)
    zone[:4] = "closed"
    chain = run(
        n=200,
        columns={"zone": zone},
        dataset={"test_fraction": 0.0},
        evaluate=False,
        simulation={"noise_seed": 2},
    )
    n_reports = [totals.n_private for totals in totals_of(chain)]
    assert sorted(n_reports)[0] == 0
    assert sum(n_reports) == 4
    found, silent = learned(chain).corrections, int(np.argmin(n_reports))
    assert not found.correction[:, silent].any()
    assert np.isinf(found.noise_sd[:, silent]).all()
    assert np.isfinite(found.sd).all()
    n_silent = sum(n == 0 for n in n_reports)
    heard = found.evidence.size * (3 - n_silent) // 3
    assert found.chance == pytest.approx(chi2.sf((found.evidence**2).sum(), heard))
    assert found.share.sum() == pytest.approx(1)
    assert chain.page


def test_a_protocol_that_is_too_large_is_refused_with_its_size(run):
    chain = run(n=150, correction={"base": "boosting", "max_protocol_bytes": 6_000})
    with pytest.raises(ConfigError, match=r"base: [\d,]+ bytes in a protocol \(300 trees.*at most"):
        assert chain.published


# What is taken


@pytest.mark.parametrize("oracle", ["grr", "oue"])
def test_reports_on_no_class_of_the_protocol_are_not_added(run, oracle):
    chain = run(privacy={"mechanism": oracle}, n=300, evaluate=False, model={"depth": 1})
    store = chain.store
    assert published(chain).n_outputs == 3
    (path,) = store.files(chain.reports[0]["reports"])
    table = pq.read_table(path).slice(0, 3)
    meta = dict(table.schema.metadata) | {b"holders": b"3"}
    nowhere = {"grr": "about an output that is not there", "oue": "none of the 3 outputs"}[oracle]
    missing = {"grr": "about an output that is not there", "oue": "missing where one is said"}[oracle]
    for output, said in (
        (3, nowhere),
        (-1, nowhere),
        (None, missing),
        ("no column", "does not say which output"),
    ):
        columns = {} if output == "no column" else {"output": pa.array([0, 1, output], pa.int32())}
        told = pa.table({table.column_names[0]: table.column(0)} | columns)
        pq.write_table(told.replace_schema_metadata(meta), path)
        reports = [manifest_of(store, chain.reports[0]["reports"].names[0], chain.protocol, 1)]
        with pytest.raises(ProtocolMismatch, match=said):
            add.fn(store, question=chain.protocol, reports=reports, round_number=1)


@pytest.mark.parametrize("holders", ["[3, 0]", "[3, 0, 0]"])
def test_sums_that_so_many_people_cannot_have_given_are_not_added(run, holders):
    chain = run(privacy={"mechanism": "oue", "max_report_bytes": 0}, n=300, evaluate=False)
    (path,) = chain.store.files(chain.reports[0]["reports"])
    table = pq.read_table(path)
    meta = dict(table.schema.metadata) | {b"holders": b"3", b"holders_of_outputs": holders.encode()}
    pq.write_table(table.replace_schema_metadata(meta), path)
    forged = manifest_of(chain.store, chain.reports[0]["reports"].names[0], chain.protocol, 1)
    with pytest.raises(ProtocolMismatch, match=r"of another protocol|cannot have given"):
        add.fn(chain.store, question=chain.protocol, reports=[forged], round_number=1)


@pytest.mark.slow
def test_a_campaign_adds_a_second_batch_to_each_class(tmp_path):
    names = [rides(tmp_path / f"{k}.csv", 600, k, **paid(600, k)) for k in (1, 2)]
    plain = DECLARED | {"campaign": {"name": "paid"}, "evaluate": False}
    plain["dataset"] = DECLARED.get("dataset", {}) | NEW_PEOPLE
    first = Chain(Store(tmp_path / "work"), mended(rides_config, names[0], **plain))
    before, asked_before = totals_of(first), learned(first)
    later = Chain(first.store, mended(rides_config, *names, **plain))
    after, model = totals_of(later), learned(later)
    assert later.protocol == first.protocol
    assert (model.n_private, asked_before.n_private) == (800, 400)
    assert all(b.n_private > a.n_private > 0 for a, b in zip(before, after, strict=True))
    assert model.base.to_json() == asked_before.base.to_json()
    assert later.page


# Scores and the page


def test_each_score_is_that_of_the_model_it_names(scored):
    rows, _, _ = private(scored, "test")
    _, cells, errors = private(scored)
    model, said = learned(scored), scores_of(scored)["scores"]

    def accuracy(answers):
        return np.mean(shares_of(answers).argmax(axis=1) == rows.labels)

    base = model.public_answers(rows.raw)
    assert said["public_only"]["accuracy"] == pytest.approx(accuracy(base))
    assert said["ours"]["accuracy"] == pytest.approx(accuracy(model.answers(rows.raw)))
    plan = read_public(scored.store, scored.published["evidence"], published(scored)).plan
    exact = [ResidualEstimates.exact(plan, cells, column) for column in errors.astype(np.float32).T]
    added = correct(plan, exact).correction[model.cells(rows.raw)]
    assert said["no_noise"]["accuracy"] == pytest.approx(accuracy(base + added))
    assert said["ours"]["accuracy"] > said["public_only"]["accuracy"] + 0.05
    assert np.array(said["ours"]["confusion"]).shape == (3, 3)
    assert said["ours"]["log_loss"] == score(rows.labels, model.predict_proba(rows.raw)).log_loss


def test_redraws_spread_around_ours(scored):
    """Ours is one draw of the holders' coins, the redraws are 5 more, all between the public model and far above it."""
    scores = scores_of(scored)
    spread, public = scores["redraws"], scores["scores"]["public_only"]["accuracy"]
    assert len(spread) == 5
    assert len(set(spread)) > 1
    ours = scores["scores"]["ours"]["accuracy"]
    assert abs(ours - np.mean(spread)) < 0.5 * (np.mean(spread) - public)


def test_a_database_says_what_the_model_says(scored, tmp_path):
    path, model = scored.store.file(scored.model["model"], "model.json"), learned(scored)
    rows = tables.read(scored.store.files(scored.held["test"]))
    pq.write_table(rows, tmp_path / "rows.parquet")
    predict_file(path, tmp_path / "rows.parquet", tmp_path / "out.parquet")
    out = pl.read_parquet(tmp_path / "out.parquet")
    shares = model.predict_proba(tables.raw_matrix(rows, model.encoding))
    with duckdb.connect() as connection:
        connection.execute(f"CREATE VIEW data AS FROM read_parquet('{tmp_path / 'rows.parquet'}')")
        told = connection.execute(model.to_sql()).fetchnumpy()
    for k, name in enumerate(CLASSES):
        np.testing.assert_array_equal(out[f"probability of {name}"].to_numpy(), shares[:, k])
        np.testing.assert_allclose(told[f"probability_{name}"], shares[:, k], atol=TOLERANCE)
    assert told["prediction"].tolist() == out["prediction"].to_list()


def test_the_page_says_class_by_class_where_the_model_is_wrong_and_nothing_of_anybody(scored):
    facts = read_facts(scored.store, scored.page["page"])
    found = learned(scored).corrections
    assert facts.model.outputs == tuple(CLASSES)
    assert facts.model.is_found
    for cell, row in zip(facts.model.cells, found.correction, strict=True):
        assert [estimate.value for estimate in cell.estimates] == row.tolist()
    page = scored.store.file(scored.page["page"], "report.html").read_text()
    assert "“app” too rarely" in page
    assert "“app” too often" not in page
    _, _, errors = private(scored, "test")
    told = json.dumps(facts.to_dict())
    assert not any(repr(value) in told for value in errors.ravel().tolist())
