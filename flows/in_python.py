"""Run the same steps from Python, in this process and without a server. `ldptree.run` starts here."""

from __future__ import annotations

import html
import os
import re
import tomllib
import warnings
import weakref
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from pathlib import Path
from shutil import rmtree
from tempfile import TemporaryDirectory, mkdtemp
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import parquet

from flows.budget import PROTECTS_NOBODY, say_who_rows_are
from flows.command.init import describe
from flows.executors import InlineExecutor
from flows.finish import finish, page_of_failure, say_estimator, stop_where_failed, summarize_run
from flows.naming import name_run
from flows.pipeline import Pipeline
from flows.work_folder.provenance import in_use, open_to_run
from ldptree.errors import ConfigError, LdptreeError
from ldptree.limits import is_number
from ldptree.models import Model
from schemas.config import RunConfig, load, parse
from schemas.dataset import FILE_SUFFIXES, DatasetSpec
from storage import frames
from storage.objects.addresses import refuse_bucket
from storage.raw.recognition.columns import ColumnsToRead
from storage.store import Store
from tasks.data.source import check_named
from tasks.first_look.proposal import propose, write_toml
from tasks.first_look.rehearsal import adjust_proposal
from tasks.first_look.values import look
from tasks.page.data import Run as Facts
from tasks.page.render import render_brief
from tasks.page.summary import headline
from tasks.predict import export_sql, load_model, predict_table, read_matrix
from tasks.progress import Timeline
from tasks.report import read_facts
from tasks.step import faults_stay_in_zone

HEIGHT = 320
"""Pixels of a page in a notebook; the rest is scrolled to."""


@dataclass(frozen=True, eq=False, repr=False)
class Run:
    """A finished run in Python.

    Attributes:
        summary: as `ldptree run --json` prints it.
        model: the released model.
        facts: everything that its page says, as values.
        work: the work folder; a temporary one is deleted when the run is.
    """

    summary: Mapping[str, Any]
    model: Model
    facts: Facts
    work: Path

    @property
    def epsilon(self) -> float:
        """Epsilon that each holder was promised."""
        return self.facts.privacy.epsilon

    @property
    def scores(self) -> dict[str, dict[str, float]]:
        """Metrics of the model ("ours") and of what it is held against, by name; empty of a release."""
        return (
            {score.key: dict(score.metrics) for score in self.facts.scores.models}
            if self.facts.scores
            else {}
        )

    @property
    def page(self) -> Path:
        """The HTML page."""
        return Path(self.summary["page"])

    @property
    def folder(self) -> Path:
        """Return the run's own folder, with its page, its model and the rules for reading rows."""
        return self.page.parent

    @property
    def protection(self) -> str:
        """Sentence that says whether the run protects the holders."""
        if self.summary["trial"]:
            return (
                f"{self.summary['protection']} It is a trial: release=True or campaign={{...}} asks people."
            )
        return PROTECTS_NOBODY if self.facts.privacy.seeded else str(self.summary["protection"])

    @property
    def estimator(self) -> str:
        """Sentence that says which estimator learned, and why that one."""
        return say_estimator(self.summary)

    @cached_property
    def headline(self) -> str:
        """Sentence that says what was found."""
        return headline(self.facts).text

    def predict(self, source: Any) -> Any:
        """Predict every row of a frame or of a data file, as `ldptree predict` writes it, in a frame of the same kind (pandas
        with its index, polars; a `pyarrow.Table` of anything else).

        Rows are read as the run read its own, derived columns and names of a headerless file too; they may lack the label.
        Raises ConfigError, DataError.
        """
        return predict(self.model, source)

    def to_sql(self, table: str = "data") -> str:
        """The model as one SELECT over a table, derived columns too, as `ldptree export --to sql` prints it."""
        return export_sql(self.model, table)

    def __str__(self) -> str:
        """The page's summary and which estimator learned, as Markdown."""
        return summarize_run(self.facts, self.summary)

    def __repr__(self) -> str:
        return f"<Run {self.summary['run']}: {self.headline} {self.estimator} {self.protection}>"

    def _repr_html_(self) -> str:
        """Return HTML with the finding and its ruler, the estimator, whom the run protects, and a link to the page. The frame
        separates its style from the notebook's and runs no script.
        """
        brief = html.escape(render_brief(self.facts), quote=True)
        title = html.escape(self.headline, quote=True)
        page = html.escape(os.path.relpath(self.page), quote=True)
        return (
            f'<iframe sandbox="" title="{title}" style="width:100%;height:{HEIGHT}px;border:0" srcdoc="{brief}">'
            f"</iframe><p>{html.escape(f'{self.estimator} {self.protection}')} "
            f'<a href="{page}" target="_blank">The whole page</a></p>'
        )


