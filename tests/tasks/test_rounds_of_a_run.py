"""A run in rounds, step by step: what is shown, asked, answered, published and learned, and what is refused."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from chain import RoundsChain, shells, shells_config

from flows.command.main import main
from flows.work_folder.garbage import collect_garbage
from flows.work_folder.provenance import explain_artifact
from ldptree.errors import ArtifactCorrupt, BudgetError, ConfigError, DataError, ProtocolMismatch
from storage.store import Store
from tasks.artifacts import read_published, read_shown, reports_of_table, table_of_reports
from tasks.holders.show import read_rows
from tasks.report import read_facts

TWO_ROUNDS = {"model": {"estimator": "histoftree", "t": 2, "p": 1}}
OWN_CHOICE = {"dataset": {"drop": []}, "features": {"private": [], "protects": {"weight": "hides"}}}
NO_SCORES = {"evaluate": False, "dataset": {"test_fraction": 0.0}}


def release(*paths, **changes):
    """A configuration whose holders' noise is the operating system's."""
    return shells_config(*paths, **{"simulation": {"noise_seed": None}, **TWO_ROUNDS, **NO_SCORES, **changes})


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    return shells(tmp_path_factory.mktemp("rows") / "shells.parquet", 500, 1)


@pytest.fixture(scope="module")
def done(rows, tmp_path_factory):
    """A release over, only to be read."""
    chain = RoundsChain(Store(tmp_path_factory.mktemp("done")), release(rows)).converse()
    assert chain.model
    return chain


@pytest.fixture
def copied(done, tmp_path):
    """The same release in a folder of its own, to be damaged; the holders' keys are as they were."""
    root = shutil.copytree(done.store.root, tmp_path / "work")
    return RoundsChain(Store(root), done.config)


def models_of(chain):
    return chain.store.file(chain.model["model"], "model.json").read_bytes()


def reports_in(chain):
    return sorted((chain.store.zone("curator") / "reports").rglob("*.parquet"))


@pytest.mark.parametrize(
    ("dataset", "where"),
    [
        ({"derive": {"heavy": "weight * 1.0"}}, "dataset.derive.heavy"),
        ({"where": "weight > 0.2"}, "dataset.where"),
        ({"where": "rings > 2"}, "dataset.where"),
        ({"public": "weight > 0.9"}, "dataset.public"),
    ],
)
def test_nothing_that_everybody_sees_is_made_of_what_holders_protect(rows, tmp_path, dataset, where):
    chain = RoundsChain(Store(tmp_path / "work"), shells_config(rows, dataset=dataset))
    with pytest.raises(ConfigError, match=f"{where}: uses .* which holders protect"):
        assert chain.ingested


@pytest.mark.parametrize("release", ["cells", "none"])
@pytest.mark.parametrize(
    ("key", "dataset"),
    [
        ("where", {"where": "hides = false OR zone = 'open'"}),
        ("where", {"where": "SIZE > 0.2 OR zone = 'open'"}),
        ("where", {"where": "kind = 'calm' OR zone = 'open'"}),
        ("public", {"public": "hides = false"}),
    ],
)
def test_under_a_mask_that_is_not_released_nobody_is_chosen_by_a_feature_or_by_the_mask(
    rows, tmp_path, release, key, dataset
):
    changes = OWN_CHOICE | {
        "dataset": {"drop": [], **dataset},
        "model": {"estimator": "histoftree", "mask_release": release},
    }
    chain = RoundsChain(Store(tmp_path / "work"), shells_config(rows, **changes))
    with pytest.raises(ConfigError, match=rf"dataset\.{key}: uses .*, which holders protect \(model"):
        assert chain.ingested


def test_under_a_mask_that_is_not_released_what_is_no_feature_may_choose_and_features_be_made_of_any(
    rows, tmp_path
):
    changes = OWN_CHOICE | {
        "dataset": {
            "drop": ["kind"],
            "where": "kind = 'calm' OR zone = 'open'",
            "derive": {"heavy": "weight * 2"},
        },
        "model": {"estimator": "histoftree", "mask_release": "none"},
    }
    assert RoundsChain(Store(tmp_path / "work"), shells_config(rows, **changes)).ingested


