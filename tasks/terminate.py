"""terminate: after the first reports, whether LPCT's Algorithm 2 ends and asks a second time, and with which protocol. The
curator's; only runs with `prune = "paper"` have this step. The algorithm is in `ldptree.inference.algorithm_2`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ldptree.families.fit_classes import asks_again
from ldptree.inference.algorithm_2 import PaperOptions
from ldptree.inference.depth import termination_depth
from ldptree.mechanisms import mechanism_for
from ldptree.partition.grow import grow
from schemas.families import PaperConfig
from schemas.manifest import Manifest
from storage.store import Draft
from tasks.artifacts import read_protocol, read_public_counts, read_scaled, read_totals, write_protocol
from tasks.partition import described
from tasks.step import step


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
    first, options = read_protocol(store, protocol), PaperOptions(**paper.model_dump())
    received = read_totals(store, totals, first)
    public = read_public_counts(store, scaled, first)
    is_terminated = asks_again(first, received, public, options)
    if not is_terminated:
        write_protocol(draft, None)
        return {"is_terminated": False}
    X, y = read_scaled(store, scaled)
    n_classes = first.n_classes
    tree = grow(
        X,
        y,
        kind=kind,
        depth=termination_depth(first.encoding.n_encoded, received.n_private, epsilon),
        n_classes=n_classes,
        mechanism=mechanism,
        min_samples_leaf=min_samples_leaf,
        options=options,
        seed=seed,
    )
    rest = epsilon - first.epsilon
    second = replace(
        first,
        partition=tree,
        mechanism=mechanism_for(mechanism, rest, tree.n_leaves, n_classes),
        epsilon=rest,
        rounds=(2,),
    )
    write_protocol(draft, second)
    return {"is_terminated": True} | described(second)
