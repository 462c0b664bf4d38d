"""The steps of a run whose question also asks on which side of a straight line a row is: all of them mean the same by it."""

from __future__ import annotations

import numpy as np
import polars as pl
import pyarrow.parquet as pq
import pytest
from chain import Chain, fares, fares_config, learned, mended, published, scores_of

from ldptree.client import Client
from ldptree.estimators import CorrectionRegressor
from ldptree.families.corrections import Observed, correct
from ldptree.public_models.slope import COLUMN
from storage import tables
from storage.store import Store
from tasks.artifacts import read_public
from tasks.held_back import read_rows
from tasks.predict import load_model, predict_file
from tasks.receive import described, receive
from tasks.report import read_facts

ASKED = {"privacy": {"epsilon": 8.0}, "model": {"depth": 1}}


@pytest.fixture(scope="module")
def line(tmp_path_factory):
    """A scored run on 1,200 fares, to be read."""
    folder = tmp_path_factory.mktemp("line")
    path = fares(folder / "a.csv", 1200, 1)
    chain = Chain(
        Store(folder / "work"),
        mended(
            fares_config,
            path,
            **ASKED,
            evaluation={"redraws": 3},
            dataset={"missing": "drop", "drop": ["person", "firm"]},
        ),
    )
    assert chain.page
    return chain


def test_the_question_is_that_of_the_estimator_and_finds_a_slope(line):
    asked, model = published(line), learned(line)
    rows = pl.read_csv(line.config.dataset.path[0])
    X, y = rows.select("miles", "hour").to_numpy().astype(float), rows["paid"].to_numpy()
    alone = CorrectionRegressor(8.0, base="tree", depth=1, random_state=1)
    alone.fit(X, y, public=(rows["zone"] == "open").to_numpy())
    (theirs,) = alone.protocols_
    assert asked.base.slope.to_json() == theirs.base.slope.to_json()
    assert asked.partition.to_json() == theirs.partition.to_json()
    assert asked.n_cells == 4
    assert model.slope.to_json() == asked.base.slope.to_json()
    assert model.corrections.slope.tau > 0
    assert "of where a straight line's answer differs" in line.model.facts["says"]
    without = CorrectionRegressor(8.0, base="tree", depth=1, slope=None, random_state=1)
    without.fit(X, y, public=(rows["zone"] == "open").to_numpy())
    assert without.protocols_[0].base.slope is None
    assert "slope" not in without.model_.to_json()


def test_the_score_without_noise_is_that_of_the_true_means_and_the_slope_they_give(line):
    asked, model = published(line), learned(line)
    test, train = (read_rows(line.store.files(line.held[part]), asked) for part in ("test", "train"))
    plan = read_public(line.store, line.published["public"], asked).plan
    errors, cells = asked.residuals(train.raw, train.labels), asked.cells(train.raw)
    people = np.bincount(cells, minlength=asked.n_cells)
    exact = correct(
        plan,
        [
            Observed(
                mean=np.bincount(cells, weights=errors, minlength=asked.n_cells) / people,
                variance=errors.var() / people,
                mass=people.astype(float),
            )
        ],
    )
    at, g = model.cells(test.raw), model.predict_parts(test.raw).apart
    added = exact.correction[at, 0] + exact.slope.amount * (g - exact.slope.centre[at])
    said = model.public_answers(test.raw)[:, 0] + added
    scores = scores_of(line)["scores"]
    assert scores["no_noise"]["mse"] == pytest.approx(np.mean((said - test.labels) ** 2), rel=1e-4)
    ours = np.mean((model.predict(test.raw) - test.labels) ** 2)
    assert scores["ours"]["mse"] == pytest.approx(ours)
    assert ours < scores["public_only"]["mse"]


def test_a_device_answers_and_its_report_names_kinds_by_the_line(line, tmp_path):
    (tmp_path / "reports").mkdir()
    path = line.store.file(line.protocol, "protocol.json")
    client = Client(path.read_text(), max_epsilon=64.0, memory={}, words=np.random.default_rng(1))
    (tmp_path / "reports" / "one.jsonl").write_text(client.report({"miles": 3.25, "hour": 7}, 12.5).to_json())
    received = receive(path, tmp_path / "reports")
    assert received.accepted == 1
    where = [cell["where"] for cell in described(received)["cells"]]
    assert all(f"{COLUMN} {'<=' if cell % 2 == 0 else '>'} " in words for cell, words in enumerate(where))
    rows = read_rows(line.store.files(line.held["test"]), published(line))
    assert (published(line).cells(rows.raw) == learned(line).cells(rows.raw)).all()


def test_a_file_is_scored_with_the_slope_and_the_page_says_it(line, tmp_path):
    path = line.store.file(line.model["model"], "model.json")
    model, rows = load_model(path), tables.read(line.store.files(line.held["test"]))
    pq.write_table(rows, tmp_path / "rows.parquet")
    predict_file(path, tmp_path / "rows.parquet", tmp_path / "out.parquet")
    out, raw = pl.read_parquet(tmp_path / "out.parquet"), tables.raw_matrix(rows, model.encoding)
    np.testing.assert_array_equal(out["prediction"].to_numpy(), model.predict(raw))
    facts, found = read_facts(line.store, line.page["page"]), model.corrections.slope
    (slope,) = facts.model.of_kind("slope")
    assert slope.figures == {"amount": found.amount, "amount_sd": found.sd}
    assert facts.n_cells == 4
    assert all(cell.path[-1].column == COLUMN for cell in facts.model.cells)


def test_nothing_of_private_rows_but_their_number_moves_the_slope_or_whether_it_is_asked_about(tmp_path):
    one, other = (pl.read_csv(fares(tmp_path / f"{seed}.csv", 900, seed)) for seed in (2, 3))
    found = []
    for name, private in (("plain", one), ("wild", other.with_columns(pl.col("paid") * 2 + 7))):
        rows = pl.concat([one.filter(pl.col("zone") == "open"), private.filter(pl.col("zone") == "closed")])
        rows.write_csv(tmp_path / f"{name}-rows.csv")
        chain = Chain(
            Store(tmp_path / name),
            mended(fares_config, tmp_path / f"{name}-rows.csv", **ASKED, evaluate=False),
        )
        assert published(chain).base.slope is not None
        found.append({part: manifest.digest for part, manifest in chain.published.parts.items()})
    assert found[0] == found[1]


def test_a_campaign_goes_on_with_its_slope_and_none_is_asked_about_where_that_is_said(tmp_path):
    names = [fares(tmp_path / f"{k}.csv", 900, k) for k in (1, 2)]
    plain = {**ASKED, "campaign": {"name": "paid"}, "evaluate": False}
    first = Chain(Store(tmp_path / "work"), mended(fares_config, names[0], **plain))
    before = learned(first)
    later = Chain(first.store, mended(fares_config, *names, **plain))
    model = learned(later)
    assert later.protocol == first.protocol
    assert model.slope.to_json() == before.slope.to_json()
    assert model.n_private == 2 * before.n_private
    assert abs(model.corrections.slope.amount - before.corrections.slope.amount) < 4 * (
        before.corrections.slope.sd
    )
    never = Chain(
        Store(tmp_path / "never"),
        mended(fares_config, names[0], **ASKED, correction={"slope": "none"}, evaluate=False),
    )
    assert published(never).base.slope is None
    assert learned(never).slope is None