def test_who_takes_part_tells_nothing_of_what_a_protected_column_is_made_of(rows, tmp_path):
    """Also where that is no feature itself, and of the label; what is shown all the same tells nothing more."""
    heavy = {"derive": {"heavy": "weight * 2"}, "where": "weight > 0.2"}
    old = {"derive": {"old": "rings > 9"}, "target": "old", "drop": ["hides", "rings"], "where": "rings > 2"}
    for i, (dataset, private) in enumerate(
        [({**heavy, "drop": ["hides", "weight"]}, "heavy"), (old, "weight")]
    ):
        config = shells_config(rows, dataset=dataset, features={"private": [private]})
        with pytest.raises(ConfigError, match=r"dataset\.where: uses .*, which holders protect \(features\)"):
            assert RoundsChain(Store(tmp_path / f"{i}"), config).ingested
    config = shells_config(rows, dataset=heavy, features={"private": ["heavy"]})
    assert RoundsChain(Store(tmp_path / "shown"), config).ingested


def test_what_is_made_of_a_protected_value_may_be_protected_too(rows, tmp_path):
    changes = {"dataset": {"derive": {"heavy": "weight * 1.0"}}, "features": {"private": ["weight", "heavy"]}}
    chain = RoundsChain(Store(tmp_path / "work"), shells_config(rows, **changes))
    shown = read_shown(chain.store, chain.shown["shown"])
    assert shown.protects[0].sum() == 2


def test_answers_under_one_declaration_never_stand_for_another(rows, tmp_path):
    """With mask_release = "cells" nothing is shown either way, and what a holder could be in still differs."""
    settings = {
        "model": {"estimator": "histoftree", "mask_release": "cells", "t": 2, "p": 1},
    }
    narrow, wide = (
        RoundsChain(Store(tmp_path / "work"), shells_config(rows, **settings, features={"private": names}))
        for names in (["weight"], ["weight", "size"])
    )
    digests = [chain.shown["shown"].digest for chain in (narrow, wide)]
    assert digests[0] != digests[1]


def test_of_a_protected_value_nothing_is_shown(tmp_path):
    n, rng = 300, np.random.default_rng(2)
    is_private = np.arange(n) % 5 != 0
    weight = np.where(is_private, 0.123456789, rng.random(n))
    rings = np.where(is_private, 9.87654321, rng.uniform(0, 30, n))
    rows = shells(tmp_path / "a.parquet", n, 1, weight=weight, rings=rings)
    for name, changes in {
        "aligned": {},
        "own": OWN_CHOICE | {"dataset": {"drop": []}},
        "none": {"model": {"estimator": "histoftree", "mask_release": "none"}},
    }.items():
        chain = RoundsChain(Store(tmp_path / name), shells_config(rows, **changes))
        shown = read_shown(chain.store, chain.shown["shown"])
        hidden = int(shown.protects[:, 1].sum())  # after size
        assert (0 < hidden < shown.n) if name == "own" else (hidden == shown.n)
        assert shown.protects.all() == (name == "none")
        assert not shown.values[shown.protects].any()
        (path,) = (path for path in chain.store.files(chain.shown["shown"]) if path.suffix == ".parquet")
        written = np.stack([column.to_numpy() for column in pq.read_table(path).columns], axis=1).astype(
            float
        )
        low, high = weight[~is_private].min(), weight[~is_private].max()
        of_weight = np.isclose(written, (0.123456789 - low) / (high - low)).sum()
        assert of_weight == shown.n - hidden
        assert not np.isclose(written, 9.87654321).any()
        assert not np.isclose(written, 9.87654321 / 30).any()


