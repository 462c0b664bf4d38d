"""Estimation in rounds with some public features. Each question may depend on what was published before it.

Semi-feature local differential privacy (HistOfTree, Ma, Jia and Yang, AISTATS 2025, Definition 3.1): holder i shows the
features that the mask W_i does not protect; the protected features and the label stay with the holder. Whom a question is
put to depends on public things alone (what is shown, public coins, published answers), so that the guarantee of a holder
who answers several questions is the sum of their epsilons (adaptive composition), and of one who answers a single
question that one's.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, TypeAlias

import numpy as np

from ldptree import serialize
from ldptree.errors import DataError, LdptreeError, ProtocolMismatch

if TYPE_CHECKING:
    from fractions import Fraction

    from numpy.typing import NDArray

    from ldptree.coins import Words

    Floats = NDArray[np.float64]
    Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class PublicView:
    """The public view of n holders.

    Attributes:
        values: float64 [n, d] scaled to [0, 1], and 0 wherever a holder protects the feature.
        protects: bool [n, d], the mask W.

    Raises:
        DataError: the shapes differ, the mask is not boolean, or a protected value is not 0.
    """

    values: Floats
    protects: Mask

    def __post_init__(self) -> None:
        if self.protects.dtype != bool or self.protects.shape != self.values.shape or self.values.ndim != 2:
            raise DataError(
                f"mask: {self.protects.dtype} of shape {self.protects.shape} for values of shape {self.values.shape}; "
                "one True (protected) or False (shown) for each value"
            )
        if self.values[self.protects].any():
            raise DataError("mask: a protected value is shown")

    @classmethod
    def of(cls, rows: Floats, protects: Mask) -> PublicView:
        """Return what holders with these complete rows, and masks, show. Only a simulation knows them."""
        return cls(np.where(protects, 0.0, rows), protects)

    @property
    def n(self) -> int:
        """Number of holders."""
        return int(self.values.shape[0])

    @property
    def d(self) -> int:
        """Number of features."""
        return int(self.values.shape[1])

    def part(self, holders: NDArray[np.integer] | Mask) -> PublicView:
        """Return the view of these holders."""
        return PublicView(self.values[holders], self.protects[holders])


About = Literal[
    "cell and label",
    "cell and error",
    "error along columns",
    "label bin",
    "feature bin",
    "label",
    "residual",
    "cell",
]
"""What a question asks for."""


@dataclass(frozen=True, kw_only=True)
class QuestionDescription:
    """The description of a published question and its answers, in figures and plain names without a sentence.

    Attributes:
        about: what it asks for.
        mechanism: how the answer is randomised, such as "joint oue" or "duchi".
        epsilon: what one answer spends, by the integers in use.
        figures: chances ("p", "q", "label_p"), noise ("noise_sd", "label_noise_sd"), sizes ("values", "size", "cells", "depth",
            "levels"), ends ("low", "high"), and for how many honest answers a forged one counts at most ("force"), as far as the
            question has them.
        feature: the encoded feature that it is about; None where it is about no single one.
        shape: what the residual of that feature's question is multiplied by.
    """

    about: About
    mechanism: str
    epsilon: float
    figures: dict[str, float] = field(default_factory=dict)
    feature: int | None = None
    shape: str = ""


@dataclass(frozen=True, eq=False, kw_only=True)
class PlayedAnswer:
    """One holder's true answer without noise, and what a report of it says, as one of several values or a number.

    Attributes:
        true: the number of the value, or the number, in the label's unit.
        values: int64 [k], the values that the holder can have, by what it shows; () of a number.
        named: bool [k], those of them that the report names.
        sent: the number that is sent; None of a value.
    """

    true: float
    values: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    named: Mask = field(default_factory=lambda: np.empty(0, np.bool_))
    sent: float | None = None


class Question(ABC):
    """One question to some of the holders, a frozen value with a JSON form, published before it is answered.

    Attributes:
        kind: name of the question's type; `from_json` finds it by this.
        epsilon: what an answer spends, rounded up from the integers in use.
        about: in a few words, for the ledger.
    """

    kind: ClassVar[str]

    @property
    @abstractmethod
    def epsilon(self) -> float:
        """See the class."""

    @property
    @abstractmethod
    def about(self) -> str:
        """See the class."""

    @abstractmethod
    def describe(self) -> QuestionDescription:
        """Describe the question and how it is answered."""

    @abstractmethod
    def respondents(self, n: int) -> NDArray[np.int64]:
        """Choose which of n holders are asked, increasing positions, by public coins alone."""

    @abstractmethod
    def randomize(self, rows: Floats, labels: Floats, protects: Mask, words: Words) -> NDArray[Any]:
        """Draw one report for each holder, [m, ...], on the holders' side.

        Args:
            rows: float64 [m, d], complete scaled rows of the holders asked.
            labels: float64 [m], in the label's own unit.
            protects: bool [m, d].
            words: the coins.
        """

    @abstractmethod
    def play(self, row: Floats, label: float, protects: Mask, words: Words) -> PlayedAnswer:
        """Return the true answer of one made-up holder beside a report of it, while a holder with a row of their own
        sends the report alone. Arguments as of `randomize`, for one holder, with row and mask [d].
        """

    @abstractmethod
    def is_valid(self, reports: NDArray[Any]) -> Mask:
        """Return which reports an honest holder can have sent, bool [m]. Raises DataError for another shape."""

    def law(self, row: Floats, label: float, protects: Mask) -> list[tuple[NDArray[Any], Fraction]]:
        """Return every report of one such holder with its exact chance, from the integers in use, for exact audits.

        Tests enumerate transcripts by it, and hold `randomize` against it. A question with
        finitely many outputs has one; which outputs there are may depend on what is shown, never on anything else.

        Args:
            row: float64 [d], the complete scaled row.
            label: in the label's own unit.
            protects: bool [d].

        Returns:
            (report, chance) pairs: a report as `randomize` gives it for one holder, reports[0], so that `np.stack` of
            several is what a round publishes; chances are positive and add up to 1, each output stands once.

        Raises:
            NotImplementedError: outputs are not finite.
        """
        raise NotImplementedError(f"{self.kind}: its outputs cannot be enumerated")

    def to_json(self) -> dict[str, Any]:
        """Return plain values only, its fields and `kind`."""
        return {"kind": self.kind, **serialize.to_plain(self)}

    @property
    def digest(self) -> str:
        """Return SHA-256 (hex) of its canonical JSON, by which a ledger knows it."""
        return serialize.digest_of(self.to_json())

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """The question that `to_json` wrote, checked anew. Raises ProtocolMismatch."""
        try:
            names = serialize.field_types(cls)
            if not isinstance(data, Mapping) or data.get("kind") != cls.kind:
                raise DataError(f'its "kind" is not {cls.kind}')
            if set(data) != {"kind", *names}:
                raise DataError(f"expected exactly the fields kind, {', '.join(names)}")
            return cls.read({name: data[name] for name in names})
        except (
            LdptreeError,
            TypeError,
            KeyError,
            AttributeError,
            ValueError,
            OverflowError,
            RecursionError,
        ) as error:
            raise ProtocolMismatch(f"question {cls.kind}: {error}") from None

    @classmethod
    def read(cls, data: Mapping[str, Any]) -> Self:
        """The question with these fields, all there, as plain values. Raises LdptreeError."""
        return cls(**serialize.read_fields(cls, data, of="question"))


@dataclass(frozen=True, eq=False)
class AnsweredQuestion:
    """One entry of a transcript.

    Attributes:
        question: what was asked.
        respondents: int64 [m], increasing positions in `PublicView` of those who answered.
        reports: [m, ...], what they sent.
    """

    question: Question
    respondents: NDArray[np.int64]
    reports: NDArray[Any]


Transcript: TypeAlias = Sequence[AnsweredQuestion]
"""All that is published of a conversation, in the order of its questions."""
