"""partition: the tree grown on scaled public rows, and the protocol that the curator publishes with it. No private row
is known here. What public rows say of a label that is a number is summed up here too, once, for whoever weighs it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Literal

from ldptree.families.finer import public_labels
from ldptree.families.public_labels import PublicLabels
from ldptree.inference.algorithm_2 import PaperOptions
from ldptree.inference.depth import (
    NumberDepths,
    automatic_depth,
    number_depths,
    number_levels,
    paper_depth,
    relative_sd,
)
from ldptree.inference.public_trust import class_inflation
from ldptree.limits import check_memory
from ldptree.mechanisms import mechanism_for, number_mechanism_for
from ldptree.partition import Partition
from ldptree.partition.grow import grow
from ldptree.protocol.number_range import levels
from ldptree.protocol.protocol import Protocol
from schemas.families import CorrectionConfig, PaperConfig
from schemas.manifest import Manifest
from storage.store import Draft, Store
from tasks.artifacts import (
    read_encoding,
    read_protocol,
    read_scaled,
    write_labels,
    write_protocol,
    write_public,
    write_trust,
)
from tasks.corrections import residual_question
from tasks.step import step


@step(
    "partition",
    version="3",
    home="curator",
    retries=2,
    order=10,
    says="the published protocol: a tree grown on public rows, and what a holder sends",
)
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
    campaign: str | None,
    frozen: Manifest | None,
    seed: int,
    has_positive: bool = False,
    paper: PaperConfig | None = None,
    rho: float | None = None,
    correction: CorrectionConfig | None = None,
    slope: Literal["auto", "none"] = "none",
    simulation: bool = False,
) -> Mapping[str, Any]:
    """Write the protocol ("protocol"); and how far public cells are to be trusted ("trust"), what public rows say of a label that
    is a number ("labels"), or of a public model that is to be mended ("public").

    `frozen`: a campaign's published one, taken as it is. `paper`: LPCT's Algorithm 2 is to prune, so depth and epsilon are
    those of its first query. `seed`: of public coins, where the partition tosses any. `rho`: the label is a number, and this
    share of epsilon the cell's where it is sent apart. `correction`: reports are about the error of a public model; `slope`:
    whether they may also say on which side of a straight line a row is. `simulation`: the holders' coins come from a seed, and
    the protocol says so, unless it is a campaign's that is frozen already.
    """
    said: dict[str, Any] = {"outside": outside, "holder": holder, "target": target, "campaign": campaign}
    if correction is not None:
        protocol, known = residual_question(
            draft.store,
            encoding,
            scaled,
            frozen,
            settings=correction,
            n_private=n_private,
            depth=depth,
            epsilon=epsilon,
            mechanism=mechanism,
            how={
                "partition": kind,
                "min_samples_leaf": min_samples_leaf,
                "seed": seed,
                "with_slope": slope == "auto",
            },
            said=said,
        )
        protocol = _marked(protocol, simulation and frozen is None)
        write_protocol(draft, protocol)
        write_public(draft, known)
        return described(protocol)
    how = {"kind": kind, "min_samples_leaf": min_samples_leaf, "seed": seed}
    if rho is not None:
        protocol, labels = _of_numbers(
            draft.store,
            encoding,
            scaled,
            frozen,
            n_private=n_private,
            depth=depth,
            epsilon=epsilon,
            mechanism=mechanism,
            rho=rho,
            how=how,
            said=said,
        )
        protocol = _marked(protocol, simulation and frozen is None)
        write_protocol(draft, protocol)
        write_labels(draft, labels)
        return described(protocol)
    protocol, trust = _of_classes(
        draft.store,
        encoding,
        scaled,
        frozen,
        n_private=n_private,
        depth=depth,
        epsilon=epsilon,
        mechanism=mechanism,
        has_positive=has_positive,
        options=PaperOptions(**paper.model_dump()) if paper else None,
        how=how,
        said=said,
    )
    protocol = _marked(protocol, simulation and frozen is None)
    write_protocol(draft, protocol)
    write_trust(draft, trust)
    return described(protocol)


def _marked(protocol: Protocol, is_seeded: bool) -> Protocol:
    """The protocol, which says that it is of a simulation where the holders' coins come from a seed."""
    return replace(protocol, simulation=True) if is_seeded else protocol


