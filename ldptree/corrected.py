"""The released model: a public model and what is added to it, cell by cell; predictions, intervals, canonical JSON with a digest.

What lives here: the value. What does not: how the parts come about (`public_model`, `correction`), files, and scoring.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from ldptree.correction import Corrections
from ldptree.correction_slope import FoundSlope
from ldptree.encoding import Encoding, Level
from ldptree.ensemble import Ensemble
from ldptree.errors import DataError
from ldptree.limits import LARGEST
from ldptree.partition.raw import RawTree
from ldptree.partition.tree import Partition
from ldptree.public_model import answers, n_outputs
from ldptree.shares import half_width
from ldptree.slope import Slope, uncut
from ldptree.weighting import DiscrepancyPrior

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

KIND = "ldptree corrected model"
VERSION = 1
LEAST_OF_PUBLIC = 0.1
"""The part of a public share that no correction takes away (docs/correction.md)."""
_ARRAYS = ("share", "correction", "sd", "observed", "noise_sd", "discrepancy")
_PLAIN: dict[str, tuple[type, ...]] = {
    "target": (str,),
    "epsilon": (int, float),
    "mechanism": (str,),
    "n_private": (int,),
    "n_public": (int,),
}


@dataclass(frozen=True, eq=False)
class Said:
    """Both parts of the answer to n rows, each float64 [n, M], in the label's unit.

    Attributes:
        public: what the public model alone says.
        correction: what is added.
        sd: how unsure that is.
        is_share: whether the outputs are shares of classes.
    """

    public: Floats
    correction: Floats
    sd: Floats
    is_share: bool = False

    @property
    def corrected(self) -> Floats:
        """float64 [n, M]."""
        return together(self.public, self.correction) if self.is_share else self.public + self.correction

    def interval(self, level: float) -> tuple[Floats, Floats]:
        """Ends of what is believed of the outputs, not cut to a share's range. Raises ConfigError."""
        half = half_width(level) * self.sd
        return self.corrected - half, self.corrected + half


