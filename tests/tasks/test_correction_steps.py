"""The steps of a run that mends a public model: what each leaves, what it refuses, and that residuals stay with their holders."""

from __future__ import annotations

import json
from dataclasses import asdict
from functools import partial

import numpy as np
import polars as pl
import pyarrow.parquet as pq
import pytest
from chain import (
    NEW_PEOPLE,
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

from ldptree.baselines import select_baselines
from ldptree.client import Client
from ldptree.errors import ConfigError, ProtocolMismatch
from ldptree.estimators import CorrectionClassifier, CorrectionRegressor
from ldptree.families.correction import fit_corrected
from ldptree.families.corrections import ResidualEstimates, correct
from ldptree.models.corrected import CorrectedModel, add_clipped, shares_of
from ldptree.public_models import fit
from storage import tables
from storage.store import Store
from tasks.answers.receive import receive
from tasks.artifacts import read_public, read_totals
from tasks.predict import load_model, predict_file
from tasks.report import read_facts
from tasks.scoring.corrections import FEWEST
from tasks.scoring.held_back import read_rows

PLAIN = {"dataset": {"drop": ["person", "firm"], "missing": "drop"}}


def clashing(n, seed, share=0.3, **columns):
    """Columns of `rides`: closed zones pay by card less often by `share`, and measure everything to the last digit."""
    rng = np.random.default_rng(seed)
    miles, is_closed = rng.gamma(2.0, 3.0, n), np.arange(n) % 3 != 0
    card = rng.random(n) < 0.3 + 0.5 * (miles > 6) - share * is_closed
    return {"miles": miles, "paid": np.where(card, "card", "cash")} | columns


@pytest.fixture(scope="module")
def classes(tmp_path_factory):
    """A scored run on 1,800 rides whose public model is a forest, to be read and copied."""
    folder = tmp_path_factory.mktemp("rides")
    path = rides(folder / "a.csv", 1800, 1, **clashing(1800, 1))
    chain = Chain(
        Store(folder / "work"),
        mended(
            rides_config, path, correction={"base": "forest"}, evaluation={"redraws": 20}, model={"depth": 4}
        ),
    )
    assert chain.page
    return chain


@pytest.fixture(scope="module")
def numbers(tmp_path_factory):
    """A scored run on 1,500 fares whose public model is a smoothed tree, to be read and copied."""
    folder = tmp_path_factory.mktemp("fares")
    path = fares(folder / "a.csv", 1500, 1)
    chain = Chain(
        Store(folder / "work"), mended(fares_config, path, evaluation={"redraws": 20}, model={"depth": 4})
    )
    assert chain.page
    return chain


@pytest.fixture(params=["classes", "numbers"])
def scored(request):
    """A scored run of either kind of label."""
    return request.getfixturevalue(request.param)


@pytest.fixture
def run(tmp_path):
    """Columns to replace, and changes of the configuration, to a run on 600 `fares`, or with make=rides_config `rides`."""

    def run(name="work", columns=None, n=600, path=None, make=fares_config, **changes):
        write = fares if make is fares_config else rides
        path = path or write(tmp_path / "a.csv", n, 2, **(columns or {}))
        return Chain(Store(tmp_path / name), mended(make, path, **changes))

    return run


def digests(*records):
    return [{name: manifest.digest for name, manifest in record.parts.items()} for record in records]


def nobody_was_asked(store):
    """No report, no protocol, nothing half-written."""
    left = [path for path in store.root.rglob("*") if path.is_file()]
    return not any({"reports", "partition"} & set(path.parts) or ".aside" in str(path) for path in left)


# What is published


@pytest.mark.parametrize(
    ("make", "base"), [(fares_config, "tree"), (rides_config, "forest"), (rides_config, "boosting")]
)
def test_every_base_is_published_and_stands_in_the_model_as_it_was_published(run, make, base):
    chain = run(make=make, n=300, correction={"base": base}, model={"depth": 1}, evaluate=False)
    model, asked = learned(chain), published(chain)
    assert isinstance(model, CorrectedModel)
    assert model.base.to_json() == asked.base.ensemble.to_json()
    assert model.classes == asked.base.labels == (("cash", "card") if make is rides_config else ())
    assert model.protocol_digests == (asked.digest,)
    assert chain.published.facts["base_trees"] == {"tree": 1, "forest": fit.N_TREES, "boosting": 100}[base]
    rows = read_rows(chain.store.files(chain.held["train"])[:1], asked)
    found = model.predict_parts(rows.raw)
    np.testing.assert_array_equal(found.public, model.public_answers(rows.raw))
    added = model.corrections.correction[model.cells(rows.raw)]
    expected = add_clipped(found.public, added) if model.classes else found.public + added
    np.testing.assert_allclose(found.corrected, expected, atol=1e-12)


@pytest.mark.parametrize("make", [rides_config, fares_config])
def test_nothing_of_private_rows_but_their_number_moves_what_the_curator_publishes(run, tmp_path, make):
    """Every value of private rows is another one; what two curators publish before reports come in is the same."""
    write = fares if make is fares_config else rides
    one, other = (pl.read_csv(write(tmp_path / f"{seed}.csv", 300, seed)) for seed in (2, 3))
    wild = pl.concat([one.filter(pl.col("zone") == "open"), other.filter(pl.col("zone") == "closed")])
    same = pl.concat([one.filter(pl.col("zone") == "open"), one.filter(pl.col("zone") == "closed")])
    chains = []
    for name, rows in (("plain", same), ("wild", wild)):
        rows.write_csv(tmp_path / f"{name}-rows.csv")
        chains.append(run(name, path=tmp_path / f"{name}-rows.csv", make=make, evaluate=False))
    plain, other = chains
    assert plain.held["train"].digest != other.held["train"].digest
    assert digests(plain.scaled, plain.published) == digests(other.scaled, other.published)


@pytest.mark.parametrize(
    ("make", "model", "correction"),
    [
        (rides_config, {"depth": 2}, {"base": "forest"}),
        (rides_config, {"depth": 2, "partition": "max-edge"}, {"base": "tree", "label_levels": 4}),
        (fares_config, {"depth": "auto"}, {"base": "tree"}),
        (fares_config, {"depth": 1}, {"base": "boosting", "residual_range": 5.0}),
    ],
)
def test_the_protocol_and_the_model_are_those_of_the_estimator_with_the_same_rows(
    run, make, model, correction
):
    chain = run(make=make, model=model, correction=correction, evaluate=False, **PLAIN)
    rows = pl.read_csv(chain.config.dataset.path[0])
    X, y = rows.select("miles", "hour").to_numpy().astype(float), rows["paid"].to_numpy()
    estimator = CorrectionRegressor
    if make is rides_config:  # a class's name decides which is the second, so the positive one is called last
        estimator, y = CorrectionClassifier, np.where(y == "card", "z", "a")
    alone = estimator(2.0, questions=1, random_state=1, **model, **correction).fit(
        X, y, public=(rows["zone"] == "open").to_numpy()
    )
    asked, theirs = published(chain), alone.protocols_[0]
    assert asked.partition.to_json() == theirs.partition.to_json()
    assert (asked.mechanism, asked.classes) == (theirs.mechanism, theirs.classes)
    assert asked.base.ensemble.to_json() == theirs.base.ensemble.to_json()
    known = read_public(chain.store, chain.published["evidence"], asked)
    again = fit_corrected(asked, known, list(alone.totals_), epsilon=2.0)
    for name in ("correction", "sd", "observed", "discrepancy", "share"):
        np.testing.assert_array_equal(
            getattr(again.corrections, name), getattr(alone.corrections_, name), err_msg=name
        )
    np.testing.assert_array_equal(again.default, alone.model_.default)


def test_what_public_rows_say_comes_back_as_it_was_written(numbers):
    asked = published(numbers)
    known = read_public(numbers.store, numbers.published["evidence"], asked)
    again = type(known).from_json(json.loads(json.dumps(known.to_json())), asked)
    assert again.to_json() == known.to_json()
    assert known.n_public == numbers.scaled.facts["n_public"]
    totals = read_totals(numbers.store, numbers.totals["totals"], asked)[0]
    assert fit_corrected(asked, known, [totals], epsilon=2.0).to_json() == learned(numbers).to_json()


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
    ("base", "limit", "said"),
    [
        ("boosting", 6_000, r"base: [\d,]+ bytes in a protocol \(100 trees.*at most [\d,]+ are allowed"),
        ("forest", 1_000, r"base: [\d,]+ bytes in a protocol \(100 trees.*at most [\d,]+ are allowed"),
        ("forest", 300, r"max_protocol_bytes: 300 bytes leave no room for a public model"),
    ],
)
def test_what_is_too_large_is_refused_with_its_size_before_anybody_is_asked(
    run, base, limit, said, monkeypatch
):
    monkeypatch.setattr(fit, "FEWEST_TREES", 100)
    chain = run(correction={"base": base, "max_protocol_bytes": limit}, n=300)
    with pytest.raises(ConfigError, match=said) as refused:
        assert chain.published
    assert "max_protocol_bytes" in str(refused.value)
    assert nobody_was_asked(chain.store)


