"""A released model of any kind from its text. What a model is, is in `model` (classes), `regression` (numbers) and `shown_model`
(numbers, where some features are public).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ldptree.model import Model
from ldptree.regression import RegressionModel

if TYPE_CHECKING:
    from ldptree.shown_model import ShownModel

IN_ROUNDS = "ldptree model of public features"
# In JSON a quotation mark within a text is escaped: this can stand for nothing but the key.
_KIND = re.compile(r'"kind"\s*:\s*"([^"]*)"')


def read_model(text: str) -> Model | RegressionModel:
    """The model of one tree that `to_json` wrote. Raises DataError, as `TreeModel.from_json`."""
    return (RegressionModel if RegressionModel.KIND in _kinds(text) else Model).from_json(text)


def read_any(text: str) -> Model | RegressionModel | ShownModel:
    """The model that a run released. Raises DataError."""
    if IN_ROUNDS in _kinds(text):
        from ldptree.shown_model import ShownModel  # with the estimators that ask in rounds

        return ShownModel.from_json(text)
    return read_model(text)


def _kinds(text: str) -> set[str]:
    return set(_KIND.findall(text))
