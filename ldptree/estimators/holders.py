"""Holders played on this machine. Their rows go in, and only their reports come out."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from ldptree.coins import Words
from ldptree.encoding import Encoding, NumericFeature, check_widths
from ldptree.errors import ConfigError
from ldptree.estimators.range_warnings import warn_of_assumed_features, warn_of_clipped_features
from ldptree.families.family import Counted, Evidence, PublicRows, Published, collect_answers
from ldptree.mechanisms import Mechanism
from ldptree.protocol.ledger import Charge, Ledger, RowRange
from ldptree.protocol.protocol import Protocol
from ldptree.protocol.totals import RawSums
from ldptree.validation import checked_range

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from ldptree.families.family import Family
    from ldptree.families.tree import LPCT, LPDT
    from ldptree.models.tree import AnyTree
    from ldptree.protocol.totals import Totals

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

MAX_REPORT_BYTES = 2**30
# reports that are in memory at once
_BLOCK_BYTES = 2**26


def encoding_of(
    public: Floats, names: Iterable[Any] | None, feature_range: tuple[ArrayLike, ArrayLike] | None
) -> Encoding:
    """Each column by the range of the public rows [n, d], or by the one that was given; (0, 1) where there is neither.

    Warns of the range it assumes, and of public values beyond the one given (AssumedRangeWarning).

    Raises:
        ConfigError: the range is none.
        DataError: public rows are too far apart.
    """
    columns = column_names(names, public.shape[1])
    if feature_range is None and len(public):
        low, high = public.min(axis=0), public.max(axis=0)
        check_widths(low, high, columns)
    elif feature_range is None:
        low, high = checked_range((0.0, 1.0), len(columns))
        warn_of_assumed_features(columns)
    else:
        low, high = checked_range(feature_range, len(columns))
        warn_of_clipped_features(columns, low, high, public)
    return encoding_between(columns, low, high)


def encoding_between(columns: Iterable[str], low: Floats, high: Floats) -> Encoding:
    """Numbers, each between its ends."""
    return Encoding(
        tuple(NumericFeature(name, float(a), float(b)) for name, a, b in zip(columns, low, high, strict=True))
    )


def column_names(names: Iterable[Any] | None, d: int) -> list[str]:
    """Return the names of the d columns of X, or x0, x1 and so on."""
    return [f"x{j}" for j in range(d)] if names is None else [str(name) for name in names]


def check_report(mechanism: Mechanism) -> None:
    """Raises ConfigError where one report would take over a GiB."""
    if mechanism.report_bytes > MAX_REPORT_BYTES:
        raise ConfigError(
            f"one {mechanism.full_name} report of {mechanism.n_cells:,} cells x {mechanism.n_classes} classes takes "
            f"{mechanism.report_bytes / 2**30:.1f} GiB, at most 1 is kept; choose a smaller depth"
        )


def target_name(columns: tuple[str, ...]) -> str:
    """A name for the label that no feature has."""
    name = "label"
    while name in columns:
        name += "_"
    return name


def public_seed(seeds: Ints | None) -> int:
    """Return the seed of public coins, from a simulation's seed or fresh."""
    return int.from_bytes(os.urandom(7), "little") if seeds is None else int(seeds[3])


def words_of(protocol: Protocol, seeds: Ints | None) -> Words:
    """Return the operating system's coins, or those of a simulation, which differ for any two protocols or rounds."""
    if seeds is None:
        return Words.system()
    round_number = protocol.round
    entropy = [*seeds[:3].tolist(), round_number, int(protocol.digest_unmarked, 16)]
    return Words.seeded(np.random.SeedSequence(entropy))


def respond_with(
    X: Floats,
    labels_of: Callable[[slice | Ints], NDArray[Any]],
    *,
    ledger: Ledger,
    seeds: Ints | None,
    start: int = 0,
) -> Callable[[Published[Evidence]], Counted[Evidence]]:
    """Return the holders' side of a conversation. Every private row [n, d] answers each question that it is asked once.

    Args:
        X: private rows.
        labels_of: the labels of some of them, as `Protocol.values` wants them.
        ledger: charged before a report is drawn.
        seeds: of a simulation, or None for the operating system's coins.
        start: the first row's place among the ledger's rows, where only a part of them responds.
    """

    def respond(published: Published[Evidence]) -> Counted[Evidence]:
        protocol = published.protocol
        check_report(protocol.mechanism)
        sums = _collect_sums(
            protocol, X, labels_of, ledger=ledger, words=words_of(protocol, seeds), start=start
        )
        return Counted(published, sums.totals(protocol.round))

    return respond