@dataclass(frozen=True, eq=False, kw_only=True)
class CorrectedModel:
    """A public model mended by private reports; M outputs as in `PublicModel`.

    Attributes:
        encoding: how a raw row is read.
        base: the public model, on encoded rows.
        partition: the collection tree, on encoded rows.
        corrections: what is added in its cells.
        classes: the C labels, class 1 the positive one where there are two; none for a number.
        default: float64 [M], the answer to a row that cannot be encoded.
        target: the label's column.
        epsilon: what each holder spent, as claimed.
        mechanism: how reports were made, such as "joint oue".
        n_private: holders who reported.
        n_public: public rows.
        protocol_digests: of the question that was answered; or of M questions, one an output.
        slope: the second public model, of which the corrections say how much of its difference is added; None without.

    Raises:
        DataError: the parts do not fit each other.
    """

    encoding: Encoding
    base: Ensemble
    partition: Partition
    corrections: Corrections
    classes: tuple[Level, ...]
    default: Floats
    target: str
    epsilon: float
    mechanism: str
    n_private: int
    n_public: int
    protocol_digests: tuple[str, ...]
    slope: Slope | None = None

    def __post_init__(self) -> None:
        d, found = self.encoding.n_encoded, self.corrections
        self._check_slope()
        if max(self.base.feature.max(), self.partition.feature.max() - (self.slope is not None)) >= d:
            raise DataError(f"corrected model: a tree tests a column that the encoding's {d} do not have")
        if len(self.classes) == 1 or len(set(self.classes)) != len(self.classes):
            raise DataError("corrected model: classes are at least 2, each once, or none for a number")
        m = n_outputs(len(self.classes))
        shapes = dict.fromkeys(_ARRAYS, (self.partition.n_leaves, m)) | {"share": (self.partition.n_leaves,)}
        for name, shape in shapes.items():
            array: Floats = getattr(found, name)
            if array.shape != shape or np.isnan(array).any():
                raise DataError(f"corrected model: {name} has shape {array.shape} or a NaN, expected {shape}")
            if name != "noise_sd" and not np.isfinite(array).all():
                raise DataError(f"corrected model: {name} is not finite")
            if name in ("share", "sd", "noise_sd") and (array < 0).any():
                raise DataError(f"corrected model: {name} is below 0")
        if self.default.shape != (m,) or not np.isfinite(self.default).all():
            raise DataError(f"corrected model: default has shape {self.default.shape}, expected ({m},)")
        if len(found.priors) != m or len(self.protocol_digests) not in (1, m):
            raise DataError(
                f"corrected model: expected {m} priors, one an output, and one protocol digest or as many"
            )
        if self.base.n_outputs not in ({1, 2} if len(self.classes) == 2 else {m}):
            raise DataError(f"corrected model: the public model has {self.base.n_outputs} outputs, not {m}")
        if not self.classes and self.base.link != "identity":
            raise DataError(
                f'corrected model: the public model\'s link "{self.base.link}" is none of numbers'
            )

    def _check_slope(self) -> None:
        found, d = self.corrections.slope, self.encoding.n_encoded
        if (self.slope is None) != (found is None):
            raise DataError("corrected model: a slope and how much of it is added go together")
        if self.slope is None or found is None:
            return
        if self.classes:
            raise DataError("corrected model: a slope is for a label that is a number")
        if self.slope.trees.feature.max() >= d:
            raise DataError(f"corrected model: the slope tests a column that the encoding's {d} do not have")
        self.slope.longer(self.encoding)
        uncut(self.partition, d)
        numbers = np.array([found.amount, found.sd, found.tau, *found.centre])
        if found.centre.shape != (self.partition.n_leaves,) or not np.isfinite(numbers).all():
            raise DataError("corrected model: what is said of the slope is not finite numbers, one a cell")
        if found.sd < 0 or found.tau < 0:
            raise DataError("corrected model: the slope's sd or tau is below 0")

    @cached_property
    def raw_tree(self) -> RawTree:
        """The collection tree in raw units, of rows lengthened by one column where there is a slope."""
        encoding = self.encoding if self.slope is None else self.slope.longer(self.encoding)
        return RawTree.of(self.partition, encoding)

    @cached_property
    def columns_needed(self) -> tuple[str, ...]:
        """The raw columns that decide an answer, in the encoding's order: those of some test, and those without a rule."""
        raw_column = np.repeat(self.encoding.columns, [len(f.names) for f in self.encoding.features])
        features = self.base.feature
        if self.slope is not None:
            features = np.concatenate([features, self.slope.trees.feature])
        tested = raw_column[features[features >= 0]]
        used = {*tested.tolist(), *self.raw_tree.columns_used, *self.encoding.columns_without_rule}
        return tuple(column for column in self.encoding.columns if column in used)

    def cells(self, raw: Floats) -> NDArray[np.int32]:
        """int32 [n] the cell of each raw row [n, columns]; -1 where a value is missing that no rule fills."""
        rows = np.asarray(raw, dtype=np.float64)
        if self.slope is not None:
            rows = self.slope.lengthened(self.encoding, self.base, rows)
        found: NDArray[np.int32] = self.raw_tree.apply(rows)
        return np.where(self.encoding.encodable(raw), found, np.int32(-1))

    def said(self, raw: Floats) -> Said:
        """Both parts of the answer to raw rows [n, columns].

        A row that cannot be encoded gets `default` from both models, and the largest doubt of any cell.
        """
        cells = self.cells(raw)
        is_whole = cells >= 0
        public = np.tile(self.default, (len(cells), 1))
        correction, sd = np.zeros_like(public), np.tile(self.corrections.sd.max(axis=0), (len(cells), 1))
        encoded = self.encoding.encode(np.asarray(raw, dtype=np.float64)[is_whole])
        public[is_whole] = answers(self.base, encoded, len(self.classes))
        apart = None if self.slope is None else self.slope.apart(self.base, encoded)
        correction[is_whole] = self.corrections.added(cells[is_whole], apart)
        sd[is_whole] = self.corrections.doubt(cells[is_whole], apart)
        return Said(public, correction, sd, is_share=bool(self.classes))

    def apart(self, raw: Floats) -> Floats | None:
        """How far the second public model is from the first, float64 [n], NaN for a row without a cell; None without a slope."""
        if self.slope is None:
            return None
        return self.slope.lengthened(self.encoding, self.base, raw)[:, -1]

    def public_answers(self, raw: Floats) -> Floats:
        """float64 [n, M] what the public model alone says of raw rows."""
        return self.said(raw).public

    def answers(self, raw: Floats) -> Floats:
        """float64 [n, M] the public model's answers, corrected."""
        return self.said(raw).corrected

    def predict(self, raw: Floats) -> Floats:
        """float64 [n] the number expected of each raw row. Raises DataError where the label is a class."""
        if self.classes:
            raise DataError("corrected model: the label is a class; ask for predict_proba")
        return self.answers(raw)[:, 0]

    def predict_proba(self, raw: Floats) -> Floats:
        """float64 [n, C] expected class shares. Raises DataError where the label is a number."""
        if not self.classes:
            raise DataError("corrected model: the label is a number; ask for predict")
        return shares_of(self.answers(raw))

    def interval(self, raw: Floats, level: float) -> tuple[Floats, Floats]:
        """Ends of what is believed of the outputs, given the public model's shape in a cell, each float64 [n, M].

        They speak of the mean of people like the row's, and of how sure the correction is; of shares, not beyond [0, 1].

        Raises:
            ConfigError: `level` is not between 0 and 1.
        """
        low, high = self.said(raw).interval(level)
        return (np.clip(low, 0.0, 1.0), np.clip(high, 0.0, 1.0)) if self.classes else (low, high)

    @cached_property
    def digest(self) -> str:
        """SHA-256 (hex) of the canonical JSON without the digest itself."""
        return hashlib.sha256(_canonical(self._plain()).encode()).hexdigest()

    def to_json(self) -> str:
        """The canonical text: sorted keys, no spaces, its own digest in it; an infinite number is the text "inf"."""
        return _canonical(self._plain() | {"digest": self.digest})

    def _plain(self) -> dict[str, Any]:
        found = self.corrections
        return {
            "kind": KIND,
            "version": VERSION,
            "encoding": self.encoding.to_json(),
            "base": self.base.to_json(),
            "partition": self.partition.to_json(),
            "classes": list(self.classes),
            "default": self.default.tolist(),
            "protocol_digests": list(self.protocol_digests),
            "priors": [[float(p.root), float(p.step), float(p.decay)] for p in found.priors],
            **{name: _words(getattr(found, name).tolist()) for name in _ARRAYS},
            **{name: getattr(self, name) for name in _PLAIN},
        } | self._plain_slope()

    def _plain_slope(self) -> dict[str, Any]:
        found = self.corrections.slope
        if self.slope is None or found is None:
            return {}
        said = {"amount": found.amount, "sd": found.sd, "tau": found.tau, "centre": found.centre.tolist()}
        return {"slope": self.slope.to_json() | said}

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """The model that `to_json` wrote, every part checked anew.

        Raises:
            DataError: not such a model, of an unknown version, a field absent, unknown or of a wrong type, parts that do not fit,
                or a digest that is not that of the content.
        """
        try:
            data = json.loads(text, parse_constant=_no_constant)
        except (ValueError, RecursionError):
            raise DataError("corrected model: not JSON; is it a model file, and whole?") from None
        if not isinstance(data, dict) or data.get("kind") != KIND or data.get("version") != VERSION:
            raise DataError(f"corrected model: not an {KIND} of version {VERSION}")
        expected = {"kind", "version", "digest", "encoding", "base", "partition", "classes", "default"}
        expected |= {"protocol_digests", "priors", *_ARRAYS, *_PLAIN, *({"slope"} & set(data))}
        for name in sorted(expected ^ set(data)):
            raise DataError(
                f'corrected model: field "{name}" is {"absent" if name in expected else "unknown"}'
            )
        stated = data.pop("digest")
        try:
            if stated != hashlib.sha256(_canonical(data).encode()).hexdigest():
                raise DataError("corrected model: its digest is not that of its content; export it again")
            return cls(**_arguments(data))
        except DataError:
            raise
        except (OverflowError, ValueError):  # beyond every float, as it is written or as it is read
            raise DataError("corrected model: a number in it is too large; export it again") from None


