"""terminate: after the first reports, whether LPCT's Algorithm 2 ends and asks a second time, and with which protocol. The
curator's; only runs with `prune = "paper"` have this step. The algorithm is in `ldptree.inference.algorithm_2`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ldptree.families.family import Counted, PublicRows
from ldptree.families.tree import LPCT
from ldptree.inference.algorithm_2 import PaperOptions
from schemas.families import PaperConfig
from schemas.manifest import Manifest
from storage.store import Draft
from tasks.artifacts import read_protocol, read_scaled, read_totals, write_protocol
from tasks.partition import described
from tasks.step import step

HEADING = ("target", "outside", "holder", "campaign", "simulation")
"""What the second protocol says as the first one does."""


@step(
    "terminate",
    version="1",
    home="curator",
    retries=2,
    order=13,
    says="whether a second round was asked, and its protocol",
)
def terminate(
    draft: Draft,
    *,
    protocol: Manifest,
    totals: Manifest,
    scaled: Manifest,
    paper: PaperConfig,
    kind: str,
    min_samples_leaf: int,
    epsilon: float,
    mechanism: str,
    seed: int,
) -> Mapping[str, Any]:
    """Write the second round's protocol ("protocol") where there is one; the fact "is_terminated" says so."""
    store = draft.store
    first = read_protocol(store, protocol)
    family = LPCT(
        epsilon=epsilon,
        heading={name: getattr(first, name) for name in HEADING},
        mechanism=mechanism,
        partition=kind,
        min_samples_leaf=min_samples_leaf,
        seed=seed,
        frozen=first,
        prune=PaperOptions(**paper.model_dump()),
        has_positive=first.positive is not None,
    )
    totals_of_first = read_totals(store, totals, first)
    X, y = read_scaled(store, scaled)
    rows = PublicRows(
        encoding=first.encoding, X=X, y=y, label=first.classes, n_private=totals_of_first.n_private
    )
    asked = family.ask(rows, [])
    assert asked is not None
    second = family.ask(rows, [Counted(asked, (totals_of_first,))])
    write_protocol(draft, None if second is None else second.protocol)
    if second is None:
        return {"is_terminated": False}
    return {"is_terminated": True} | described(second.protocol)
