"""The steps of a run that corrects a public model, of a number, of two classes and of three, where each holder draws the class
that the question is about: what each step leaves and refuses, and that residuals stay with their holders.
"""

from __future__ import annotations

import json
from dataclasses import asdict

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from chain import (
    Chain,
    fares,
    fares_config,
    learned,
    mended,
    published,
    rides,
    rides_config,
    scores_of,
)
from families import CLASSES, THREE, paid_in_three_ways
from page_truth.reading import read
from scipy.stats import chi2

from ldptree.client import Client
from ldptree.errors import ConfigError, DataError, ProtocolMismatch
from ldptree.families.correction import fit_corrected
from ldptree.families.corrections import ResidualEstimates, correct
from ldptree.models.corrected import CorrectedModel, add_clipped, shares_of
from ldptree.protocol.protocol import Protocol
from ldptree.public_models import fit
from storage.store import Store
from tasks.answers.add import add
from tasks.answers.receive import receive_folder
from tasks.artifacts import read_public, read_totals
from tasks.perturb import manifest_of
from tasks.report import read_facts
from tasks.scoring.corrections import FEWEST
from tasks.scoring.held_back import read_rows

KINDS = ("number", "classes", "three classes")
RUN_OF = {
    "number": "correction of a number",
    "classes": "correction",
    "three classes": "correction of three classes",
}


@pytest.fixture(params=KINDS)
def scored(request, run_of):
    """A scored run of each kind of label. Only to be read."""
    return run_of(RUN_OF[request.param])


@pytest.fixture
def three(run_of):
    return run_of(RUN_OF["three classes"])


@pytest.fixture
def run(tmp_path):
    """Columns to replace, and changes of the configuration, to a run on 600 rows whose label is of this kind."""

    def run(name="work", kind="number", columns=None, n=600, **changes):
        write, make = (fares, fares_config) if kind == "number" else (rides, rides_config)
        own = paid_in_three_ways(n, 2) if kind == "three classes" else {}
        if kind == "three classes":
            changes["dataset"] = THREE | changes.get("dataset", {})
        path = write(tmp_path / "a.csv", n, 2, **own | (columns or {}))
        return Chain(Store(tmp_path / name), mended(make, path, **changes))

    return run


def totals_of(chain):
    return read_totals(chain.store, chain.totals["totals"], published(chain))


def private(chain, part="train"):
    """Raw rows and labels, their cells, and the true residuals [n, outputs]."""
    asked = published(chain)
    rows = read_rows(chain.store.files(chain.held[part]), asked)
    if asked.n_outputs > 1:
        errors = asked.base.errors(asked.encoding, rows.raw, rows.labels)
    else:
        errors = asked.residuals(rows.raw, rows.labels)[:, None]
    return rows, asked.partition.apply(asked.encoding.encode(rows.raw)), errors


# What is published


@pytest.mark.parametrize(
    ("kind", "base"), [("number", "tree"), ("classes", "forest"), ("three classes", "boosting")]
)
def test_every_base_is_published_and_stands_in_the_model_as_it_was_published(run, kind, base):
    chain = run(kind=kind, n=300, correction={"base": base}, model={"depth": 1}, evaluate=False)
    model, asked = learned(chain), published(chain)
    assert isinstance(model, CorrectedModel)
    assert model.base.to_json() == asked.base.ensemble.to_json()
    classes = {"number": (), "classes": ("cash", "card"), "three classes": tuple(CLASSES)}[kind]
    assert model.classes == asked.base.labels == asked.label_classes == classes
    assert model.protocol_digests == (asked.digest,)
    assert asked.n_outputs == (3 if kind == "three classes" else 1)
    trees = {"tree": 1, "forest": fit.N_TREES, "boosting": 100 * asked.n_outputs}[base]
    assert chain.published.facts["base_trees"] == trees
    rows, cells, _ = private(chain)
    parts = model.predict_parts(rows.raw)
    np.testing.assert_array_equal(parts.public, model.public_answers(rows.raw))
    added = model.corrections.correction[cells]
    expected = add_clipped(parts.public, added) if classes else parts.public + added
    np.testing.assert_allclose(parts.corrected, expected, atol=1e-12)


def test_what_public_rows_say_comes_back_as_it_was_written(scored):
    asked = published(scored)
    known = read_public(scored.store, scored.published["evidence"], asked)
    again = type(known).from_json(json.loads(json.dumps(known.to_json())), asked)
    assert again.to_json() == known.to_json()
    assert known.n_public == scored.scaled.facts["n_public"]
    epsilon = scored.config.privacy.epsilon
    model = fit_corrected(asked, known, totals_of(scored), epsilon=epsilon)
    assert model.to_json() == learned(scored).to_json()


