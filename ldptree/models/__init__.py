"""The released models, with what each of them can do, and a reader of any of them from its text."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from ldptree.errors import DataError
from ldptree.pipeline import find_pipeline
from ldptree.plain_text import escape_html
from ldptree.serialize import Document, read_document

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ldptree.encoding import Encoding, Level
    from ldptree.models.description import Description, Evidence

LEVEL = 0.9
"""Of the interval that stands beside a number."""
TWO_SD = 0.9545
"""Of an interval of two standard deviations to each side, as pages have them."""
MODELS: Mapping[str, str] = {
    "ldptree model": "ldptree.models.tree:TreeModel",
    "ldptree regression model": "ldptree.models.tree:TreeModel",
    "ldptree corrected model": "ldptree.models.corrected:CorrectedModel",
    "ldptree model of public features": "ldptree.models.public_view:PublicViewModel",
}
"""By the kind that stands in a text, where the class is; imported when it is read."""
SUMMARY = "run.json"
"""The summary of a run, beside its model."""


class Model(Document, ABC):
    """A released model, a value that predicts raw rows and describes itself.

    Attributes:
        encoding: how a raw row is read.
        target: the label's column.
        epsilon: what each holder spent, as claimed.
        n_private: holders who reported.
        summary: the text of the `run.json` that its run wrote beside it, which says how rows are read; None where none is.
    """

    encoding: Encoding
    target: str
    epsilon: float
    n_private: int
    summary: bytes | None = None

    @property
    @abstractmethod
    def columns_needed(self) -> tuple[str, ...]:
        """The raw columns that decide a prediction, in the encoding's order."""

    @overload
    def predict(self, rows: NDArray[np.float64]) -> NDArray[Any]: ...

    @overload
    def predict(self, rows: Any) -> Any: ...

    def predict(self, rows: Any) -> Any:
        """Predict rows.

        Args:
            rows: a raw matrix [n, columns]; or a frame (polars, pandas 3, pyarrow) or the path of a data file, whose rows are
                read as those that were learned from: this needs the pipeline.

        Returns:
            Of a raw matrix what `predict_raw` says, else a table of what `ldptree predict` writes, of the frame's kind (pandas
            with its index, polars; a `pyarrow.Table` of anything else).

        Raises:
            DataError: rows cannot be read, or lack a column.
            ImportError: the pipeline is not installed.
        """
        if _is_matrix(rows):
            return self.predict_raw(self.raw_matrix(rows))
        return _find_reader().predict(self, rows)

    def predict_proba(self, rows: Any) -> NDArray[np.float64]:
        """float64 [n, C] expected class shares of rows, which are given as to `predict`.

        Raises:
            DataError: rows cannot be read, or lack a column; or the label is a number.
            ImportError: rows are no matrix, and the pipeline is not installed.
        """
        raise DataError("model: the label is a number; ask for predict")

    def raw_matrix(self, rows: Any) -> NDArray[np.float64]:
        """Rows, as `predict` takes them, as a raw matrix float64 [n, columns]. Raises DataError, ImportError."""
        if not _is_matrix(rows):
            matrix: NDArray[np.float64] = _find_reader().read_raw(self, rows)
            return matrix
        try:
            return np.asarray(rows, dtype=np.float64)
        except (TypeError, ValueError):
            raise DataError(
                "rows to predict: a raw matrix holds numbers, of a category the place among its levels; give the frame itself, "
                "or the path of its file"
            ) from None

    @abstractmethod
    def predict_raw(self, raw: NDArray[np.float64]) -> NDArray[Any]:
        """Predict raw rows [n, columns] (see `ldptree.encoding`) as class indices or numbers [n]."""

    @abstractmethod
    def predict_columns(self, raw: NDArray[np.float64]) -> list[tuple[str, NDArray[Any]]]:
        """Return the columns of a table of predictions, by name. Two names may be the same."""

    @abstractmethod
    def describe(self, evidence: Evidence) -> Description:
        """Describe the model in numbers, of which a page is made."""

    def __str__(self) -> str:
        return (
            f"{type(self).__name__} of {self.target}, from reports of {self.n_private:,} private rows at epsilon "
            f"{self.epsilon:g}; reads {', '.join(self.columns_needed) or 'no column'}"
        )

    def _repr_html_(self) -> str:
        """Return its line and its tree, for a notebook."""
        return f'<p>{escape_html(str(self))}</p><div style="overflow-x:auto">{self.to_svg(TWO_SD)}</div>'

    def to_svg(self, level: float = 0.9) -> str:
        """Its tree as one SVG picture, with intervals of this level; nothing where it is not one tree."""
        return ""

    def summarize(self) -> dict[str, Any]:
        """Return the facts that a run tells of it, besides its digest."""
        return {}

    @abstractmethod
    def to_sql(self, table: str = "data", level: float = 0.9) -> str:
        """One SELECT over a table that returns its columns and the model's answers.

        Raises:
            ConfigError: it is no model that a SELECT can be.
        """

    @abstractmethod
    def to_dot(self, level: float = 0.9) -> str:
        """Its tree as Graphviz text, with intervals of this level.

        Raises:
            ConfigError: it is not one tree.
        """


def _is_matrix(rows: Any) -> bool:
    return isinstance(rows, np.ndarray | list | tuple)


def _find_reader() -> Any:
    """The pipeline, which reads frames and files. Raises ImportError."""
    instead = "; without it, a model predicts a matrix of numbers alone (`ldptree.encoding`)"
    return find_pipeline("predicting a frame or a file", instead)


def read_model(text: str | bytes, summary: bytes | None = None) -> Model:
    """The model that a run released, with what its run wrote beside it. Raises DataError."""
    data = read_document(text)
    kind = data.get("kind") if isinstance(data, Mapping) else None
    module, name = MODELS.get(str(kind), MODELS["ldptree model"]).split(":")
    model = getattr(import_module(module), name).from_data(data)
    if not isinstance(model, Model):
        raise DataError("model: of a kind that is not released")
    object.__setattr__(model, "summary", summary)
    return model


def class_columns(
    classes: Sequence[Level], decided: NDArray[Any], shares: NDArray[np.float64], prefix: str = ""
) -> list[tuple[str, NDArray[Any]]]:
    """The predicted class, of the type that classes have, and the probability of each class, with their names."""
    kinds = {type(value) for value in classes}
    plain = kinds.pop() if len(kinds) == 1 else str
    values = np.array([plain(value) for value in classes], dtype=object if plain is str else plain)
    of_each = [f"{prefix}probability of {value}" for value in classes]
    return [(f"{prefix}prediction", values[decided]), *zip(of_each, shares.T, strict=True)]
