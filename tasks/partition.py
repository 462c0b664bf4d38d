"""partition: the tree grown on scaled public rows, and the protocol that the curator publishes with it. No private row
is known here. What public rows say of a label that is a number is summed up here too, once, for whoever weighs it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ldptree.fit_numbers import PublicLabels
from ldptree.grow import grow
from ldptree.mechanisms import describe, mechanism_for, number_mechanism_for
from ldptree.number_range import levels
from ldptree.paper_pruning import PaperOptions
from ldptree.partition import Partition
from ldptree.protocol import Protocol
from ldptree.tuning import automatic_depth, number_depth, number_levels, paper_depth, relative_sd
from schemas.manifest import Manifest
from schemas.model import CorrectionConfig, PaperConfig
from storage.store import Draft, Store
from tasks.checkpoint import step
from tasks.corrections import residual_question
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
    campaign: str | None,
    frozen: Manifest | None,
    seed: int,
    has_positive: bool = False,
    paper: PaperConfig | None = None,
    rho: float | None = None,
    correction: CorrectionConfig | None = None,
    slope: Literal["auto", "none"] = "none",
) -> Mapping[str, Any]:
    """Write the protocol ("protocol"); and what public rows say of a label that is a number ("labels"), or of a public model
    that is to be mended ("public").

    `frozen`: a campaign's published one, taken as it is. `paper`: LPCT's Algorithm 2 is to prune, so depth and epsilon are
    those of its first query. `seed`: of public coins, where the partition tosses any. `rho`: the label is a number, and this
    share of epsilon the cell's where it is sent apart. `correction`: reports are about the error of a public model; `slope`:
    whether they may also say on which side of a straight line a row is.
    """
    path = draft.folder("protocol") / "protocol.json"
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
        path.write_text(protocol.to_json())
        (draft.folder("public") / "public.json").write_text(json.dumps(known))
        return described(protocol)
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
            how={"kind": kind, "min_samples_leaf": min_samples_leaf, "seed": seed},
            said=said,
        )
        path.write_text(protocol.to_json())
        (draft.folder("labels") / "labels.json").write_text(json.dumps(_plain(labels)))
        return described(protocol)
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
        mechanism=mechanism_for(mechanism, asked, tree.n_leaves, len(classes)),
        epsilon=asked,
        **said,
        simulation=mechanism == "laplace",
    )
    path.write_text(protocol.to_json())
    return described(protocol)


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
    from ldptree.parameters import check_memory  # with scikit-learn, which takes a second

    features, ends = read_encoding(store, encoding)
    X, y = read_scaled(store, scaled)
    label_range = (float(ends[0]), float(ends[1]))
    asked = None if frozen is None else read_protocol(store, frozen)
    if asked is not None:
        depth = asked.partition.max_depth
    elif depth == "auto":
        depth = number_depth(
            features.n_encoded,
            n_private,
            epsilon,
            mechanism=mechanism,
            n_public=len(y),
            min_samples_leaf=how["min_samples_leaf"],
            label_sd=relative_sd(y, label_range),
        )
    regrow: Callable[[NDArray[np.float32], NDArray[np.float64]], Partition] = partial(
        grow, depth=depth, n_classes=2, mechanism=mechanism, criterion="variance", **how
    )
    if asked is None:
        tree = regrow(X, y)
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
    return asked, PublicLabels.of(asked.partition, X, y, label_range, regrow)


def _plain(labels: PublicLabels) -> dict[str, Any]:
    return {
        name: value.tolist() if isinstance(value, np.ndarray) else value
        for name, value in asdict(labels).items()
    }


def read_labels(store: Store, labels: Manifest) -> PublicLabels:
    """What public rows say of a label that is a number."""
    content = json.loads(store.file(labels, "labels.json").read_bytes())
    arrays = {name: np.array(content[name], dtype=np.float64) for name in ("count", "total")}
    return PublicLabels(**(content | arrays))


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
        "mechanism": describe(protocol.mechanism),
        "k": protocol.k,
        "report_bytes": protocol.mechanism.report_bytes,
        "epsilon": protocol.epsilon,
        "epsilon_exact": protocol.epsilon_exact,
    }
