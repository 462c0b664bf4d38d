"""A corrected model as one SELECT inside DuckDB: what its public model says, the correction, and both together.

What lives here: text of the two parts put together. What does not: text of the public model's trees (`ensemble_sql`), and of one
tree, names and numbers (`sql`).

Values are added in the order of the trees, in double precision, as `predict` adds them: with an identity link every answer is
the model's to the last bit. Logistic and softmax go through DuckDB's exp, and numpy adds more than seven odds in another order:
shares are then within `TOLERANCE` of the model's, and a class is another one only where two shares are that close.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ldptree.inference.shares import half_width
from ldptree.models.corrected import LEAST_OF_PUBLIC
from ldptree.models.export.ensemble_sql import Columns, Stages, answered, named, nth
from ldptree.models.export.sql import (
    CELL,
    OWN_COLUMNS,
    cell_of,
    labels_of,
    literal,
    names_of,
    pick,
    quote,
    typed,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ldptree.models.corrected import CorrectedModel

    Floats = NDArray[np.float64]

TOLERANCE = 1e-12


def to_sql(model: CorrectedModel, table: str = "data", level: float = 0.9) -> str:
    """A SELECT over `table` that returns its columns and both parts of the model's answer to each row.

    Added columns, of numbers: `prediction`, `mean_lower` and `mean_upper` (as `CorrectedModel.interval`: of the correction with
    probability `level`, without the public model's own error within a cell), `public_prediction`, `correction` and
    `correction_sd`. Of classes: `prediction`, for each class `probability_CLASS`, `lower_CLASS` and `upper_CLASS` (likewise, of
    its share before over two shares are made to add up to 1), `public_prediction` and `public_probability_CLASS`; and
    `correction_CLASS` and `correction_sd_CLASS`, of two classes for
    the positive one alone. A row without a cell, where a value is missing that no rule fills, gets the default
    from both parts, as in `CorrectedModel.predict_parts`. NULL and NaN are missing. The table may have further columns of
    any name; one that is named like an added column stands before it, under the same name.

    Args:
        model: the model.
        table: the table's or view's name, one identifier.
        level: of the intervals.

    Raises:
        ConfigError: `level` is not between 0 and 1.
    """
    names = names_of(model.columns_needed)
    stages = Stages((f"typed AS (\n  {typed(model.encoding, names, table)}\n)",), "typed")
    stages = stages.then("placed", [(CELL, cell_of(model.raw_tree, names))])
    stages, public = answered(stages, model.base, model.encoding, names)
    if len(model.classes) == 2 and len(public) == 2:
        public = public[1:]
    stages = stages.then("parted", _parts(model, public, half_width(level)))
    corrected = [(nth("corrected", m), _together(model, m)) for m in range(len(public))]
    stages = stages.then("corrected", corrected)
    if model.classes:
        stages = stages.then("cut", _cut(len(public))).then(
            "shared", _shares(len(public), len(model.classes))
        )
    output = _of_classes(model) if model.classes else _of_numbers()
    ctes = ",\n".join(stages.texts)
    return (
        f"-- Scores rows by the model {model.digest[:12]} of ldptree: a public model of {_trees(model)}, "
        f"corrected in {model.partition.n_leaves} cells; at most {len(names)} columns are read.\n"
        f"WITH {ctes}\nSELECT {OWN_COLUMNS},\n         {named(output)}\nFROM {stages.last}"
    )


def _trees(model: CorrectedModel) -> str:
    return f"{model.base.roots.size} {'tree' if model.base.roots.size == 1 else 'trees'}"


def _parts(model: CorrectedModel, public: list[str], half: float) -> Columns:
    """`CorrectedModel.predict_parts`: both parts of the outputs, the doubt, and how far below and above the ends of the interval
    are: `half` times the doubt, and what is hidden.
    """
    found = model.corrections
    columns: Columns = []
    for m, output in enumerate(public):
        default = literal(float(model.default[m]))
        sd, below, above = (np.append(each[:, m], each[:, m].max()) for each in (found.sd, *found.hidden))
        columns += [
            (nth("public", m), f"CASE WHEN {quote(CELL)} IS NULL THEN {default} ELSE {output} END"),
            (nth("correction", m), _pick(np.append(found.correction[:, m], 0.0))),
            (nth("sd", m), _pick(sd)),
            (nth("below", m), _pick(half * sd + below)),
            (nth("above", m), _pick(half * sd + above)),
        ]
    return columns


def _together(model: CorrectedModel, output: int) -> str:
    """`Prediction.corrected`."""
    public, added = quote(nth("public", output)), quote(nth("correction", output))
    if not model.classes:
        return f"{public} + {added}"
    least = literal(LEAST_OF_PUBLIC)
    return f"greatest(least({public} + {added}, 1e0 - {least} * (1e0 - {public})), {least} * {public})"


def _cut(n_outputs: int) -> Columns:
    """Both parts' outputs and the interval's ends, cut to a share's range."""
    columns: Columns = []
    for m in range(n_outputs):
        corrected, below, above = (quote(nth(name, m)) for name in ("corrected", "below", "above"))
        ends = {
            "cut public": quote(nth("public", m)),
            "cut corrected": corrected,
            "low": f"{corrected} - {below}",
            "high": f"{corrected} + {above}",
        }
        columns += [(nth(name, m), f"greatest(least({end}, 1e0), 0e0)") for name, end in ends.items()]
    return columns


def _shares(n_outputs: int, n_classes: int) -> Columns:
    """`corrected.shares_of` of both parts."""
    columns: Columns = []
    for part in ("corrected", "public"):
        kept = [quote(nth(f"cut {part}", m)) for m in range(n_outputs)]
        if n_outputs == 1:
            shares = [f"1e0 - {kept[0]}", kept[0]]
        else:
            total, even = f"({' + '.join(kept)})", literal(1.0 / n_classes)
            shares = [f"CASE WHEN {total} > 0 THEN {each} / {total} ELSE {even} END" for each in kept]
        columns += [(nth(f"{part} share", k), share) for k, share in enumerate(shares)]
    return columns


def _of_numbers() -> Columns:
    """The columns that are handed out where the label is a number."""
    corrected, below, above = (quote(nth(name, 0)) for name in ("corrected", "below", "above"))
    return [
        ("prediction", corrected),
        ("mean_lower", f"{corrected} - {below}"),
        ("mean_upper", f"{corrected} + {above}"),
        ("public_prediction", quote(nth("public", 0))),
        ("correction", quote(nth("correction", 0))),
        ("correction_sd", quote(nth("sd", 0))),
    ]


def _of_classes(model: CorrectedModel) -> Columns:
    """The columns that are handed out where the label is a class."""
    is_two = len(model.classes) == 2
    low, high = ([quote(nth(end, m)) for m in range(len(model.default))] for end in ("low", "high"))
    if is_two:
        low, high = [f"1e0 - {high[0]}", *low], [f"1e0 - {low[0]}", *high]
    columns: Columns = [("prediction", _decided(model, "corrected"))]
    for k, name in enumerate(model.classes):
        share = quote(nth("corrected share", k))
        columns += [(f"probability_{name}", share), (f"lower_{name}", low[k]), (f"upper_{name}", high[k])]
    columns.append(("public_prediction", _decided(model, "public")))
    for k, name in enumerate(model.classes):
        columns.append((f"public_probability_{name}", quote(nth("public share", k))))
    for m, name in enumerate(model.classes[1:] if is_two else model.classes):
        columns += [
            (f"correction_{name}", quote(nth("correction", m))),
            (f"correction_sd_{name}", quote(nth("sd", m))),
        ]
    return columns


def _decided(model: CorrectedModel, part: str) -> str:
    """The class with the largest share, the first of several."""
    shares = ", ".join(quote(nth(f"{part} share", k)) for k in range(len(model.classes)))
    return f"[{', '.join(labels_of(model.classes))}][list_position([{shares}], greatest({shares}))]"


def _pick(values: Floats) -> str:
    return pick([literal(float(v)) for v in values])
