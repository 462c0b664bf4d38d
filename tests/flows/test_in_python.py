"""A run from Python: the same as from the command line, without a server; frames of every kind are one source."""

from __future__ import annotations

import ast
import gc
import sys
from html import unescape
from pathlib import Path
from tempfile import gettempdir

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from chain import Chain, learned, rides, rides_config
from page_truth.reading import read

import ldptree
from flows import in_python
from flows.budget import PAGE_IS_NOT_PRIVATE
from ldptree.errors import ConfigError, DataError
from storage import frames
from storage.store import Store

OF_RIDES = {
    "target": "paid",
    "public": "zone = 'open'",
    "epsilon": 2.0,
    "seed": 7,
    "dataset": {"drop": ["person"], "positive": "card"},
    "model": {"estimator": "lpct", "depth": 3},
    "simulation": {"noise_seed": 11},
    "evaluation": {"redraws": 3},
}


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return rides(tmp_path_factory.mktemp("data") / "rides.csv", 1200, seed=1)


@pytest.fixture(scope="module")
def of_frame(data):
    return in_python.run(pl.read_csv(data), **OF_RIDES)


@pytest.fixture(scope="module")
def of_file(data, tmp_path_factory):
    return in_python.run(data, work=tmp_path_factory.mktemp("w"), **OF_RIDES)


@pytest.mark.slow
def test_frames_of_every_kind_learn_the_same_model(data, of_frame):
    frame = pl.read_csv(data)
    labelled = frame.to_pandas()
    labelled.index = labelled.index[::-1].to_numpy() * 2.5
    for source in (pa.table(frame), labelled, frame.with_columns(pl.col("firm").cast(pl.Categorical))):
        assert in_python.run(source, **OF_RIDES).model.to_json() == of_frame.model.to_json()


def test_a_file_learns_the_model_of_the_pipeline(of_file, data, tmp_path):
    chain = Chain(Store(tmp_path / "work"), rides_config(data))
    assert chain.model
    assert of_file.model.to_json() == learned(chain).to_json()


def test_a_run_from_python_asks_no_server_and_says_what_it_found(of_frame):
    assert of_frame.epsilon == 2.0
    assert of_frame.scores["ours"]["accuracy"] > 0.5
    assert of_frame.page.read_text().startswith("<!doctype html>")
    assert of_frame.headline in of_frame.page.read_text()
    assert of_frame.headline in repr(of_frame)
    assert of_frame.headline in str(of_frame)
    assert str(of_frame.model).startswith("TreeModel of paid, from reports of ")


def test_chances_of_classes_are_of_the_rows_that_are_predicted(of_frame, data):
    frame, model = pl.read_csv(data), of_frame.model
    said = of_frame.predict(frame)
    shares = said.select(f"probability of {name}" for name in model.classes).to_numpy()
    for rows in (frame, frame.to_pandas(), frame.to_arrow(), data, model.raw_matrix(frame)):
        np.testing.assert_array_equal(model.predict_proba(rows), shares)
    assert model.predict_proba(frame.head(0)).shape == (0, 2)
    with pytest.raises(DataError, match="lacks the column 'miles'"):
        model.predict_proba(frame.drop("miles"))


@pytest.mark.parametrize("values", [(0, 1), (False, True), (0.0, 1.0), ("no", "yes")])
def test_predictions_are_of_the_labels_type_beside_the_rows_of_pandas(values, data):
    rows = pl.read_csv(data)
    frame = rows.with_columns(paid=pl.Series([values[paid == "card"] for paid in rows["paid"]]))
    words = OF_RIDES | {"dataset": {"drop": ["person"]}}
    learned, rows = in_python.run(frame, **words), frame.to_pandas()
    assert learned.model.classes == values
    rows.index = rows.index[::-1] + 7
    predicted = learned.predict(rows)
    assert predicted.index.equals(rows.index)
    assert predicted["prediction"].dtype == rows["paid"].dtype
    shares = learned.model.predict_proba(rows)
    assert predicted["prediction"].tolist() == np.array(learned.model.classes)[shares.argmax(axis=1)].tolist()
    assert learned.predict(frame)["prediction"].dtype == frame["paid"].dtype


def said_of_a_frame(frame, **words):
    with pytest.raises((ConfigError, DataError)) as refused:
        in_python.run(frame, **OF_RIDES | words)
    return str(refused.value)


