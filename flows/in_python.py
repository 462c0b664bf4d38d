"""A run from Python: the same steps in this process, without a server. Its entry point is what `ldptree.run` calls."""

from __future__ import annotations

import html
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa

from flows.execute import Plainly
from flows.finish import finish, page_of_failure, stop_where_failed
from flows.naming import name_run
from flows.pipeline import Pipeline
from flows.provenance import in_use
from ldptree.errors import ConfigError
from ldptree.models import Model
from schemas.config import RunConfig, load, parse
from schemas.dataset import FILE_SUFFIXES
from storage import tables
from storage.objects.addresses import refuse_bucket
from storage.store import Store
from tasks.data.source import check_named
from tasks.page.data import Run as Facts
from tasks.page.render import summarize
from tasks.page.summary import headline
from tasks.predict import load_model, predict_table
from tasks.progress import Timeline
from tasks.report import read_facts
from tasks.step import faults_stay_in_zone

FRAME = "frame.parquet"
UNNAMED_INDEX = "__index_level_"
"""Of pandas, where rows have labels in no column."""
HEIGHT = 900
"""Pixels of a page in a notebook; the rest is scrolled to."""


@dataclass(frozen=True, eq=False, repr=False)
class Run:
    """What a run from Python left.

    Attributes:
        summary: as `ldptree run --json` prints it.
        model: the released model.
        facts: everything that its page says, as values.
        work: the work folder.
        folder: kept while the run is: a temporary work folder goes with it.
    """

    summary: Mapping[str, Any]
    model: Model
    facts: Facts
    work: Path
    folder: TemporaryDirectory[str] | None = field(default=None)

    @property
    def epsilon(self) -> float:
        """What each holder was promised."""
        return self.facts.privacy.epsilon

    @property
    def scores(self) -> dict[str, dict[str, float]]:
        """Metrics of the model ("ours") and of what it is held against, by name; empty of a release."""
        return {one.key: dict(one.metrics) for one in self.facts.scores.models} if self.facts.scores else {}

    @property
    def page(self) -> Path:
        """The HTML page."""
        return Path(self.summary["report"])

    @cached_property
    def headline(self) -> str:
        """What was found, in a sentence."""
        return headline(self.facts).text

    def predict(self, source: Any) -> pa.Table:
        """What the model answers to every row of a frame or of a data file, as `ldptree predict` writes it.

        Rows are read as the run read its own, derived columns and names of a headerless file too; they may lack the label.
        Raises ConfigError, DataError.
        """
        return predict(self.model, source)

    def __str__(self) -> str:
        """The page's summary, as Markdown."""
        return summarize(self.facts)

    def __repr__(self) -> str:
        return f"<Run {self.summary['run']}: {self.headline}>"

    def _repr_html_(self) -> str:
        """The page in a frame of its own: neither its style nor the notebook's reaches the other, and no script runs."""
        page = html.escape(self.page.read_text(encoding="utf-8"), quote=True)
        title = html.escape(self.headline, quote=True)
        return (
            f'<iframe sandbox="" title="{title}" style="width:100%;height:{HEIGHT}px;border:0" srcdoc="{page}">'
            "</iframe>"
        )


def run(
    source: Any,
    *,
    target: str | None = None,
    public: str | None = None,
    epsilon: float | None = None,
    work: str | PathLike[str] | None = None,
    **settings: Any,
) -> Run:
    """As `ldptree.run` says. Raises LdptreeError."""
    folder = TemporaryDirectory(prefix="ldptree-", ignore_cleanup_errors=True) if work is None else None
    refuse_bucket(str(work), "ldptree.run")
    store = Store(folder.name if folder else Path(work or ""))
    store.check_rights()
    config = _configure(source, store, _lay_over(settings, target=target, public=public, epsilon=epsilon))
    if config.run.engine != "threads":
        raise ConfigError(
            "run.engine: `ldptree.run` computes in this process. Leave it out, or give `ldptree run`."
        )
    if config.store.address is not None:
        raise ConfigError("store: `ldptree.run` works in a folder. Leave it out, or give `ldptree run`.")
    check_named(config.dataset)
    timeline = Timeline()
    with faults_stay_in_zone(store, "run", "curator"), in_use(store.root), timeline.listening():
        pipeline = Pipeline(
            store=store, config=config, execute=Plainly(store), timeline=timeline, name=name_run(config)
        )
        with page_of_failure(pipeline):
            stop_where_failed(pipeline)
            pipeline.walk()
            summary = finish(pipeline)
    model = load_model(Path(summary["model"]))
    return Run(summary, model, read_facts(store, pipeline.page["page"]), store.root, folder)