def run(
    source: Any,
    *,
    target: str | None = None,
    public: Any = None,
    epsilon: float | None = None,
    work: str | PathLike[str] | None = None,
    **settings: Any,
) -> Run:
    """As `ldptree.run` says. Raises LdptreeError."""
    refuse_bucket(str(work), "ldptree.run")
    laid = _lay_over(settings, target=target, public=public, epsilon=epsilon)
    is_written = isinstance(source, str | PathLike) and not _is_data(Path(source))
    with ExitStack() as undone:
        folder = Path(mkdtemp(prefix="ldptree-")) if work is None else Path(work)
        if work is None:
            undone.callback(rmtree, folder, ignore_errors=True)
        store = open_to_run(folder)
        with _messages_for_python(store, is_written=is_written, is_kept=work is not None):
            result = _run(_configure(source, store, laid), store)
        if work is None:
            weakref.finalize(result, rmtree, folder, ignore_errors=True)
        undone.pop_all()
        return result


def init(source: Any, *, target: str, public: str | None = None) -> dict[str, Any]:
    """As `ldptree.init` says. Raises DataError, ConfigError."""
    is_file = isinstance(source, str | PathLike)
    with TemporaryDirectory(prefix="ldptree-init-") as folder:
        path = Path(source) if is_file else Path(folder) / f"{frames.FRAME}.parquet"
        if not is_file:
            parquet.write_table(frames.read_frame(source, "ldptree.init"), path)
        proposal = propose(look(path, target=target, public=public), path.name, name="frame", public=public)
        adjust_proposal(proposal)
    print("\n".join(describe(proposal, public)))
    settings = tomllib.loads(write_toml(proposal))
    dataset = {key: value for key, value in settings["dataset"].items() if key not in ("name", "path")}
    return {"dataset": dataset, "privacy": settings["privacy"]}


def _run(config: RunConfig, store: Store) -> Run:
    if config.run.ray is not None:
        raise ConfigError(
            "run.ray: `ldptree.run` computes in this process. Leave it out, or use `ldptree run`."
        )
    if config.is_collection:
        raise ConfigError("collection: `ldptree.run` reads no inbox. Leave it out, or use `ldptree run`.")
    check_named(config.dataset)
    for sentence in say_who_rows_are(store, config):
        warnings.warn(sentence, stacklevel=4)
    timeline = Timeline()
    with faults_stay_in_zone(store, "run", "curator"), in_use(store.root), timeline.listening():
        pipeline = Pipeline(
            store=store,
            config=config,
            executor=InlineExecutor(store),
            timeline=timeline,
            name=name_run(config),
        )
        with page_of_failure(pipeline):
            stop_where_failed(pipeline)
            pipeline.walk()
            summary = finish(pipeline)
    model = load_model(Path(summary["model"]))
    return Run(summary, model, read_facts(store, pipeline.page["page"]), store.root)


def predict(model: Model, source: Any) -> Any:
    """As `ldptree.models.Model.predict` says of a frame or a file. Raises ConfigError, DataError, ArtifactCorrupt."""
    return frames.of_kind(predict_table(model, _rows_of(source)), source)


def read_raw(model: Model, source: Any) -> NDArray[np.float64]:
    """The rows of a frame or a file as `ldptree.models.Model.raw_matrix` says. Raises as `predict`."""
    return read_matrix(model, _rows_of(source))


def _rows_of(source: Any) -> Path | pa.Table:
    return Path(source) if isinstance(source, str | PathLike) else frames.read_frame(source, "predict")