def test_dates_of_a_frame_are_refused_with_what_to_write_in_python(data):
    frame = pl.read_csv(data).with_columns(
        when=pl.datetime(2024, 1, 1) + pl.duration(hours=pl.int_range(pl.len()))
    )
    said = said_of_a_frame(frame)
    assert said.startswith("the frame: a column holds numbers or dates that must be read first")
    assert "[dataset" not in said
    derive = said[said.index("derive={") + len("derive=") : said.index("}") + 1]
    readings = ast.literal_eval(derive)
    learned = in_python.run(frame, **OF_RIDES | {"derive": readings})
    assert set(readings) <= set(learned.model.encoding.columns)
    assert "when" not in learned.model.encoding.columns
    path = data.with_name("dated.toml")
    frame.write_parquet(data.with_name("dated.parquet"))
    path.write_text(
        'name = "dated"\n[dataset]\nname = "dated"\npath = "dated.parquet"\ntarget = "paid"\npublic = "random 0.3"\n'
    )
    with pytest.raises(DataError, match=r"Paste under \[dataset\.derive\]"):
        in_python.run(path)


def test_keys_of_the_data_set_are_keywords(data, of_frame):
    words = {key: value for key, value in OF_RIDES.items() if key != "dataset"} | OF_RIDES["dataset"]
    assert in_python.run(pl.read_csv(data), **words).model.to_json() == of_frame.model.to_json()
    assert "dataset: write its keys as a dict" in said_of_a_frame(pl.read_csv(data), dataset="rides")


MASKS = {
    "polars": lambda mask: mask,
    "numpy": lambda mask: mask.to_numpy(),
    "pandas": lambda mask: mask.to_pandas(),
    "pyarrow": lambda mask: mask.to_arrow(),
    "a list": lambda mask: mask.to_list(),
}


@pytest.mark.parametrize("kind", MASKS)
def test_a_mask_says_which_rows_are_public(kind, data):
    frame = pl.read_csv(data)
    mask = frame["zone"] == "open"
    table, rule = frames.with_mask(frame.to_arrow(), MASKS[kind](mask), frame)
    assert rule == '"public"'
    assert table["public"].to_pylist() == mask.to_list()
    kept = frame.with_columns(opted=mask, again=mask, public=pl.lit("no"))
    table, rule = frames.with_mask(kept.to_arrow(), MASKS[kind](mask), kept)
    assert rule == '"opted" AND "again"'
    assert table.column_names == kept.columns
    table, rule = frames.with_mask(kept.drop("opted", "again").to_arrow(), MASKS[kind](mask), kept)
    assert rule == '"public_"'


def test_what_tells_public_rows_is_no_feature(data):
    frame = pl.read_csv(data)
    mask = frame["zone"] == "open"
    for given in (frame, frame.with_columns(opted=mask)):
        learned = in_python.run(given, **OF_RIDES | {"public": mask.to_numpy()})
        assert not {"public", "opted"} & set(learned.model.encoding.columns)
        assert learned.summary["n_public"] == mask.sum()
        assert len(learned.predict(frame)) == len(frame)


def test_what_is_no_mask_is_refused(data):
    frame = pl.read_csv(data)
    mask = (frame["zone"] == "open").to_numpy()
    labelled = frame.to_pandas()
    shuffled = labelled.sample(frac=1, random_state=0)
    assert "public has shape (1199,), there are 1200 rows" in said_of_a_frame(frame, public=mask[1:])
    assert "must be a mask of True and False" in said_of_a_frame(frame, public=mask.astype(int))
    assert "has another index than the frame" in said_of_a_frame(labelled, public=shuffled["zone"].eq("open"))
    assert "one True or False for each row of the frame" in said_of_a_frame(labelled, public=labelled[mask])
    assert 'public="random 0.2"' in said_of_a_frame(frame, public=0.2)
    assert "write a rule" in said_of_a_frame(frame, public=True)
    assert "write a rule" in said_of_a_frame(data, public=mask)


def test_a_mask_of_no_row_or_of_every_row_says_what_to_pass(data):
    frame = pl.read_csv(data)
    none, every = np.zeros(1200, bool), np.ones(1200, bool)
    for mask, found, wanted in ((none, "False", "True"), (every, "True", "False")):
        said = said_of_a_frame(frame, public=mask)
        assert f"the mask is {found} for every row" in said
        assert f"pass a mask that is {wanted} for" in said
        assert 'public="random 0.1"' in said
        assert "dataset" not in said
    assert "Check public." in said_of_a_frame(data, public="zone = 'nowhere'")
    assert "Check public." in said_of_a_frame(frame, public="zone <> 'nowhere'")


def test_a_key_that_may_have_been_meant_is_shown_as_it_is_written_in_python(data):
    assert 'depht: unknown key; did you mean model={"depth": ...}?' in said_of_a_frame(data, depht=3)
    assert "espilon: unknown key; did you mean epsilon=...?" in said_of_a_frame(data, espilon=3)