def _collect_sums(
    protocol: Protocol,
    X: Floats,
    labels_of: Callable[[slice | Ints], NDArray[Any]],
    *,
    ledger: Ledger,
    words: Words,
    start: int,
) -> RawSums:
    """Charge the ledger, have every private row that is asked answer once, and add the answers up.

    Who is asked in which of several questions is decided by public coins; everybody is charged with the first.
    """
    mechanism, round_number = protocol.mechanism, protocol.round
    asked = protocol.respondents(len(X))
    if not protocol.asked[0]:
        ledger.spend(
            Charge(
                question=f"{protocol.digest} {round_number}",
                epsilon=protocol.epsilon,
                who=RowRange(source="private rows", start=start, stop=start + len(X)),
                about=f"round {round_number}: {mechanism.full_name} on {protocol.n_cells:,} cells",
            )
        )
    sums = RawSums.none(protocol)
    step = max(1, _BLOCK_BYTES // mechanism.report_bytes)
    for first in range(0, len(asked), step):
        rows = slice(first, first + step) if protocol.asks_everybody else asked[first : first + step]
        outputs = protocol.draw_outputs(len(X[rows]), words)
        values = protocol.values(X[rows], labels_of(rows), words=words, outputs=outputs)
        sums.add(mechanism.randomize(values, words), outputs)
    return sums


@dataclass(frozen=True, eq=False, kw_only=True)
class SplitRows:
    """The rows of a fit. Some are public, and the private ones are seen by their holders only.

    Attributes:
        encoding: how rows are read.
        public_rows, private_rows: float64 [n, d], raw rows.
        public_labels, private_labels: class indices (-1 for a label that is not declared), or numbers.
        label: the declared classes, or the two ends of a number's range.
        ledger: charged before a private row reports.
        start: the first private row's place among the ledger's rows.
    """

    encoding: Encoding
    public_rows: Floats
    public_labels: NDArray[Any]
    private_rows: Floats
    private_labels: NDArray[Any]
    label: tuple[Any, ...]
    ledger: Ledger
    start: int = 0

    @property
    def n_public(self) -> int:
        """Number of public rows."""
        return len(self.public_labels)

    @property
    def n_private(self) -> int:
        """Number of private rows."""
        return len(self.private_labels)

    @cached_property
    def encoded(self) -> NDArray[np.float32]:
        """The public rows, encoded."""
        return self.encoding.encode(self.public_rows)

    def view(self, n_private: int | None = None) -> PublicRows:
        """Return what everybody can see if so many private rows will report (all for None)."""
        n = self.n_private if n_private is None else n_private
        return PublicRows(
            encoding=self.encoding, X=self.encoded, y=self.public_labels, label=self.label, n_private=n
        )

    def part(self, rows: Ints, start: int) -> SplitRows:
        """With these private rows only, the first of which stands at `start` in the ledger."""
        return replace(
            self, private_rows=self.private_rows[rows], private_labels=self.private_labels[rows], start=start
        )

    def respond(self, seeds: Ints | None) -> Callable[[Published[Evidence]], Counted[Evidence]]:
        """The holders' side of a conversation (`respond_with`)."""
        return respond_with(
            self.private_rows,
            self.private_labels.__getitem__,
            ledger=self.ledger,
            seeds=seeds,
            start=self.start,
        )


@dataclass(frozen=True, eq=False)
class Conversation:
    """A family of trees, what it saw, and the questions with their totals.

    Attributes:
        family: who asked.
        view: what everybody can see.
        transcript: questions and totals.
    """

    family: LPCT | LPDT
    view: PublicRows
    transcript: list[Counted[Any]]

    @classmethod
    def hold(cls, family: LPCT | LPDT, rows: SplitRows, seeds: Ints | None) -> Conversation:
        """Ask until nothing is left to ask."""
        view, asks = rows.view(), cast("Family[Any, Any, Counted[Any], AnyTree]", family)
        return cls(family, view, collect_answers(asks, view, rows.respond(seeds)))

    def fit(self, **reading: Any) -> AnyTree:
        """The model, by the family's own lam, prune and rule or by others."""
        model: AnyTree = replace(self.family, **reading).fit(self.view, self.transcript)
        return model

    @property
    def protocol(self) -> Protocol:
        """The last question."""
        return self.transcript[-1].protocol

    @property
    def totals(self) -> Totals:
        """The totals of the last question."""
        (totals,) = self.transcript[-1].totals
        return totals