# Reports


@pytest.mark.parametrize(
    ("mechanism", "form"),
    [(name, "reports") for name in ("grr", "oue", "olh")]
    + [pytest.param(name, "reports", marks=pytest.mark.slow) for name in ("sue", "ss")]
    + [("grr", "totals"), ("olh", "totals")],
)
def test_every_oracle_learns_from_reports_and_from_drawn_totals(run, mechanism, form):
    """At epsilon 16 and in one cell, the mean error of the public model on 400 people is known to a tenth of its range."""
    limit = {"reports": 2**31, "totals": 0}[form]
    chain = run(
        privacy={"epsilon": 16.0, "mechanism": mechanism, "max_report_bytes": limit},
        model={"depth": 0},
        evaluate=False,
    )
    assert published(chain).mechanism.name == mechanism
    (path,) = chain.store.files(chain.reports[0]["reports"])
    assert pq.read_schema(path).metadata[b"form"].decode() == form
    asked = published(chain)
    rows = read_rows(chain.store.files(chain.held["train"]), asked)
    errors = asked.residuals(rows.raw, rows.labels)
    half = asked.label_range[1]
    assert learned(chain).corrections.observed[0, 0] == pytest.approx(errors.mean(), abs=0.2 * half)


def test_people_out_of_range_are_left_out_where_that_is_asked_for(run):
    miles = np.where(np.arange(600) % 3 == 0, np.arange(600) % 9 + 1, 5.0)
    miles[1::6] = 99.0
    chains = {
        outside: run(
            outside,
            columns={"miles": miles},
            privacy={"epsilon": 40.0, "mechanism": "grr", "outside": outside},
            model={"depth": 1},
            evaluate=False,
        )
        for outside in ("clip", "drop")
    }
    out = {k: read_totals(c.store, c.totals["totals"], published(c))[0].outside for k, c in chains.items()}
    dropped = pl.from_arrow(tables.read(chains["drop"].store.files(chains["drop"].held["train"])))
    far = (dropped["miles"] > 50).sum()
    assert out["clip"] == pytest.approx(0, abs=0.5)
    assert out["drop"] == pytest.approx(far, abs=0.5)
    assert far > 50