def together(public: Floats, added: Floats) -> Floats:
    """Public shares and what is added to them, float64 [n, M], in [0, 1].

    A correction is that of a whole cell, and a row may be unlike its cell. Of what the public model leaves to a class, or to all
    others, `LEAST_OF_PUBLIC` stays: of two classes no row's log loss rises by more than -ln of that, and the likelier stays so.
    """
    found: Floats = np.maximum(
        np.minimum(public + added, 1.0 - LEAST_OF_PUBLIC * (1.0 - public)), LEAST_OF_PUBLIC * public
    )
    return found


def shares_of(found: Floats) -> Floats:
    """float64 [n, C] shares in [0, 1] that add up to 1, from outputs [n, M] that may lie outside."""
    kept = np.clip(found, 0.0, 1.0)
    if found.shape[1] == 1:
        return np.hstack([1.0 - kept, kept])
    total = np.cumsum(kept, axis=1)[:, -1:]  # in the classes' order, as a database adds them too
    shares: Floats = np.where(total > 0, kept / np.where(total > 0, total, 1.0), 1.0 / found.shape[1])
    return shares


def _arguments(data: Mapping[str, Any]) -> dict[str, Any]:
    """The constructor's arguments from plain values whose names are known to be complete. Raises DataError."""
    for name, kinds in {**_PLAIN, "classes": (list,), "protocol_digests": (list,), "priors": (list,)}.items():
        if type(data[name]) not in kinds:
            raise DataError(
                f'corrected model: field "{name}" has the wrong type ({type(data[name]).__name__})'
            )
    if any(type(v) not in (str, int, float, bool) for v in data["classes"]) or any(
        type(v) is not str for v in data["protocol_digests"]
    ):
        raise DataError("corrected model: classes are texts, numbers or booleans, digests are texts")
    try:
        arrays = {name: np.array(data[name], dtype=np.float64) for name in (*_ARRAYS, "default")}
        priors = tuple(
            DiscrepancyPrior(root=float(r), step=float(s), decay=float(d)) for r, s, d in data["priors"]
        )
    except (TypeError, ValueError, OverflowError):
        raise DataError("corrected model: a field is not an array of numbers") from None
    default = arrays.pop("default")
    slope, found = _slope(data["slope"]) if "slope" in data else (None, None)
    return {
        "encoding": Encoding.from_json(data["encoding"]),
        "base": Ensemble.from_json(data["base"]),
        "partition": Partition.from_json(data["partition"]),
        "corrections": Corrections(**arrays, priors=priors, slope=found),
        "slope": slope,
        "classes": tuple(data["classes"]),
        "default": default,
        "protocol_digests": tuple(data["protocol_digests"]),
        **{name: data[name] for name in _PLAIN},
    }


def _slope(data: object) -> tuple[Slope, FoundSlope]:
    """The second public model and how much of it is added. Raises DataError."""
    said = ("amount", "sd", "tau", "centre")
    if not isinstance(data, Mapping) or set(said) - set(data):
        raise DataError(f"corrected model: the slope has no field of {', '.join(said)}")
    centre = data["centre"] if isinstance(data["centre"], list) else [None]
    if any(type(v) not in (int, float) or abs(v) > LARGEST for v in (*(data[n] for n in said[:3]), *centre)):
        raise DataError(f"corrected model: what is said of the slope is no numbers of at most {LARGEST:g}")
    amount, sd, tau = (float(data[name]) for name in said[:3])
    slope = Slope.from_json({name: value for name, value in data.items() if name not in said})
    return slope, FoundSlope(amount=amount, sd=sd, tau=tau, centre=np.array(centre, dtype=np.float64))


def _words(values: Any) -> Any:
    """The lists with "inf" in the place of infinities, which JSON has not."""
    if isinstance(values, list):
        return [_words(v) for v in values]
    return "inf" if math.isinf(values) else values


def _canonical(plain: Mapping[str, Any]) -> str:
    return json.dumps(plain, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is not a number")
