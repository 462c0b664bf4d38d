"""A released model of any kind from its text. What a model is, is in `model` (classes), `regression` (numbers), `corrected` (a
public model and its corrections, of both) and `shown_model` (numbers, where some features are public).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, TypeAlias

from ldptree.errors import DataError
from ldptree.models.class_tree import Model
from ldptree.models.number_tree import RegressionModel

if TYPE_CHECKING:
    from ldptree.models.corrected import CorrectedModel
    from ldptree.models.public_view import ShownModel

Released: TypeAlias = "Model | RegressionModel | CorrectedModel | ShownModel"
"""What a run may release."""
CORRECTED = "ldptree corrected model"
IN_ROUNDS = "ldptree model of public features"
# In JSON a quotation mark within a text is escaped: this can stand for nothing but the key.
_KIND = re.compile(r'"kind"\s*:\s*"([^"]*)"')


def read_model(text: str) -> Model | RegressionModel:
    """The model of one tree that `to_json` wrote. Raises DataError, as `TreeModel.from_json`."""
    return (RegressionModel if RegressionModel.KIND in _kinds(text) else Model).from_json(text)


def read_any(text: str) -> Released:
    """The model that a run released. Raises DataError."""
    try:
        return _read(text, _kinds(text))
    except DataError:
        raise
    except (OverflowError, ValueError):  # beyond every float, as it is written or as it is read
        raise DataError("model: a number in it is too large; export it again") from None


def _read(text: str, kinds: set[str]) -> Released:
    if IN_ROUNDS in kinds:
        from ldptree.models.public_view import ShownModel  # with the estimators that ask in rounds

        return ShownModel.from_json(text)
    if CORRECTED in kinds:
        from ldptree.models.corrected import CorrectedModel  # with what reads reports

        return CorrectedModel.from_json(text)
    return read_model(text)


def _kinds(text: str) -> set[str]:
    return set(_KIND.findall(text))
