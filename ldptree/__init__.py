"""The algorithms, usable without the pipeline. Names are imported at their first use, and only numpy is needed until
then. Their types are in `__init__.pyi`.
"""

from __future__ import annotations

from importlib import import_module
from os import PathLike
from typing import Any

__version__ = "0.1.0"
__all__ = [
    "CorrectionClassifier",
    "CorrectionRegressor",
    "HistOfTreeRegressor",
    "LPCTClassifier",
    "LPDTRegressor",
    "PublicFeatureClassifier",
    "PublicFeatureRegressor",
    "PublicRangeScaler",
    "__version__",
    "init",
    "read_model",
    "run",
]


def run(
    source: Any,
    *,
    target: str | None = None,
    public: Any = None,
    epsilon: float | None = None,
    work: str | PathLike[str] | None = None,
    **settings: Any,
) -> Any:
    """Run the pipeline in this process, without a Prefect server, and return what it learned (`flows.in_python.Run`).

    A run of a frame is a trial on data that you own: its noise is seeded, unless `release = True` or a campaign says otherwise.

    Args:
        source: a frame (polars, pandas or pyarrow), a data file (CSV or Parquet), or a configuration: a TOML file, the name of a
            packaged one, or nested dicts.
        target: the label's column.
        public: the rule that says which rows are public, such as "random 0.1" or "zone = 'open'"; or, of a frame, a mask: True or
            False for each row.
        epsilon: the budget of each private row; 1.0 where neither this nor a configuration says another.
        work: the work folder; a temporary one if None, which goes with the returned run.
        settings: further keys and tables of a configuration, such as `model={"estimator": "lpct"}` or `name="trial"`, and keys
            of its table `dataset`, such as `drop=["id"]`.

    Raises:
        ImportError: the pipeline is not installed.
        LdptreeError: as the command line's messages.
    """
    from ldptree.pipeline import find_pipeline

    here = find_pipeline("ldptree.run")
    return here.run(source, target=target, public=public, epsilon=epsilon, work=work, **settings)


def init(source: Any, *, target: str, public: str | None = None) -> dict[str, Any]:
    """Look at a frame or a data file, print what was seen, and return settings with which `run` reads it.

    As in `settings = ldptree.init(df, target="paid")` and, after a look at them, `ldptree.run(df, **settings)`.

    Args:
        source: a frame (polars, pandas or pyarrow), or a data file.
        target: the label's column.
        public: the rule that says which rows are public, to look at these alone. By default every row is looked at and a rule
            proposed, which is for a trial on data that you own.

    Raises:
        ImportError: the pipeline is not installed.
        LdptreeError: as the command line's messages.
    """
    from ldptree.pipeline import find_pipeline

    settings: dict[str, Any] = find_pipeline("ldptree.init").init(source, target=target, public=public)
    return settings


def read_model(path: str | PathLike[str]) -> Any:
    """Return the model that a run released, from the run's folder or its file `model.json`.

    Beside the run's `run.json` it reads rows as the run read its own.

    Raises:
        DataError: the file cannot be read, is no model, or was changed.
    """
    from os.path import dirname, isdir, isfile, join

    from ldptree.errors import DataError

    models = import_module("ldptree.models")
    if isdir(path):  # noqa: PTH112
        path = join(path, "model.json")  # noqa: PTH118
    beside = join(dirname(path), models.SUMMARY)  # noqa: PTH118, PTH120 - as `str` and any path
    try:
        content = _read(path)
        summary = _read(beside) if isfile(beside) else None  # noqa: PTH113
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise DataError(f"{path}: {reason}. Name the model.json that a run released.") from None
    try:
        return models.read_model(content, summary)
    except DataError as refusal:
        raise DataError(f"{path}: {refusal}") from None


def _read(path: str | PathLike[str]) -> bytes:
    with open(path, "rb") as file:  # noqa: PTH123
        return file.read()


def __getattr__(name: str) -> Any:
    if name in __all__:
        return getattr(import_module("ldptree.estimators"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