def test_a_forest_is_made_smaller_to_fit_and_the_protocol_keeps_to_the_limit(run):
    plain = {"n": 300, "model": {"depth": 1}, "evaluate": False}
    large = run("large", correction={"base": "forest"}, **plain)
    limit = 3 * len(published(large).to_json()) // 4
    small = run("small", correction={"base": "forest", "max_protocol_bytes": limit}, **plain)
    sizes = [len(published(chain).to_json()) for chain in (large, small)]
    assert sizes[1] <= limit < sizes[0]
    facts = [chain.published.facts for chain in (large, small)]
    assert facts[0]["base_nodes"] > facts[1]["base_nodes"] > 100
    assert facts[0]["base_trees"] == fit.N_TREES > facts[1]["base_trees"] >= fit.FEWEST_TREES


@pytest.mark.parametrize(
    ("kind", "base", "limit", "said"),
    [
        ("number", "boosting", 6_000, r"base: [\d,]+ bytes in a protocol \(100 trees.*at most [\d,]+ are allowed"),
        ("three classes", "boosting", 6_000, r"base: [\d,]+ bytes in a protocol \(300 trees.*at most [\d,]+ are allowed"),
        ("number", "forest", 1_000, r"base: [\d,]+ bytes in a protocol \(100 trees.*at most [\d,]+ are allowed"),
        ("number", "forest", 300, r"max_protocol_bytes: 300 bytes leave no room for a public model"),
    ],
)  # fmt: skip
def test_what_is_too_large_is_refused_with_its_size_before_anybody_is_asked(
    run, kind, base, limit, said, monkeypatch
):
    monkeypatch.setattr(fit, "FEWEST_TREES", 100)
    chain = run(kind=kind, correction={"base": base, "max_protocol_bytes": limit}, n=300)
    with pytest.raises(ConfigError, match=said) as refused:
        assert chain.published
    assert "max_protocol_bytes" in str(refused.value)
    left = [path for path in chain.store.root.rglob("*") if path.is_file()]
    assert not any({"reports", "partition"} & set(path.parts) or ".aside" in str(path) for path in left)


# Reports


def test_a_missing_value_is_filled_in_by_everybody_alike(run):
    miles = np.where(np.arange(600) % 5 == 0, "", "3.5").tolist()
    miles[3:600:7] = ["8.25"] * len(miles[3:600:7])
    chain = run(columns={"miles": miles}, model={"depth": 1}, evaluate=False)
    asked, model = published(chain), learned(chain)
    raw = np.array([[np.nan, 3.0, 1.0]])
    assert np.isfinite(asked.residuals(raw, [5.0])).all()
    assert np.isfinite(model.predict(raw)).all()


def test_a_client_answers_the_runs_protocol_and_its_report_is_received(scored, tmp_path):
    (tmp_path / "reports").mkdir()
    path = scored.store.file(scored.protocol, "protocol.json")
    asked = published(scored)
    row = {"miles": 3.25, "hour": 7, "firm": "ash"}
    for seed, (name, label) in enumerate([("one", "card" if asked.label_classes else 12.5), ("two", None)]):
        words = np.random.default_rng(seed)  # the run is a simulation
        report = Client(path.read_text(), max_epsilon=64.0, memory={}, words=words).report(row, label)
        (tmp_path / "reports" / f"{name}.jsonl").write_text(report.to_json())
    received = receive_folder(path, tmp_path / "reports")
    assert (received.accepted, +received.rejected) == (2, {})
    assert received.totals()[0].counts.shape == (asked.n_cells, asked.n_classes)


# A class that each holder draws


def test_there_is_one_question_on_three_classes_and_everybody_is_charged_for_it_once(three, run):
    asked, model = published(three), learned(three)
    assert (asked.base.output, asked.n_outputs) == ("drawn", 3)
    assert asked.epsilon == 4.0
    release = run(kind="three classes", release=True, privacy={"epsilon": 4.0}).spent
    assert (release.largest, release.questions) == (4.0, 1)
    assert model.n_private == three.held.facts["n_private"] == sum(t.n_private for t in totals_of(three))
    page = three.store.file(three.page["page"], "page.html").read_text(encoding="utf-8")
    said = read(page).first("dl", "answers").text
    assert "for one of 3 classes that a coin picks (the choice reveals nothing)" in said