def test_who_is_asked_and_what_is_shown_do_not_depend_on_private_values(tmp_path):
    n = 400
    rng = np.random.default_rng(5)
    paths = [
        shells(tmp_path / f"{i}" / "a.parquet", n, 1, weight=rng.random(n), rings=rng.uniform(0, 30, n))
        for i in range(2)
    ]
    facts, asked = [], []
    for path in paths:
        # Public rows give the range of weight: it is the same by configuration.
        config = shells_config(
            path, dataset={"ranges": {"weight": [0, 1]}, "test_fraction": 0.0}, evaluate=False
        )
        chain = RoundsChain(Store(path.parent / "work"), config)
        shown = read_shown(chain.store, chain.shown["shown"])
        question = read_published(chain.store, chain.next_question()["question"])
        facts.append(shown.values.tobytes() + shown.protects.tobytes())
        asked.append(question.respondents(shown.n).tolist())
    assert facts[0] == facts[1]
    assert asked[0] == asked[1]


def test_a_release_has_its_rounds_and_its_spend(done):
    assert [record.facts["n_asked"] for record in done.asked] == [done.held.facts["n_private"]] * 2
    assert sum(record.facts["epsilon"] for record in done.asked) <= 2.0
    assert (done.spent.largest, done.spent.questions) == (2.0, 1)
    for number, transcript in enumerate(done.transcripts, start=1):
        told = json.loads(done.store.file(transcript, "round.json").read_bytes())
        assert told == number
    assert set(pq.read_table(done.store.file(done.transcripts[0], "answers.parquet")).column_names) == {
        "holder",
        "report",
    }


def test_the_same_run_again_finds_every_step_and_costs_nothing(copied, done):
    before = {path: path.stat().st_mtime_ns for path in reports_in(copied)}
    again = copied.converse()
    assert {path: path.stat().st_mtime_ns for path in reports_in(again)} == before
    assert again.spent == done.spent
    assert models_of(again) == models_of(done)


def test_other_settings_are_charged_anew_though_their_first_question_is_the_same(copied, done):
    other = replace(
        copied, config=release(*done.config.dataset.path, model={"estimator": "histoftree", "t": 3, "p": 1})
    )
    other.converse()
    assert other.asked[0].facts["digest"] == done.asked[0].facts["digest"]
    assert other.asked[1].facts["digest"] != done.asked[1].facts["digest"]
    assert (other.spent.largest, other.spent.questions) == (4.0, 2)


def test_a_lifetime_cap_refuses_before_anybody_answers(copied, done):
    before = reports_in(copied)
    capped = release(
        *done.config.dataset.path,
        model={"estimator": "histoftree", "t": 3, "p": 1},
        privacy={"epsilon": 2.0, "lifetime_epsilon": 3.0},
    )
    with pytest.raises(BudgetError, match="lifetime cap is 3"):
        replace(copied, config=capped).converse()
    assert reports_in(copied) == before


def test_another_question_in_a_round_that_was_paid_for_is_refused(copied):
    charged = copied.respondents.cost(copied.ask([]))
    charged.check_question(1, copied.next_question()["question"].digest)
    with pytest.raises(BudgetError, match=r"round 2.*another question"):
        charged.check_question(2, "f" * 64)


def reworked(chain, change):
    """The first round's reports with its table changed, as a record that publish takes."""
    manifest = chain.answered[0][0]["reports"]
    (path,) = chain.store.files(manifest)
    holders, reports = reports_of_table(pq.read_table(path))
    table = table_of_reports(*change(holders.copy(), reports.copy()))
    pq.write_table(table, path)
    entry = manifest.files[0].model_copy(update={"digest": chain.store.hasher("curator").of_file(path)})
    forged = manifest.model_copy(update={"files": (entry,), "digest": entry.digest})
    return chain.answered[0][0].model_copy(update={"parts": {"reports": forged}})


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda holders, reports: (holders[1:], reports[1:]), "not one from each holder who was asked"),
        (lambda holders, reports: (holders + 1, reports), "not one from each holder who was asked"),
        (
            lambda holders, reports: (
                np.append(holders, holders[-1]),
                np.append(reports, reports[-1:], axis=0),
            ),
            "not one from each",
        ),
        (lambda holders, reports: (holders, np.full_like(reports, 251)), "does not allow"),
    ],
)
def test_answers_nobody_asked_for_or_that_no_question_allows_are_refused(copied, change, said):
    copied.converse()
    with pytest.raises(ProtocolMismatch, match=said):
        copied.publish(copied.asked[0], [reworked(copied, change)], 1)