@contextmanager
def _messages_for_python(store: Store, *, is_written: bool, is_kept: bool) -> Iterator[None]:
    """Messages say what to write in Python, unless the configuration `is_written` in a file; and name no file that is gone."""
    try:
        yield
    except LdptreeError as refusal:
        message = refusal.in_python if isinstance(refusal, ColumnsToRead) and not is_written else str(refusal)
        message = re.sub(r"did you mean (\w+)\.(\w+)\?", _as_keyword, message)
        if not is_written:
            message = re.sub(rf"\bdataset\.({'|'.join(DatasetSpec.model_fields)})\b", r"\1", message)
        if not is_kept and str(store.root) in message:
            message = message.replace(f"{store.root}{os.sep}", "")
            message += '\nThat file was in a temporary work folder, which is gone: run again with work="work" to have it.'
        if message == str(refusal):
            raise
        raise type(refusal)(message) from None


def _as_keyword(meant: re.Match[str]) -> str:
    """A key that may have been meant, as it is written in Python."""
    table, key = meant.groups()
    is_keyword = table == "dataset" or key == "epsilon"
    return f"did you mean {key}=...?" if is_keyword else f'did you mean {table}={{"{key}": ...}}?'


def _lay_over(settings: Mapping[str, Any], **words: Any) -> dict[str, Any]:
    """The settings with every word that is the key of a table in its table."""
    laid = {key: dict(value) if isinstance(value, Mapping) else value for key, value in settings.items()}
    for key in ("dataset", "privacy"):
        if not isinstance(laid.get(key, {}), Mapping):
            raise ConfigError(f"{key}: write its keys as a dict, as in {key}={{...}}")
    places = {"epsilon": "privacy"} | {
        key: "dataset" for key in DatasetSpec.model_fields if key not in RunConfig.model_fields
    }
    words = {**{key: laid.pop(key) for key in settings if key in places}, **words}
    for word, value in words.items():
        if value is not None:
            laid.setdefault(places[word], {})[word] = value
    return laid


def _configure(source: Any, store: Store, laid: dict[str, Any]) -> RunConfig:
    """The configuration that a source and what is laid over it make. Raises ConfigError."""
    if isinstance(source, str | PathLike):
        _check_rule(laid)
        path = Path(source)
        if not _is_data(path):
            return _changed(load(path if isinstance(source, PathLike) else source), laid)
        return _of_data(path.absolute(), path.name.partition(".")[0], laid)
    if isinstance(source, Mapping) and "dataset" in source:
        _check_rule(laid)
        return parse(_merged(source, laid), folder=Path.cwd())
    more = ", a TOML file, the name of a packaged configuration, or nested dicts with a table dataset"
    table, dataset = frames.read_frame(source, "ldptree.run", more), laid.setdefault("dataset", {})
    if hasattr(public := dataset.get("public"), "__len__") and not isinstance(public, str):
        table, dataset["public"] = frames.with_mask(table, public, source)
    _check_rule(laid)
    return _of_data(frames.keep_frame(table, store), "frame", laid)


def _is_data(path: Path) -> bool:
    """Return whether a file is rows, by its name, and no configuration."""
    return path.name.lower().endswith(FILE_SUFFIXES)


def _check_rule(laid: Mapping[str, Any]) -> None:
    """Raises ConfigError where the public rows are not given by a rule."""
    public = laid.get("dataset", {}).get("public")
    if isinstance(public, str | None):
        return
    if is_number(public) and 0 < public < 1:
        raise ConfigError(
            f'public: write public="random {public}" for this share of the rows, drawn by public coins'
        )
    raise ConfigError(
        'public: a mask says which rows of a frame are public; here write a rule, such as public="random 0.1" or '
        "public=\"zone = 'open'\""
    )


def _of_data(path: Path, name: str, laid: dict[str, Any]) -> RunConfig:
    """The configuration of rows alone. Raises ConfigError."""
    if not {"target", "public"} <= set(laid.get("dataset", {})):
        raise ConfigError(
            "ldptree.run: beside the data, name the target and say which rows are public, as in "
            """ldptree.run(data, target="paid", public="random 0.1")"""
        )
    dataset = {"name": name, "path": [str(path)]}
    return parse(_merged({"name": name, "dataset": dataset}, laid))


def _changed(config: RunConfig, laid: dict[str, Any]) -> RunConfig:
    """A configuration with what is laid over it, checked again. Raises ConfigError."""
    return parse(_merged(config.model_dump(mode="json", exclude_unset=True), laid)) if laid else config


def _merged(tables_below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(tables_below)
    for key, value in above.items():
        below = merged.get(key)
        is_table = isinstance(below, Mapping) and isinstance(value, Mapping)
        merged[key] = {**merged[key], **value} if is_table else value
    return merged
