"""partition: the tree grown on scaled public rows, and the protocol that the curator publishes with it. No private row
is known here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from ldptree.grow import grow
from ldptree.mechanisms import describe, mechanism_for
from ldptree.paper_pruning import PaperOptions
from ldptree.protocol import Protocol
from ldptree.tuning import automatic_depth, paper_depth
from schemas.config import PaperConfig
from schemas.manifest import Manifest
from storage.store import Draft
from tasks.checkpoint import step
from tasks.scale import read_encoding, read_protocol, read_scaled


@step("partition", version="2", home="curator", retries=2)
def partition(
    draft: Draft,
    *,
    encoding: Manifest,
    scaled: Manifest,
    n_private: int,
    kind: Literal["cart", "max-edge", "random-edge"],
    depth: int | Literal["auto"],
    min_samples_leaf: int,
    epsilon: float,
    mechanism: str,
    outside: Literal["clip", "drop"],
    holder: str,
    target: str,
    has_positive: bool,
    campaign: str | None,
    frozen: Manifest | None,
    paper: PaperConfig | None,
    seed: int,
) -> Mapping[str, Any]:
    """Write the protocol ("protocol").

    `frozen`: a campaign's published one, taken as it is. `paper`: LPCT's Algorithm 2 is to prune, so depth and epsilon are
    those of its first query. `seed`: of public coins, where the partition tosses any.
    """
    path = draft.folder("protocol") / "protocol.json"
    if frozen is not None:
        protocol = read_protocol(draft.store, frozen)
        path.write_bytes(draft.store.file(frozen, "protocol.json").read_bytes())
        return described(protocol)
    features, classes = read_encoding(draft.store, encoding)
    X, y = read_scaled(draft.store, scaled)
    options = PaperOptions(**paper.model_dump()) if paper else None
    d = features.n_encoded
    if depth == "auto" and options:
        depth = paper_depth(d, n_private, len(y), epsilon)
    elif depth == "auto":
        depth = automatic_depth(d, n_private, epsilon, len(classes), mechanism)
    tree = grow(
        X,
        y,
        kind=kind,
        depth=depth,
        n_classes=len(classes),
        mechanism=mechanism,
        min_samples_leaf=min_samples_leaf,
        options=options,
        seed=seed,
    )
    asked = epsilon * (options.share_of_first_query if options else 1.0)
    protocol = Protocol(
        encoding=features,
        partition=tree,
        classes=classes,
        positive=classes[1] if has_positive else None,
        target=target,
        mechanism=mechanism_for(mechanism, asked, tree.n_leaves, len(classes)),
        epsilon=asked,
        outside=outside,
        holder=holder,
        campaign=campaign,
        simulation=mechanism == "laplace",
    )
    path.write_text(protocol.to_json())
    return described(protocol)


def described(protocol: Protocol) -> dict[str, Any]:
    """What a run says of its protocol: sizes, epsilons, what a report is."""
    return {
        "digest": protocol.digest,
        "cells": protocol.partition.n_leaves,
        "depth": protocol.partition.max_depth,
        "mechanism": describe(protocol.mechanism),
        "k": protocol.k,
        "report_bytes": protocol.mechanism.report_bytes,
        "epsilon": protocol.epsilon,
        "epsilon_exact": protocol.epsilon_exact,
    }