def test_lost_answers_of_a_release_are_not_drawn_again(copied):
    path = reports_in(copied)[0]
    whole = path.read_bytes()
    path.unlink()
    with pytest.raises(ArtifactCorrupt, match=f"{path.name}: missing"):
        copied.converse()
    assert not path.exists()
    path.write_bytes(whole[:-1] + b"!")
    with pytest.raises(ArtifactCorrupt, match=f"{path.name}: damaged"):
        replace(copied).converse()
    # Neither are they where nothing but the ledger remembers them.
    path.unlink()
    shutil.rmtree(copied.store.zone("holders") / "perturb")
    with pytest.raises(ArtifactCorrupt, match=f"{path.name}: missing"):
        replace(copied).converse()


def test_lost_answers_of_a_later_round_stop_the_run_before_its_first(copied):
    late = next(path for path in reports_in(copied) if path.parent.name == "round-2")
    late.unlink()
    shutil.rmtree(copied.store.zone("holders") / "perturb")
    with pytest.raises(ArtifactCorrupt, match="round-2"):
        copied.converse()
    assert copied.asked == []


def test_garbage_leaves_what_a_release_was_answered_and_shown(copied, done):
    reports = reports_in(copied)
    collect_garbage(copied.store.root, keep=0, dry_run=False)
    assert reports_in(copied) == reports
    for path in (done.shown["shown"].path, *(q["question"].path for q in done.asked)):
        assert (copied.store.root / path).is_dir(), path
    assert models_of(copied.converse()) == models_of(done)


def test_a_seeded_run_is_the_same_in_every_work_folder(tmp_path):
    files = [shells(tmp_path / f"{i}.parquet", 200, i) for i in range(4)]
    config = shells_config(*files, **TWO_ROUNDS, **NO_SCORES)
    chains = [RoundsChain(Store(tmp_path / name), config).converse() for name in ("a", "b")]
    assert len(chains[0].held["train"].files) == 4
    assert len({models_of(chain) for chain in chains}) == 1
    assert len({chain.transcripts[-1].digest for chain in chains}) == 1
    other = RoundsChain(
        Store(tmp_path / "a"), shells_config(*files, **TWO_ROUNDS, **NO_SCORES, simulation={"noise_seed": 12})
    )
    assert models_of(other.converse()) != models_of(chains[0])


def test_two_releases_never_get_the_same_noise(rows, tmp_path):
    found = [RoundsChain(Store(tmp_path / name), release(rows)).converse() for name in ("a", "b")]
    assert len({chain.transcripts[0].digest for chain in found}) == 2


def test_a_mask_of_each_holders_own_is_obeyed_and_is_no_feature(rows, tmp_path):
    config = shells_config(rows, **TWO_ROUNDS, **NO_SCORES | {"dataset": {"drop": [], "test_fraction": 0.0}},
                           features=OWN_CHOICE["features"])  # fmt: skip
    chain = RoundsChain(Store(tmp_path), config).converse()
    shown = read_shown(chain.store, chain.shown["shown"])
    assert 0.5 < shown.protects[:, 1].mean() < 0.9
    assert not np.delete(shown.protects, 1, axis=1).any()
    learned = json.loads(models_of(chain))
    assert learned["private"] == ["weight"]
    assert "hides" not in json.dumps(learned["encoding"])


