"""partition: the tree grown on scaled public rows, and the protocol that the curator publishes with it. No private row
is known here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from ldptree.mechanisms.joint import alphabet, choose_oracle
from ldptree.oracles import ORACLES
from ldptree.partition import PARTITIONS
from ldptree.protocol import Protocol
from ldptree.tuning import automatic_depth
from schemas.manifest import Manifest
from storage.store import Draft
from tasks.checkpoint import step
from tasks.scale import read_encoding, read_protocol, read_scaled


@step("partition", version="1", home="curator", retries=2)
def partition(
    draft: Draft,
    *,
    encoding: Manifest,
    scaled: Manifest,
    n_private: int,
    kind: Literal["cart", "max-edge"],
    depth: int | Literal["auto"],
    min_samples_leaf: int,
    epsilon: float,
    mechanism: Literal["auto", "grr", "oue", "sue", "ss"],
    outside: Literal["clip", "drop"],
    holder: str,
    target: str,
    has_positive: bool,
    campaign: str | None,
    frozen: Manifest | None,
) -> Mapping[str, Any]:
    """Write the protocol ("protocol"). `frozen`: a campaign's published one, taken as it is."""
    path = draft.folder("protocol") / "protocol.json"
    if frozen is not None:
        protocol = read_protocol(draft.store, frozen)
        path.write_bytes(draft.store.file(frozen, "protocol.json").read_bytes())
        return described(protocol)
    features, classes = read_encoding(draft.store, encoding)
    X, y = read_scaled(draft.store, scaled)
    if depth == "auto":
        depth = automatic_depth(features.n_encoded, n_private, epsilon, len(classes))
    tree = PARTITIONS[kind](X, y, depth=depth, n_classes=len(classes), min_samples_leaf=min_samples_leaf)
    k = alphabet(tree.n_leaves, len(classes))
    oracle = choose_oracle(epsilon, k) if mechanism == "auto" else ORACLES[mechanism].for_budget(epsilon, k)
    protocol = Protocol(
        encoding=features,
        partition=tree,
        classes=classes,
        positive=classes[1] if has_positive else None,
        target=target,
        oracle=oracle,
        epsilon=epsilon,
        outside=outside,
        holder=holder,
        campaign=campaign,
    )
    path.write_text(protocol.to_json())
    return described(protocol)


def described(protocol: Protocol) -> dict[str, Any]:
    """What a run says of its protocol: sizes, epsilons, what a report is."""
    return {
        "digest": protocol.digest,
        "cells": protocol.partition.n_leaves,
        "depth": protocol.partition.max_depth,
        "oracle": protocol.oracle.name,
        "k": protocol.oracle.k,
        "report_bytes": protocol.oracle.report_bytes,
        "epsilon": protocol.epsilon,
        "epsilon_exact": protocol.epsilon_exact,
    }