def test_a_missing_value_is_filled_in_by_everybody_alike(run):
    miles = np.where(np.arange(600) % 5 == 0, "", "3.5").tolist()
    miles[3:600:7] = ["8.25"] * len(miles[3:600:7])
    chain = run(columns={"miles": miles}, model={"depth": 1})
    asked, model = published(chain), learned(chain)
    raw = np.array([[np.nan, 3.0, 1.0]])
    assert np.isfinite(asked.residuals(raw, [5.0])).all()
    assert np.isfinite(model.predict(raw)).all()


def test_a_person_with_many_rows_reports_once(run):
    chain = run(make=rides_config, dataset={"holder": "person", "drop": []}, evaluate=False)
    rows = pl.read_csv(chain.config.dataset.path[0]).filter(pl.col("zone") == "closed")
    assert published(chain).holder == "person"
    assert learned(chain).n_private == rows["person"].n_unique() < rows.height


def test_a_client_answers_the_runs_protocol_and_its_report_is_received(scored, tmp_path):
    (tmp_path / "reports").mkdir()
    path = scored.store.file(scored.protocol, "protocol.json")
    asked = published(scored)
    row = {"miles": 3.25, "hour": 7, "firm": "ash"}
    for seed, (name, label) in enumerate([("one", "card" if asked.label_classes else 12.5), ("two", None)]):
        words = np.random.default_rng(seed)  # the run is a simulation
        report = Client(path.read_text(), max_epsilon=64.0, memory={}, words=words).report(row, label)
        (tmp_path / "reports" / f"{name}.jsonl").write_text(report.to_json())
    received = receive(path, tmp_path / "reports")
    assert (received.accepted, +received.rejected) == (2, {})
    assert received.totals()[0].counts.shape == (asked.n_cells, asked.n_classes)