def test_a_message_names_no_file_that_is_gone(data, tmp_path):
    frame = pl.read_csv(data).with_columns(paid=pl.when(pl.int_range(pl.len()) % 9 != 1).then("paid"))
    said = said_of_a_frame(frame)
    assert "not in all private rows: every row can be read, and paid is never missing" in said
    assert "are listed below holders/faults;" in said
    assert 'That file was in a temporary work folder, which is gone: run again with work="work"' in said
    assert str(Path(gettempdir())) not in said
    kept = said_of_a_frame(frame, work=tmp_path / "w")
    assert [*Path(kept[kept.index("listed below ") + len("listed below ") : kept.index(";")]).iterdir()]
    assert "gone" not in kept


@pytest.mark.parametrize("called", [in_python.run, lambda frame, **_: in_python.predict(None, frame)])
def test_a_frame_that_is_no_table_is_refused_without_its_values(data, called):
    frame = pl.read_csv(data).to_pandas()
    twice = frame.rename(columns={"firm": "miles"})
    mixed = frame.assign(miles=[object(), *frame["miles"][1:]])
    for given, message in (
        (twice, "the frame: has the column 'miles' twice"),
        (mixed, "the frame: the column 'miles' is of"),
    ):
        with pytest.raises(DataError, match=message) as refused:
            called(given, **OF_RIDES)
        assert refused.value.__cause__ is None


def test_a_notebook_shows_the_finding_in_a_frame_that_runs_no_script_and_leads_to_the_page(of_frame):
    shown = of_frame._repr_html_()
    frame, _, below = shown.partition("</iframe>")
    assert below.startswith(
        "<p>Estimator: lpct, as configured. This run protects nobody. Anyone with its seed can take the noise away. "
        "It is a trial: release=True"
    )
    assert frame.startswith('<iframe sandbox="" ')
    assert "<script" not in shown
    assert frame.count('"') == 8  # of four attributes: what is inside is escaped
    brief = read(unescape(frame.partition('srcdoc="')[2].removesuffix('">')))
    assert brief.first("h1").text == " ".join(of_frame.headline.split())
    assert brief.every("figure", "ruler")
    assert of_frame.headline in frame.partition(" style=")[0]
    assert Path(below.partition('href="')[2].partition('"')[0]).samefile(of_frame.page)


def test_a_run_says_which_estimator_learned_and_why(of_frame, data):
    assert str(of_frame).endswith("\n\nEstimator: lpct, as configured.\n")
    chosen = in_python.run(data, **OF_RIDES | {"model": {"depth": 3}})
    said = (
        f"Estimator: correction, as {chosen.summary['n_public']} public rows are enough for a public model, "
        "which reports can correct."
    )
    assert str(chosen).endswith(f"\n\n{said}\n")
    assert said in repr(chosen)


def test_a_release_that_is_scored_says_that_its_page_is_not_private(of_frame, data, tmp_path):
    words = {key: value for key, value in OF_RIDES.items() if key != "simulation"}
    scored = in_python.run(data, work=tmp_path / "w", release=True, **words)
    for said in (str(scored), repr(scored), scored.summary["protection"]):
        assert f"protects them. {PAGE_IS_NOT_PRIVATE}" in said.replace("\u00a0", " ")
        assert said.count(PAGE_IS_NOT_PRIVATE) == 1
    assert PAGE_IS_NOT_PRIVATE not in str(of_frame)


def test_a_run_says_whether_it_protects_anybody(of_frame, data, tmp_path):
    said = "This run protects nobody. Anyone with its seed can take the noise away."
    status = read(of_frame.page.read_text()).first("div", "status").text
    assert "so this run protects nobody" in status
    terminal, artifact = of_frame.summary["protection"], str(of_frame)
    for shown in (artifact, repr(of_frame), terminal):
        assert said in shown
    words = {key: value for key, value in OF_RIDES.items() if key != "simulation"}
    released = in_python.run(data, work=tmp_path / "w", release=True, evaluate=False, **words)
    assert "A collection: people drew the coins of the operating system" in str(released)
    assert released.protection == released.summary["protection"]
    assert "nobody" not in released.protection
    assert PAGE_IS_NOT_PRIVATE not in str(released)


@pytest.mark.filterwarnings("error::pytest.PytestUnraisableExceptionWarning")
def test_survey_weights_of_public_rows_are_those_of_their_forest_and_no_feature(data):
    frame = pl.read_csv(data).with_columns(w=pl.when(pl.col("miles") > 5).then(6.0).otherwise(0.5))
    words = OF_RIDES | {"model": {"estimator": "correction", "base": "forest", "questions": 1}}
    plain, weighted, doubled = (
        in_python.run(rows, **words, **more)
        for rows, more in (
            (frame.drop("w"), {}),
            (frame, {"weight": "w"}),
            (frame.with_columns(pl.col("w") * 2), {"weight": "w"}),
        )
    )
    assert weighted.model.encoding == plain.model.encoding
    raw = plain.model.raw_matrix(frame)
    answers = [run.model.public_answers(raw) for run in (plain, weighted, doubled)]
    assert not np.allclose(answers[0], answers[1])
    np.testing.assert_allclose(answers[1], answers[2], atol=1e-6)
    assert "Reports have no weights." in weighted.page.read_text()
    first = frame["zone"].to_list().index("open")
    holed = frame.with_columns(w=pl.Series([float(i != first) for i in range(len(frame))]))
    with pytest.raises(DataError, match=r"weight: 1 public row has no weight above 0"):
        in_python.run(holed, weight="w", **words)