def test_a_mask_that_is_not_released_is_nowhere_but_with_the_holders(rows, tmp_path):
    config = shells_config(
        rows,
        model={"estimator": "histoftree", "mask_release": "none", "t": 2, "s": 1, "p": 1},
        features=OWN_CHOICE["features"],
        dataset={"drop": [], "test_fraction": 0.0},
        evaluate=False,
    )
    chain = RoundsChain(Store(tmp_path), config).converse()
    shown = read_shown(chain.store, chain.shown["shown"])
    assert shown.protects.all()
    assert len(chain.asked) == 2
    (shard,) = chain.store.files(chain.held["train"])
    assert "hides" in pq.read_schema(shard).names
    facts = read_facts(chain.store, chain.page["page"])
    assert {feature.protects for feature in facts.privacy.features} == {None}
    assert facts.privacy.mask_release == "none"


def test_where_a_holders_own_value_is_missing_they_take_part_all_the_same(tmp_path):
    n = 300
    weight = np.where(np.arange(n) % 2 == 0, 0.3, np.nan)
    weight[0] = 0.9  # a public row of each end
    rows = shells(tmp_path / "a.parquet", n, 1, weight=pa.array(weight, from_pandas=True))
    chain = RoundsChain(Store(tmp_path / "w"), shells_config(rows, **TWO_ROUNDS, **NO_SCORES))
    shown = read_shown(chain.store, chain.shown["shown"])
    assert shown.n == chain.held.facts["n_private"] == n - n // 5


@pytest.mark.parametrize(
    ("changes", "fault", "said"),
    [
        ({"features": {"private": ["wieght"]}}, ConfigError, 'features.private: "wieght" is not a feature; features are size'),
        ({"features": {"private": [], "protects": {"wieght": "kind"}}}, ConfigError, "features.protects: \"wieght\" is not"),
        (
            {"features": {"private": [], "protects": {"weight": "hides"}}},
            ConfigError,
            '"hides", which says who protects "weight", is not a column of the data, or dropped',
        ),
        (
            {"features": {"private": [], "protects": {"weight": "size"}}},
            DataError,
            'column "size": the mask of features.protects must be true or false',
        ),
    ],
)  # fmt: skip
def test_a_mask_that_does_not_fit_the_data_is_refused_before_anybody_is_asked(
    rows, tmp_path, changes, fault, said
):
    chain = RoundsChain(Store(tmp_path), shells_config(rows, **changes))
    with pytest.raises(fault, match=said):
        assert chain.shown
    assert not chain.store.zone("curator").joinpath("reports").exists()


def test_an_answer_is_explained_by_its_question(done):
    told = explain_artifact(done.store.root, str(reports_in(done)[0]))
    assert "made by perturb" in told
    assert "─ partition " in told
    assert "─ show " in told


@pytest.mark.parametrize("to", ["sql", "dot"])
def test_a_model_of_rounds_is_not_exported_as_one_tree(run_of, capsys, to):
    run = run_of("histoftree")
    with pytest.raises(SystemExit) as end:
        main(["export", str(run.store.file(run.model["model"], "model.json")), "--to", to])
    said = " ".join(capsys.readouterr().err.split())
    assert (end.value.code, f"--to {to}: a histoftree model is not one tree; write json" in said) == (2, True)


def test_labels_are_moved_into_the_range_and_missing_ones_to_its_middle(done):
    from tasks.artifacts import read_encoding
    from tasks.holders.show import Label

    (path,) = done.store.files(done.held["train"])
    encoding, _ = read_encoding(done.store, done.scaled["encoding"])
    label = Label(done.config.dataset.target, low=10.0, high=12.0)
    rows = read_rows(path, encoding, done.config.features, label)
    assert rows.labels.min() == 10.0
    assert rows.labels.max() == 12.0


@pytest.mark.parametrize("shape", [(), (3,)])
@pytest.mark.parametrize("n", [0, 2])
def test_reports_are_read_as_they_were_written_also_where_a_question_asks_nobody_of_a_shard(n, shape):
    holders, reports = np.arange(n), np.ones((n, *shape), np.uint8)
    read, found = reports_of_table(table_of_reports(holders, reports))
    np.testing.assert_array_equal(read, holders)
    np.testing.assert_array_equal(found, reports)