# The wall


def numbers_in(folder):
    """Every number in the JSON and Parquet files below a folder."""
    found = []

    def walk(value):
        if isinstance(value, dict):
            walk(list(value.values()))
        elif isinstance(value, list):
            for item in value:
                walk(item)
        elif isinstance(value, float):
            found.append(value)

    for path in folder.rglob("*"):
        if path.suffix == ".json":
            walk(json.loads(path.read_text()))
        elif path.suffix == ".parquet":
            for column in pq.read_table(path).columns:
                if str(column.type) in ("double", "float"):
                    found += column.to_pylist()
    return np.array([value for value in found if value is not None])


def test_labels_and_errors_of_private_people_stay_with_them(run):
    """Labels and miles with all their digits, and what the public model is off by: no zone outside holds one, nor does a page."""
    rng = np.random.default_rng(5)
    miles = rng.gamma(2.0, 3.0, 600)
    chain = run(columns={"miles": miles, "paid": 4 + 2.5 * miles + rng.normal(0, 2, 600)})
    assert chain.page
    asked = published(chain)
    parts = [read_rows(chain.store.files(chain.held[name]), asked) for name in ("train", "test")]
    errors = [asked.residuals(rows.raw, rows.labels) for rows in parts]
    secret = np.concatenate([*errors, *(r.labels for r in parts), *(r.raw[:, 0] for r in parts)])
    assert len(np.unique(secret)) > 1100
    for zone in ("curator", "public", "simulation"):
        seen = numbers_in(chain.store.zone(zone))
        assert len(seen) > 100
        for width in (np.float64, np.float32):
            assert not np.isin(secret.astype(width), seen.astype(width)).any(), zone
    assert (
        np.isin(secret, numbers_in(chain.store.zone("holders"))).sum() > 700
    )  # labels and miles; errors are never written
    page = chain.store.file(chain.page["page"], "report.html").read_text()
    assert not any(f"{value:.6g}"[:7] in page for value in np.concatenate(errors)[:50] if abs(value) > 1)


def test_without_scores_there_is_no_simulation_and_the_page_is_the_curators(run):
    chain = run(evaluate=False)
    facts = read_facts(chain.store, chain.page["page"])
    assert (chain.page["page"].zone, facts.scores) == ("curator", None)
    assert not list(chain.store.zone("simulation").rglob("*"))


# Campaigns


def test_a_campaign_goes_on_with_its_base_and_takes_new_public_rows(tmp_path):
    names = [fares(tmp_path / f"{k}.csv", 600, k) for k in (1, 2)]
    plain = {"campaign": {"name": "paid"}, "evaluate": False, "dataset": NEW_PEOPLE}
    first = Chain(Store(tmp_path / "work"), mended(fares_config, names[0], **plain))
    before = learned(first)
    assert Chain(first.store, mended(fares_config, names[0], **plain)).published == first.published
    later = Chain(first.store, mended(fares_config, *names, **plain))
    model = learned(later)
    assert later.protocol == first.protocol
    assert later.published["question"].digest == first.published["question"].digest
    assert model.base.to_json() == before.base.to_json()
    assert (model.n_private, before.n_private) == (800, 400)
    assert (model.n_public, before.n_public) == (400, 200)
    was, now = (read_public(c.store, c.published["evidence"], published(first)) for c in (first, later))
    assert now.plan.public_count.sum() == 400
    assert now.plan.range.half == was.plan.range.half


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"correction": {"base": "boosting"}}, r"model\.base"),
        ({"correction": {"label_levels": 9}}, r"model\.label_levels"),
        ({"correction": {"residual_range": 3.0}}, r"model\.residual_range"),
        ({}, r"model\.estimator"),
    ],
)
def test_a_campaigns_terms_are_those_it_was_published_on(tmp_path, changes, key):
    path = fares(tmp_path / "a.csv", 300, 1)
    plain = {"campaign": {"name": "paid"}, "evaluate": False}
    first = Chain(Store(tmp_path / "work"), mended(fares_config, path, **plain))
    assert first.protocol
    make = partial(mended, fares_config) if changes else fares_config
    with pytest.raises(ProtocolMismatch, match=key):
        assert Chain(first.store, make(path, **plain, **changes)).named