def predict(model: Model, source: Any) -> pa.Table:
    """As `ldptree.models.Model.predict` says of a frame or a file. Raises ConfigError, DataError, ArtifactCorrupt."""
    return predict_table(
        model, Path(source) if isinstance(source, str | PathLike) else _table(source, "predict")
    )


def _lay_over(settings: Mapping[str, Any], **words: Any) -> dict[str, Any]:
    """The settings with the three words that have a place of their own in the tables of a configuration."""
    laid = {key: dict(value) if isinstance(value, Mapping) else value for key, value in settings.items()}
    places = {"target": "dataset", "public": "dataset", "epsilon": "privacy"}
    for word, value in words.items():
        if value is not None:
            laid.setdefault(places[word], {})[word] = value
    return laid


def _configure(source: Any, store: Store, laid: dict[str, Any]) -> RunConfig:
    """The configuration that a source and what is laid over it make. Raises ConfigError."""
    if isinstance(source, str | PathLike):
        path = Path(source)
        if not path.name.lower().endswith(FILE_SUFFIXES):
            return _changed(load(path if isinstance(source, PathLike) else source), laid)
        return _of_data(path.absolute(), path.name.partition(".")[0], laid)
    if isinstance(source, Mapping) and "dataset" in source:
        return parse(_merged(source, laid), folder=Path.cwd())
    return _of_data(_keep_frame(source, store), "frame", laid)


def _of_data(path: Path, name: str, laid: dict[str, Any]) -> RunConfig:
    """The configuration of rows alone. Raises ConfigError."""
    if not {"target", "public"} <= set(laid.get("dataset", {})):
        raise ConfigError(
            "ldptree.run: of data alone, say what is learned and which rows are public, as in "
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


def _table(frame: Any, called: str, more: str = "") -> pa.Table:
    """The columns of a frame. Raises ConfigError where it is none, naming what was called with it and what `more` it takes."""
    if not hasattr(frame, "__arrow_c_stream__"):
        raise ConfigError(
            f"{called}: a value of type {type(frame).__name__} is no source. Give a frame (polars, pandas 3 or pyarrow) or "
            f"the path of a data file{more}."
        )
    table = pa.table(frame)
    table = table.drop_columns([name for name in table.column_names if name.startswith(UNNAMED_INDEX)])
    # The same rows are the same file, whoever made the frame.
    columns = [_plain(table.column(index)) for index in range(table.num_columns)]
    return pa.table(columns, names=table.column_names)


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A column without the types and encodings that other readers of Arrow and Parquet do not have."""
    if pa.types.is_dictionary(column.type):
        kind = _plain_type(column.type.value_type)
        # By way of a dictionary of that type: Arrow decodes none of every type of text.
        return column.cast(pa.dictionary(pa.int32(), kind)).cast(kind)
    return column.cast(_plain_type(column.type))


def _plain_type(kind: pa.DataType) -> pa.DataType:
    if kind in (pa.large_string(), pa.string_view()):
        return pa.string()
    return pa.float32() if pa.types.is_float16(kind) else kind


def _keep_frame(frame: Any, store: Store) -> Path:
    """The rows of a frame as a file in the holders' zone. Raises ConfigError where it is no frame."""
    more = ", a TOML file, the name of a packaged configuration, or nested dicts with a table dataset"
    table = _table(frame, "ldptree.run", more)
    name = f"holders/frames/{FRAME}"
    with pa.BufferOutputStream() as buffer:
        with tables.writer(buffer, table.schema) as sink:
            sink.write_table(table)
        store.objects.put(name, buffer.getvalue().to_pybytes())
    return store.objects.path(name)