def _of_classes(
    store: Store,
    encoding: Manifest,
    scaled: Manifest,
    frozen: Manifest | None,
    *,
    n_private: int,
    depth: int | Literal["auto"],
    epsilon: float,
    mechanism: str,
    has_positive: bool,
    options: PaperOptions | None,
    how: Mapping[str, Any],
    said: Mapping[str, Any],
) -> tuple[Protocol, float]:
    """The protocol, and how much less sure public cells are than their rows say; Algorithm 2 takes them at their word."""
    features, classes = read_encoding(store, encoding)
    X, y = read_scaled(store, scaled)
    d = features.n_encoded
    asked = None if frozen is None else read_protocol(store, frozen)
    if asked is not None:
        depth = asked.partition.max_depth
    elif depth == "auto" and options:
        depth = paper_depth(d, n_private, len(y), epsilon)
    elif depth == "auto":
        depth = automatic_depth(d, n_private, epsilon, len(classes), mechanism)
    regrow: Callable[..., Partition] = partial(
        grow, depth=depth, n_classes=len(classes), mechanism=mechanism, options=options, **how
    )
    if asked is None:
        tree = regrow(X, y)
        check_memory(tree.n_leaves, len(classes))
        budget = epsilon * (options.share_of_first_query if options else 1.0)
        asked = Protocol(
            encoding=features,
            partition=tree,
            classes=classes,
            positive=classes[1] if has_positive else None,
            mechanism=mechanism_for(mechanism, budget, tree.n_leaves, len(classes)),
            epsilon=budget,
            **said,
            simulation=mechanism == "laplace",
        )
    return asked, 1.0 if options else class_inflation(how["kind"], X, y, len(classes), regrow)


def _of_numbers(
    store: Store,
    encoding: Manifest,
    scaled: Manifest,
    frozen: Manifest | None,
    *,
    n_private: int,
    depth: int | Literal["auto"],
    epsilon: float,
    mechanism: str,
    rho: float,
    how: Mapping[str, Any],
    said: Mapping[str, Any],
) -> tuple[Protocol, PublicLabels]:
    """The parts in the order of `LPDTRegressor`: depth, tree, levels, mechanism, protocol; and the public labels."""
    features, ends = read_encoding(store, encoding)
    X, y = read_scaled(store, scaled)
    label_range = (float(ends[0]), float(ends[1]))
    asked = None if frozen is None else read_protocol(store, frozen)
    if depth == "auto":
        depths = number_depths(
            features.n_encoded,
            n_private,
            epsilon,
            mechanism=mechanism,
            partition=how["kind"],
            n_public=len(y),
            min_samples_leaf=how["min_samples_leaf"],
            label_sd=relative_sd(y, label_range),
        )
    else:
        depths = NumberDepths(asked=depth, whole=depth)
    if asked is not None:
        frozen_depth = asked.partition.max_depth
        is_parted = depth == "auto" and how["kind"] == "cart"
        depths = NumberDepths(
            asked=frozen_depth, whole=max(frozen_depth, depths.whole) if is_parted else frozen_depth
        )
    regrow: Callable[..., Partition] = partial(
        grow, n_classes=2, mechanism=mechanism, criterion="variance", **how
    )
    if asked is None:
        tree = regrow(X, y, depth=depths.asked)
        n_levels = number_levels(mechanism, epsilon, tree.n_leaves, y, label_range)
        check_memory(tree.n_leaves, n_levels)
        found = number_mechanism_for(mechanism, epsilon, tree.n_leaves, n_levels, rho=rho)
        asked = Protocol(
            encoding=features,
            partition=tree,
            classes=levels(*label_range, found.n_classes),
            positive=None,
            mechanism=found,
            epsilon=epsilon,
            simulation=found.is_simulation_device,
            numeric=True,
            **said,
        )
    return asked, public_labels(asked.partition, X, y, label_range, grow=regrow, depths=depths)


def described(protocol: Protocol) -> dict[str, Any]:
    """What a run says of its protocol: sizes, epsilons, what a report is."""
    base = protocol.base
    of_base = (
        {} if base is None else {"base_trees": base.ensemble.roots.size, "base_nodes": base.ensemble.n_nodes}
    )
    return of_base | {
        "digest": protocol.digest,
        "cells": protocol.partition.n_leaves,
        "depth": protocol.partition.max_depth,
        "mechanism": protocol.mechanism.full_name,
        "k": protocol.k,
        "report_bytes": protocol.mechanism.report_bytes,
        "epsilon": protocol.epsilon,
        "epsilon_exact": protocol.epsilon_exact,
    }
