"""partition: the tree grown on scaled public rows, and the protocol that the curator publishes with it. No private row
is known here. What public rows say of a label that is a number is summed up here too, once, for whoever weighs it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from ldptree.families.family import PublicRows
from ldptree.families.tree import LPCT, LPDT
from ldptree.inference.algorithm_2 import PaperOptions
from ldptree.protocol.protocol import Protocol
from schemas.families import CorrectionConfig, PaperConfig
from schemas.manifest import Manifest
from storage.store import Draft
from tasks.artifacts import (
    read_encoding,
    read_protocol,
    read_scaled,
    write_labels,
    write_protocol,
    write_public,
    write_trust,
)
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
    simulation: bool = False,
) -> Mapping[str, Any]:
    """Write the protocol ("protocol"); and how far public cells are to be trusted ("trust"), what public rows say of a label that
    is a number ("labels"), or of a public model that is to be corrected ("public").

    `frozen`: a campaign's published one, taken as it is. `paper`: LPCT's Algorithm 2 is to prune, so depth and epsilon are
    those of its first query. `seed`: of public coins, where the partition tosses any. `rho`: the label is a number, and this
    share of epsilon the cell's where it is sent apart. `correction`: reports are about the error of a public model. `simulation`:
    the holders' coins come from a seed, and the protocol says so, unless it is a campaign's that is frozen already.
    """
    store, is_marked = draft.store, simulation and frozen is None
    heading = {"outside": outside, "holder": holder, "target": target, "campaign": campaign}
    asking: dict[str, Any] = {
        "epsilon": epsilon,
        "heading": heading | ({"simulation": True} if is_marked else {}),
        "mechanism": mechanism,
        "partition": kind,
        "depth": depth,
        "min_samples_leaf": min_samples_leaf,
        "seed": seed,
        "frozen": None if frozen is None else read_protocol(store, frozen),
    }
    features, label = read_encoding(store, encoding)
    X, y = read_scaled(store, scaled)
    rows = PublicRows(encoding=features, X=X, y=y, label=label, n_private=n_private)
    if correction is not None:
        protocol = _publish_correction(draft, rows, correction, **asking)
    elif rho is not None:
        numbers = LPDT(rho=rho, **asking).ask(rows, [])
        assert numbers is not None
        write_labels(draft, numbers.evidence)
        protocol = numbers.protocol
    else:
        options = PaperOptions(**paper.model_dump()) if paper else "smooth"
        classes = LPCT(prune=options, has_positive=has_positive, **asking).ask(rows, [])
        assert classes is not None
        write_trust(draft, classes.evidence.inflation)
        protocol = classes.protocol
    write_protocol(draft, protocol)
    return described(protocol)


def _publish_correction(
    draft: Draft, rows: PublicRows, settings: CorrectionConfig, **asking: Any
) -> Protocol:
    """The question about a public model's errors; what public rows say of it is written ("public")."""
    from ldptree.families.correction import Correction  # with scikit-learn, which takes a second

    half = settings.residual_range
    family = Correction(
        base=settings.base,
        n_levels=settings.label_levels,
        residual_range=None if half == "auto" else half,
        max_bytes=settings.max_protocol_bytes,
        **asking,
    )
    published = family.ask(family.summarize(rows), [])
    assert published is not None
    write_public(draft, published.evidence.to_json())
    return published.protocol


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