# Scores


def test_scores_have_every_rival_and_say_what_they_promise(scored):
    scores = scores_of(scored)
    is_class = scores["label"] == "class"
    rivals = select_baselines(2 if is_class else 0)
    assert scores["kind"] == "correction"
    assert scores["scores"].keys() == {"ours", "public_only", "no_noise", *rivals}
    assert scores["n_test"] == scored.held.facts["n_test"]
    chief = "accuracy" if is_class else "mse"
    ours = scores["scores"]["ours"]
    for key, one in scores["scores"].items():
        assert one["interval"][0] <= one[chief] <= one["interval"][1]
        assert ("lead" in one) == (key != "ours")
    assert sum(b["n"] for b in scores["bins"]) == (0 if is_class else scores["n_test"])
    better = max if is_class else min
    assert better(ours[chief], scores["scores"]["public_only"][chief]) == ours[chief]


def scored_by_hand(chain, answers):
    """Accuracy or mean squared error of answers [n, 1] on the held-back rows."""
    labels = read_rows(chain.store.files(chain.held["test"]), published(chain)).labels
    if published(chain).label_classes:
        return np.mean(shares_of(answers).argmax(axis=1) == labels)
    return np.mean((answers[:, 0] - labels) ** 2)


def test_each_score_is_that_of_the_model_it_names(scored):
    """The released model, its public part alone, and the public part with the true mean errors of the people asked."""
    asked, model = published(scored), learned(scored)
    test = read_rows(scored.store.files(scored.held["test"]), asked)
    train = read_rows(scored.store.files(scored.held["train"]), asked)
    chief = "accuracy" if asked.label_classes else "mse"
    said = scores_of(scored)["scores"]
    base, found = model.public_answers(test.raw), model.answers(test.raw)
    assert said["public_only"][chief] == pytest.approx(scored_by_hand(scored, base))
    assert said["ours"][chief] == pytest.approx(scored_by_hand(scored, found))
    plan = read_public(scored.store, scored.published["evidence"], asked).plan
    errors = asked.residuals(train.raw, train.labels)
    cells = asked.partition.apply(asked.encoding.encode(train.raw))
    people = np.bincount(cells, minlength=asked.n_cells)
    assert people.min() > 0
    exact = ResidualEstimates(
        mean=plan.range.as_read(np.bincount(cells, weights=errors, minlength=asked.n_cells) / people),
        variance=errors.var() / people,
        mass=people.astype(float),
    )
    added = correct(plan, [exact]).correction[model.cells(test.raw)]
    assert said["no_noise"][chief] == pytest.approx(scored_by_hand(scored, base + added), rel=1e-4)


def test_a_cell_of_few_held_back_rows_says_nothing_and_others_say_both_models_scores(scored):
    asked, model = published(scored), learned(scored)
    rows = read_rows(scored.store.files(scored.held["test"]), asked)
    cells, told = model.cells(rows.raw), scores_of(scored)["cells"]
    sizes = np.bincount(cells, minlength=asked.n_cells)
    assert [one is None for one in told] == (sizes < FEWEST).tolist()
    assert {one is None for one in told} == {True, False}
    assert sum(one["n"] for one in told if one) == sizes[sizes >= FEWEST].sum()
    if (sizes >= FEWEST).all():
        chief = "accuracy" if asked.label_classes else "mse"
        for key in ("public", "ours"):
            mean = np.average([one[key] for one in told], weights=sizes)
            assert mean == pytest.approx(
                scores_of(scored)["scores"][{"public": "public_only"}.get(key, key)][chief]
            )


