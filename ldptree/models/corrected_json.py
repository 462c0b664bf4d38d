"""The text of a corrected model, written and read: which fields it has, of which types, and the parts they make.

What lives here: canonical JSON and its fields. What does not: whether the parts fit each other (`corrected`), and what is in
them (`encoding`, `ensemble`, `partition`, `correction`, `slope`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ldptree.encoding import Encoding
from ldptree.errors import DataError
from ldptree.families.correction_slope import FoundSlope
from ldptree.families.corrections import Corrections
from ldptree.inference.discrepancy import DiscrepancyPrior
from ldptree.limits import LARGEST
from ldptree.models import model_json
from ldptree.models.ensemble import Ensemble
from ldptree.partition.tree import Partition
from ldptree.public_models.slope import Slope

if TYPE_CHECKING:
    from ldptree.models.corrected import CorrectedModel

KIND = "ldptree corrected model"
VERSION = 1
ARRAYS = ("share", "correction", "sd", "observed", "noise_sd", "discrepancy")
"""Of `Corrections`, one number a cell or one a cell and output."""
_PLAIN: dict[str, tuple[type, ...]] = {
    "target": (str,),
    "epsilon": (int, float),
    "mechanism": (str,),
    "n_private": (int,),
    "n_public": (int,),
}
_LISTS: dict[str, tuple[type, ...]] = dict.fromkeys(("classes", "protocol_digests", "priors"), (list,))


def content_of(model: CorrectedModel) -> dict[str, Any]:
    """The fields of a model but its digest; an infinite number is the text "inf"."""
    found = model.corrections
    return {
        "kind": KIND,
        "version": VERSION,
        "encoding": model.encoding.to_json(),
        "base": model.base.to_json(),
        "partition": model.partition.to_json(),
        "classes": list(model.classes),
        "default": model.default.tolist(),
        "protocol_digests": list(model.protocol_digests),
        "priors": [[float(p.root), float(p.step), float(p.decay)] for p in found.priors],
        **{name: _words(getattr(found, name).tolist()) for name in ARRAYS},
        **{name: getattr(model, name) for name in _PLAIN},
    } | _slope_content(model)


def _slope_content(model: CorrectedModel) -> dict[str, Any]:
    found = model.corrections.slope
    if model.slope is None or found is None:
        return {}
    said = {"amount": found.amount, "sd": found.sd, "tau": found.tau, "centre": found.centre.tolist()}
    return {"slope": model.slope.to_json() | said}


def fields(text: str | bytes) -> dict[str, Any]:
    """The fields of a model's text, as `model_json.read` gives them. Raises DataError."""
    names = ("encoding", "base", "partition", "default", *_LISTS, *ARRAYS, *_PLAIN)
    return model_json.read(
        text, kind=KIND, version=VERSION, fields=names, optional=("slope",), of="corrected model"
    )


def parts(data: Mapping[str, Any]) -> dict[str, Any]:
    """What a `CorrectedModel` is made of, from its fields.

    Raises:
        DataError: a field of a wrong type, or an impossible part.
        OverflowError, ValueError: a number is too large.
    """
    model_json.check_types(data, {**_PLAIN, **_LISTS}, of="corrected model")
    if any(type(v) not in (str, int, float, bool) for v in data["classes"]) or any(
        type(v) is not str for v in data["protocol_digests"]
    ):
        raise DataError("corrected model: classes are texts, numbers or booleans, digests are texts")
    try:
        arrays = {name: np.array(data[name], dtype=np.float64) for name in (*ARRAYS, "default")}
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