def test_each_report_names_its_class_and_adds_up_there_alone(three):
    asked, store = published(three), three.store
    reports = [pq.read_table(path) for r in three.reports for path in store.files(r["reports"])]
    assert all(table.column_names[1] == "output" for table in reports)
    outputs = np.concatenate([table.column("output").to_numpy() for table in reports])
    of_classes = totals_of(three)
    assert [t.n_private for t in of_classes] == np.bincount(outputs, minlength=3).tolist()
    raw = pl.from_arrow(pq.read_table(store.file(three.totals["totals"], "raw.parquet")))
    by_cell = pl.from_arrow(pq.read_table(store.file(three.totals["totals"], "totals.parquet")))
    by_node = pl.from_arrow(pq.read_table(store.file(three.totals["totals"], "cells.parquet")))
    for output, totals in enumerate(of_classes):
        by_hand = asked.mechanism.no_reports()
        for table in reports:
            (column,) = (table.column(0).filter(pa.array(table.column("output").to_numpy() == output)),)
            if column.type == pa.uint32():
                values = column.to_numpy()
            else:
                packed = np.frombuffer(b"".join(column.to_pylist()), np.uint8).reshape(len(column), -1)
                values = asked.mechanism.unpack(packed)
            by_hand = by_hand + asked.mechanism.aggregate(values)
        assert raw.filter(pl.col("output") == output)["raw"].to_list() == by_hand.tolist()
        cells = by_cell.filter(pl.col("output") == output)
        assert cells["unbiased"].to_numpy() == pytest.approx(totals.counts.ravel())
        root = by_node.filter((pl.col("output") == output) & (pl.col("node") == 0))
        assert root["unbiased"].to_numpy() == pytest.approx(totals.counts.sum(axis=0))


def test_the_draws_of_two_classes_are_apart_where_sums_are_drawn(run, monkeypatch):
    """As many on each class, all with the same value: the sums differ by their noise alone, and they do differ."""
    columns = paid_in_three_ways(600, 2)
    columns["paid"] = np.where(np.arange(600) % 3 == 0, columns["paid"], "owed")
    monkeypatch.setattr(Protocol, "draw_outputs", lambda self, n, words: np.arange(n) % 3)
    chain = run(
        kind="three classes",
        columns=columns,
        privacy={"mechanism": "oue", "max_report_bytes": 0},
        dataset={"test_fraction": 0.0},
        evaluate=False,
    )
    assert [totals.n_private for totals in totals_of(chain)] == [134, 133, 133]
    sums = pq.read_table(chain.store.file(chain.totals["totals"], "raw.parquet"))["raw"].to_numpy()
    _, one, other = sums.reshape(3, -1)
    assert (one != other).any()


