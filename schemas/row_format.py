"""The format in which a run read its raw rows, kept beside its model so that other rows are read alike."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from pydantic import BeforeValidator, Field

from schemas.dataset import ColumnType, DatasetSpec, Names, Scalars, values_as_tuples
from schemas.tables import Table


class RowFormat(Table):
    """The format of a model's raw rows. Its types come from the configuration and from public rows."""

    model: str
    """The digest of the model."""
    target: str
    """The label's column, which rows to predict may lack."""
    columns: Names = ()
    """Names of a file without a header."""
    delimiter: str | None = None
    encoding: str | None = None
    """Of a text that is not UTF-8."""
    skip: int = 0
    """Lines above the header, or above the first row."""
    sheet: Names = ()
    """Of a workbook."""
    nulls: Names
    """Texts that mean "missing"."""
    missing: Annotated[dict[str, Scalars], BeforeValidator(values_as_tuples)] = Field(default={})
    """Values of a column that mean it, too."""
    timezone: str | None = None
    """Of hours and days of an instant; None: UTC."""
    types: dict[str, ColumnType]
    """Of the features, and of the raw columns that some of them are derived from."""
    derive: dict[str, str]
    """Features that are SQL expressions over one raw row."""

    @classmethod
    def of_names(cls, types: dict[str, ColumnType]) -> RowFormat:
        """The format of rows that have columns of these names, of which no run says more."""
        return cls(model="", target="", nulls=("",), types=types, derive={})

    @classmethod
    def of(
        cls,
        model: str,
        dataset: DatasetSpec,
        features: Sequence[str],
        columns: Sequence[Sequence[str]],
        derived_from: dict[str, ColumnType],
    ) -> RowFormat:
        """The format of a run's rows.

        Args:
            model: its digest.
            dataset: what the configuration says of the rows.
            features: names of the features.
            columns: name and type of every column that ingest kept, and how it is stored.
            derived_from: types of raw columns that others are derived from.
        """
        kept = {name: kind for name, kind, _ in columns if name in features}
        return cls.model_validate(
            {
                "model": model,
                "target": dataset.target,
                "columns": dataset.columns,
                "delimiter": dataset.delimiter,
                "encoding": dataset.encoding,
                "timezone": dataset.timezone,
                "skip": dataset.skip,
                "sheet": dataset.sheet,
                "nulls": dataset.nulls,
                "missing": dataset.missing,
                "types": derived_from | kept,
                "derive": {name: text for name, text in dataset.derive.items() if name in features},
            }
        )