def test_a_temporary_work_folder_goes_with_its_run(data):
    found = in_python.run(data, **OF_RIDES)
    work = found.work
    assert found.folder.is_relative_to(work)
    assert found.folder.is_dir()
    del found
    gc.collect()
    assert not work.exists()


def test_a_frame_stays_with_its_holders(of_frame):
    (frame,) = of_frame.work.rglob("the frame")
    assert frame.is_relative_to(of_frame.work / "holders")
    assert frame.stat().st_mode & 0o077 == 0


def test_the_released_model_is_read_again_from_its_file(of_frame):
    for path in (of_frame.summary["model"], of_frame.folder, str(of_frame.folder)):
        assert ldptree.read_model(path).to_json() == of_frame.model.to_json()


def test_what_is_no_model_is_named(tmp_path):
    (tmp_path / "rides.toml").write_text("[dataset]")
    with pytest.raises(DataError, match=r"rides\.toml: model: not JSON"):
        ldptree.read_model(tmp_path / "rides.toml")
    with pytest.raises(DataError, match=r"none\.json: no such file"):
        ldptree.read_model(str(tmp_path / "none.json"))


def test_a_model_without_the_pipeline_predicts_numbers_and_says_what_a_frame_needs(
    of_frame, data, monkeypatch
):
    monkeypatch.setattr("importlib.metadata.entry_points", lambda **_: [])
    model = ldptree.read_model(of_frame.summary["model"])
    with pytest.raises(
        ImportError, match=r"a frame or a file needs the pipeline.*pip install ldptree-pipeline"
    ):
        model.predict(pl.read_csv(data))
    raw = [[0.0] * len(model.encoding.columns)] * 2
    assert model.predict(raw).shape == (2,)
    with pytest.raises(DataError, match="give the frame itself"):
        model.predict([["A"] * len(model.encoding.columns)])


def test_two_runs_in_one_work_folder_keep_both_pages(data, of_file):
    again = in_python.run(data, work=of_file.work, **OF_RIDES)
    assert again.page != of_file.page
    assert of_file.page.is_file()
    assert {step["state"] for step in again.summary["steps"]} == {"cached"}


@pytest.mark.parametrize(
    ("source", "words", "message"),
    [
        (3, {}, "of type int is no source"),
        ("rides.csv", {"target": "paid"}, "which rows are public"),
        ("rides.csv", {"target": "paid", "public": "random 0.1", "modle": 1}, "modle"),
    ],
)
def test_what_is_no_source_or_no_setting_is_said(source, words, message, tmp_path):
    with pytest.raises(ConfigError, match=message):
        in_python.run(source, work=tmp_path / "w", **words)


def test_a_library_without_the_pipeline_says_what_to_install(monkeypatch):
    monkeypatch.setattr("importlib.metadata.entry_points", lambda **_: [])
    with pytest.raises(ImportError, match="pip install ldptree-pipeline"):
        ldptree.run("quickstart")


def test_every_name_of_the_package_is_there():
    assert all(getattr(ldptree, name) for name in ldptree.__all__)
    with pytest.raises(AttributeError):
        _ = ldptree.no_such_name
    assert Path(sys.modules["ldptree"].__file__).name == "__init__.py"


def test_settings_that_init_returns_run_as_they_are_on_the_frame_and_its_file(tmp_path, capsys):
    rng = np.random.default_rng(0)
    frame = pl.DataFrame(
        {
            "day": [f"{1 + i % 28:02}.0{1 + i // 60}.2024" for i in range(480)],
            "price": [f"${x:,.2f}" for x in rng.gamma(2, 900, 480)],
            "x": rng.normal(size=480),
        }
    ).with_columns(y=pl.when(pl.col("x") > 0).then(pl.lit("a")).otherwise(pl.lit("b")))
    frame.write_csv(tmp_path / "rows.csv")
    settings = ldptree.init(frame.to_pandas(), target="y")
    assert "read       price: money" in capsys.readouterr().out
    of_file = ldptree.init(tmp_path / "rows.csv", target="y")
    assert of_file["dataset"] | {"types": {}} == settings["dataset"] | {"types": {}}
    assert settings["privacy"] == {"epsilon": 1.0}
    assert not {"name", "path"} & {*settings["dataset"]}
    run = ldptree.run(frame, **settings, evaluation={"redraws": 0})
    assert "price_number" in run.model.columns_needed