def test_a_class_that_no_public_row_has_is_found_by_the_reports(run):
    """Public people never pay by cheque, a third of the private ones do."""
    columns = paid_in_three_ways(900, 4, share=0.0)
    columns["paid"] = np.where(np.arange(900) % 3 == 1, "cheque", columns["paid"])
    chain = run(
        kind="three classes",
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


def test_a_positive_class_is_the_second_of_the_classes_and_all_are_corrected(run):
    dataset = {"classes": None, "positive": "cash"}
    chain = run(kind="three classes", n=300, dataset=dataset, model={"depth": 0}, evaluate=False)
    assert published(chain).label_classes == ("app", "cash", "card")
    assert learned(chain).corrections.correction.shape[1] == 3
    facts = read_facts(chain.store, chain.page["page"])
    assert facts.model.outputs == facts.classes == ("app", "cash", "card")


def of_whom_private(n):
    zone = np.array(["open"] * 200)
    zone[:n] = "closed"
    return {"kind": "three classes", "n": 200, "columns": {"zone": zone}, "dataset": {"test_fraction": 0.0}}


def test_fewer_people_than_classes_are_refused_before_anybody_is_asked(run):
    """Two private people, three classes."""
    chain = run(**of_whom_private(2), evaluate=False)
    with pytest.raises(DataError, match=r'2 private people for the 3 classes of "paid": .*dataset\.classes'):
        assert chain.published
    assert not list(chain.store.root.rglob("reports"))


def test_a_class_that_nobody_drew_is_not_corrected_and_all_else_is(run):
    """Four people: with this seed somebody is on two classes, and nobody on the third."""
    chain = run(**of_whom_private(4), evaluate=False, simulation={"noise_seed": 2})
    n_reports = [totals.n_private for totals in totals_of(chain)]
    assert sorted(n_reports)[0] == 0
    assert sum(n_reports) == 4
    corrections, silent = learned(chain).corrections, int(np.argmin(n_reports))
    assert not corrections.correction[:, silent].any()
    assert np.isinf(corrections.noise_sd[:, silent]).all()
    assert np.isfinite(corrections.sd).all()
    n_silent = sum(n == 0 for n in n_reports)
    heard = corrections.evidence.size * (3 - n_silent) // 3
    assert corrections.chance == pytest.approx(chi2.sf((corrections.evidence**2).sum(), heard))
    assert corrections.share.sum() == pytest.approx(1)
    assert chain.page


@pytest.mark.parametrize("oracle", ["grr", "oue"])
def test_reports_on_no_class_of_the_protocol_are_not_added(run, oracle):
    chain = run(
        kind="three classes", privacy={"mechanism": oracle}, n=300, evaluate=False, model={"depth": 1}
    )
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


def test_sums_that_so_many_people_cannot_have_given_are_not_added(run):
    privacy = {"mechanism": "oue", "max_report_bytes": 0}
    chain = run(kind="three classes", privacy=privacy, n=300, evaluate=False)
    (path,) = chain.store.files(chain.reports[0]["reports"])
    table = pq.read_table(path)
    for holders in (b"[3, 0]", b"[3, 0, 0]"):
        meta = dict(table.schema.metadata) | {b"holders": b"3", b"holders_of_outputs": holders}
        pq.write_table(table.replace_schema_metadata(meta), path)
        forged = manifest_of(chain.store, chain.reports[0]["reports"].names[0], chain.protocol, 1)
        with pytest.raises(ProtocolMismatch, match=r"of another protocol|cannot have given"):
            add.fn(chain.store, question=chain.protocol, reports=[forged], round_number=1)


# The wall


def numbers_in(folder):
    """Every number in the JSON and Parquet files below a folder."""
    numbers = []
    for path in folder.rglob("*"):
        if path.suffix == ".json":
            numbers += numbers_of(json.loads(path.read_text()))
        elif path.suffix == ".parquet":
            for column in pq.read_table(path).columns:
                if str(column.type) in ("double", "float"):
                    numbers += column.to_pylist()
    return np.array([value for value in numbers if value is not None])


def numbers_of(value):
    if isinstance(value, dict):
        return numbers_of(list(value.values()))
    if isinstance(value, list | tuple):
        return [number for item in value for number in numbers_of(item)]
    return [value] if isinstance(value, float) else []


def test_labels_and_errors_of_private_people_stay_with_them(run):
    """Labels and miles with all their digits, and what the public model is off by: no zone outside holds one, nor does a page."""
    rng = np.random.default_rng(5)
    miles = rng.gamma(2.0, 3.0, 600)
    chain = run(columns={"miles": miles, "paid": 4 + 2.5 * miles + rng.normal(0, 2, 600)})
    assert chain.page
    parts = [private(chain, name) for name in ("train", "test")]
    errors = np.concatenate([errors.ravel() for _, _, errors in parts])
    secret = np.concatenate([errors, *(r.labels for r, _, _ in parts), *(r.raw[:, 0] for r, _, _ in parts)])
    assert len(np.unique(secret)) > 1100
    for zone in ("curator", "public", "simulation"):
        seen = numbers_in(chain.store.zone(zone))
        assert len(seen) > 100
        for width in (np.float64, np.float32):
            assert not np.isin(secret.astype(width), seen.astype(width)).any(), zone
    # labels and miles; errors are never written
    assert np.isin(secret, numbers_in(chain.store.zone("holders"))).sum() > 700
    page = chain.store.file(chain.page["page"], "page.html").read_text()
    assert not any(f"{value:.6g}"[:7] in page for value in errors[:50] if abs(value) > 1)


# Scores


def test_each_score_is_that_of_the_model_it_names(scored):
    """The released model, its public part alone, and the public part with the true mean errors of the people asked."""
    model, said = learned(scored), scores_of(scored)["scores"]
    test, _, _ = private(scored, "test")
    _, cells, errors = private(scored)
    n_cells = published(scored).n_cells
    people = np.bincount(cells, minlength=n_cells)
    assert people.min() > 0
    chief = "accuracy" if model.classes else "mse"

    def by_hand(answers):
        if model.classes:
            return np.mean(shares_of(answers).argmax(axis=1) == test.labels)
        return np.mean((answers[:, 0] - test.labels) ** 2)

    base = model.public_answers(test.raw)
    assert said["public_only"][chief] == pytest.approx(by_hand(base))
    assert said["ours"][chief] == pytest.approx(by_hand(model.answers(test.raw)))
    plan = read_public(scored.store, scored.published["evidence"], published(scored)).plan
    exact = [ResidualEstimates.exact(plan, cells, column) for column in errors.astype(np.float32).T]
    if not model.classes:  # written out
        (one,) = exact
        mean = np.bincount(cells, weights=errors[:, 0], minlength=n_cells) / people
        assert one.mean == pytest.approx(plan.range.as_read(mean), rel=1e-5)
        assert one.variance == pytest.approx(errors.var() / people, rel=1e-4)
    added = correct(plan, exact).correction[model.cells(test.raw)]
    assert said["no_noise"][chief] == pytest.approx(by_hand(base + added), rel=1e-4)
    better = max if model.classes else min
    assert better(said["ours"][chief], said["public_only"][chief]) == said["ours"][chief]
    if len(model.classes) == 3:
        assert said["ours"]["accuracy"] > said["public_only"]["accuracy"] + 0.05
        assert np.array(said["ours"]["confusion"]).shape == (3, 3)


def test_a_cell_of_few_held_back_rows_says_nothing_and_others_say_both_models_scores(scored):
    asked, model = published(scored), learned(scored)
    rows, _, _ = private(scored, "test")
    cells, told = model.cells(rows.raw), scores_of(scored)["cells"]
    sizes = np.bincount(cells, minlength=asked.n_cells)
    assert [one is None for one in told] == (sizes < FEWEST).tolist()
    if len(model.classes) < 3:  # of three classes there are few cells
        assert {one is None for one in told} == {True, False}
    assert sum(one["n"] for one in told if one) == sizes[sizes >= FEWEST].sum()
    for key, answers in (("public", model.public_answers(rows.raw)), ("ours", model.answers(rows.raw))):
        is_right = shares_of(answers).argmax(axis=1) == rows.labels
        each = is_right if model.classes else (answers[:, 0] - rows.labels) ** 2
        for cell, one in enumerate(told):
            assert one is None or one[key] == pytest.approx(each[cells == cell].mean())


def test_redraws_spread_around_ours(scored):
    """Ours is one draw of the holders' coins, the redraws are 20 more: within 4 standard deviations, one time in 10,000 not."""
    scores = scores_of(scored)
    chief = "accuracy" if scores["label"] == "class" else "mse"
    spread, ours = scores["redraws"], scores["scores"]["ours"][chief]
    if len(spread) == 20:
        assert abs(ours - np.mean(spread)) < 4 * np.std(spread, ddof=1)
    else:  # of three classes: between the public model and far above it
        public = scores["scores"]["public_only"]["accuracy"]
        assert abs(ours - np.mean(spread)) < 0.5 * (np.mean(spread) - public)


# What a user is told


def test_what_was_found_is_said_in_one_line(scored):
    model, says = learned(scored), scored.model.facts["says"]
    assert says == model.corrections.says_of(model.classes if len(model.classes) > 2 else ())
    assert says.startswith("The public model is wrong on private people")
    assert "\n" not in says


def test_that_nothing_was_found_is_said_too(run):
    alike = np.where(np.random.default_rng(2).random(600) < 0.5, "card", "cash")
    chain = run(kind="classes", columns={"paid": alike}, privacy={"epsilon": 0.5}, evaluate=False)
    assert chain.model.facts["says"].startswith("Within noise of nothing")
    assert read_facts(chain.store, chain.page["page"]).model.is_found is False


def test_the_page_tells_of_every_cell_and_class_and_of_no_person(scored):
    facts, asked, model = read_facts(scored.store, scored.page["page"]), published(scored), learned(scored)
    assert facts.model.figure == "correction"
    assert facts.model.is_found
    assert len(facts.model.cells) == len(facts.scores.cells) == facts.n_cells == asked.n_cells
    assert all(test is None or test.n >= FEWEST for test in facts.scores.cells)
    (base,) = facts.model.of_kind("public model")
    assert base.figures["trees"] == scored.published.facts["base_trees"]
    _, _, errors = private(scored, "test")
    assert not np.isin(errors.ravel(), numbers_of(asdict(facts))).any()
    if len(model.classes) != 3:
        return
    assert facts.model.outputs == tuple(CLASSES)
    for cell, row in zip(facts.model.cells, model.corrections.correction, strict=True):
        assert [estimate.value for estimate in cell.estimates] == row.tolist()
    page = scored.store.file(scored.page["page"], "page.html").read_text()
    assert "“app” too rarely" in page
    assert "“app” too often" not in page
