"""What partition and prune do where a public model is mended: the question about its errors, and what public rows say of it.

The parts are called in the order of the estimators of `ldptree.estimators.correction`, and are in `ldptree`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from ldptree.errors import DataError
from ldptree.families.correction_plan import make_plan
from ldptree.limits import check_memory
from ldptree.protocol.protocol import Protocol
from schemas.families import CorrectionConfig
from schemas.manifest import Manifest
from storage.store import Store
from tasks.artifacts import read_encoding, read_protocol, read_scaled


def residual_question(
    store: Store,
    encoding: Manifest,
    scaled: Manifest,
    frozen: Manifest | None,
    *,
    settings: CorrectionConfig,
    n_private: int,
    depth: int | Literal["auto"],
    epsilon: float,
    mechanism: str,
    how: Mapping[str, Any],
    said: Mapping[str, Any],
) -> tuple[Protocol, dict[str, Any]]:
    """The protocol with the public model in it, and what public rows say of it (`Public.to_json`).

    Args:
        store, encoding, scaled, frozen, n_private, depth, epsilon, mechanism: as of the step partition.
        settings: of the base and the residual.
        how: how the collection tree is grown (`PublicSide.of`).
        said: what else the protocol says.

    Raises:
        ConfigError: what is to be published is too large.
        DataError: fewer private people than outputs of the public model.
    """
    from ldptree.families.fit_correction import (  # with scikit-learn: a second
        Public,
        PublicSide,
        plan_behind,
        protocol_of,
    )

    features, label = read_encoding(store, encoding)
    X, y = read_scaled(store, scaled)
    labels = () if y.dtype.kind == "f" else label
    half = settings.residual_range
    side = PublicSide.of(
        settings.base,
        features,
        X,
        y,
        n_classes=len(labels),
        mechanism=mechanism,
        residual_range=None if half == "auto" else half,
        max_bytes=settings.max_protocol_bytes,
        **how,
    )
    if frozen is not None:
        protocol = read_protocol(store, frozen)
        side = side.answering_as(protocol)
        n_holders = max(n_private // side.base.n_outputs, 1)
        return protocol, Public.of(side, plan_behind(protocol, side, n_holders)).to_json()
    if n_private < side.base.n_outputs:
        raise DataError(
            f'{n_private} private people for the {len(labels)} classes of "{said["target"]}": each reports on one of them, and '
            "each class needs one at least. Wait for more, or keep fewer in dataset.classes."
        )
    plan = make_plan(
        side.known,
        epsilon=epsilon,
        n_holders=n_private // side.base.n_outputs,
        depth=depth,
        n_levels=settings.label_levels,
        mechanism=mechanism,
    )
    check_memory(plan.partition.n_leaves, plan.mechanism.n_classes)
    protocol = protocol_of(
        plan, features, side.base, labels, epsilon=epsilon, max_bytes=settings.max_protocol_bytes, **said
    )
    return protocol, Public.of(side, plan).to_json()