def test_redraws_spread_around_ours(scored):
    """Ours is one draw of the holders' coins, the redraws are 20 more: within 4 standard deviations, one time in 10,000 not."""
    scores = scores_of(scored)
    chief = "accuracy" if scores["label"] == "class" else "mse"
    spread = scores["redraws"]
    assert len(spread) == 20
    assert len(set(spread)) > 1
    assert abs(scores["scores"]["ours"][chief] - np.mean(spread)) < 4 * np.std(spread, ddof=1)


def test_with_a_large_budget_the_noise_costs_nothing(run):
    wide = {"residual_range": 15.0}  # that nobody's error is clipped
    chain = run(privacy={"epsilon": 40.0, "mechanism": "grr"}, n=900, model={"depth": 1}, correction=wide)
    scores = scores_of(chain)
    ours, exact = (scores["scores"][key]["mse"] for key in ("ours", "no_noise"))
    assert ours == pytest.approx(exact, rel=0.02)
    assert scores["redraws"] == pytest.approx([exact] * 3, rel=0.02)


# What a user does with it


def test_what_was_found_is_said_in_one_line(scored):
    assert scored.model.facts["says"] == learned(scored).corrections.says_of(())
    assert scored.model.facts["says"].startswith("The public model is wrong on private people")
    assert "\n" not in scored.model.facts["says"]


def test_that_nothing_was_found_is_said_too(run):
    alike = np.where(np.random.default_rng(2).random(600) < 0.5, "card", "cash")
    chain = run(make=rides_config, columns={"paid": alike}, privacy={"epsilon": 0.5}, evaluate=False)
    assert chain.model.facts["says"].startswith("Within noise of nothing")
    assert read_facts(chain.store, chain.page["page"]).model.is_found is False


def test_a_file_is_scored_by_both_parts(scored, tmp_path):
    path = scored.store.file(scored.model["model"], "model.json")
    model, rows = load_model(path), tables.read(scored.store.files(scored.held["test"]))
    pq.write_table(rows, tmp_path / "rows.parquet", row_group_size=50)
    assert predict_file(path, tmp_path / "rows.parquet", tmp_path / "out.parquet") == rows.num_rows
    out = pl.read_parquet(tmp_path / "out.parquet")
    raw = tables.raw_matrix(rows, model.encoding)
    if model.classes:
        np.testing.assert_array_equal(out["probability of card"].to_numpy(), model.predict_proba(raw)[:, 1])
        public = shares_of(model.public_answers(raw))
        np.testing.assert_array_equal(out["public probability of card"].to_numpy(), public[:, 1])
    else:
        np.testing.assert_array_equal(out["prediction"].to_numpy(), model.predict(raw))
        np.testing.assert_array_equal(out["public prediction"].to_numpy(), model.public_answers(raw)[:, 0])
        assert (out["mean_lower"] <= out["prediction"]).all()


def test_the_page_tells_of_every_cell_and_of_no_person(scored):
    facts = read_facts(scored.store, scored.page["page"])
    asked = published(scored)
    assert facts.model.figure == "correction"
    assert len(facts.model.cells) == len(facts.scores.cells) == facts.n_cells == asked.n_cells
    assert all(test is None or test.n >= FEWEST for test in facts.scores.cells)
    (base,) = facts.model.of_kind("public model")
    assert base.figures["trees"] == scored.published.facts["base_trees"]
    rows = read_rows(scored.store.files(scored.held["test"]), asked)
    told = numbers_of(asdict(facts))
    secret = asked.residuals(rows.raw, rows.labels)
    assert not np.isin(secret, told).any()


def numbers_of(value):
    if isinstance(value, dict):
        return numbers_of(list(value.values()))
    if isinstance(value, list | tuple):
        return [number for item in value for number in numbers_of(item)]
    return [value] if isinstance(value, float) else []
