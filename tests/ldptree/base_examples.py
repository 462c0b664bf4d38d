"""Protocols that ask how wrong a public model is, for the tests beside this file: small ones of every kind of base."""

from __future__ import annotations

import numpy as np
from number_examples import ENCODING, TREE

from ldptree.mechanisms import number_mechanism_for
from ldptree.models.ensemble import Ensemble
from ldptree.protocol.protocol import Protocol
from ldptree.protocol.published_base import Contrast, Pair, PublishedBase
from ldptree.protocol.stochastic_rounding import label_levels

ROWS = [
    {"miles": 1.5, "company": "Sun"},
    {"miles": 12.3, "company": "Sun"},
    {"miles": 99.0, "company": "Blue"},
    {"miles": None, "company": "Moon"},
    {"miles": 3.0, "company": None},
    {"miles": 3.0, "company": "Sun"},
]
"""To the right of a threshold, as 12.3 / 16 is in 32 bits; exactly on one; out of range; filled; outside."""
TWO, THREE = ("card", "cash"), ("account", "card", "cash")
KINDS = {
    "number": ("grr", 8.0, (), 0, "identity", 1),
    "two classes, logistic": ("grr", 1.0, TWO, 0, "logistic", 1),
    "two classes, one share": ("ss", 1.0, TWO, 0, "identity", 1),
    "two classes, two shares": ("grr", 1.0, TWO, 0, "identity", 2),
    "three classes, softmax": ("olh", 1.0, THREE, 2, "softmax", 3),
    "three classes, shares": ("grr", 1.0, THREE, 1, "identity", 3),
    "three classes, drawn": ("oue", 1.0, THREE, "drawn", "softmax", 3),
    "two classes, contrasts": ("oue", 1.0, TWO, "drawn", "logistic", 1),
    "number, contrasts": ("ss", 8.0, (), "drawn", "identity", 1),
    "two classes, contrasts and pairs": ("grr", 1.0, TWO, "drawn", "logistic", 1),
}
"""Oracle, R, labels, output, link and outputs of each kind of base."""
DRAWN = [kind for kind, (*_, output, _, _) in KINDS.items() if output == "drawn"]
"""Where each holder draws the output it reports on."""


def ensemble_of(link: str, n_outputs: int, scale: float = 1.0) -> Ensemble:
    """Three trees, one of them a leaf alone; doubles add up to something else in another order."""
    leaf = [0.1, 0.2, 0.7, 0.3, 0.6, 0.05]
    value = np.zeros((9, n_outputs))
    value[[2, 3, 4, 6, 7, 8]] = np.array([np.roll(leaf, 2 * j) for j in range(n_outputs)]).T * scale / 3
    return Ensemble(
        feature=[0, 1, -1, -1, -1, 0, -1, -1, -1],
        threshold=[0.76875, 0.5, 0, 0, 0, 0.09375, 0, 0, 0],
        left=[1, 2, -1, -1, -1, 6, -1, -1, -1],
        right=[4, 3, -1, -1, -1, 7, -1, -1, -1],
        value=value,
        roots=[0, 5, 8],
        offset=np.linspace(0.1, 0.2, n_outputs) * scale,
        link=link,
    )


CONTRASTS = (Contrast(0, 0.09375), Contrast(1, 0.5), Contrast(0, 0.5))
"""Exactly on a row's place; a level; a number's middle."""
PAIRS = (Pair(CONTRASTS[0], CONTRASTS[1]), Pair(CONTRASTS[2], CONTRASTS[1]))


def base_of(kind: str) -> PublishedBase:
    _, half, labels, output, link, n_outputs = KINDS[kind]
    contrasts = (CONTRASTS if "contrasts" in kind else ()) + (PAIRS if "pairs" in kind else ())
    return PublishedBase(
        ensemble=ensemble_of(link, n_outputs, half), labels=labels, output=output, contrasts=contrasts
    )


def protocol_of(kind: str = "number", *, epsilon: float = 1.0, n_levels: int = 5, **changes) -> Protocol:
    """Three cells; residuals of a class in -1 .. 1, of a number in -8 .. 8. A changed base keeps its range."""
    oracle, half, *_ = KINDS[kind]
    fields = {
        "encoding": ENCODING,
        "partition": TREE,
        "target": "paid",
        "classes": label_levels(-half, half, n_levels),
        "positive": None,
        "mechanism": number_mechanism_for(changes.pop("oracle", oracle), epsilon, TREE.n_leaves, n_levels),
        "epsilon": epsilon,
        "numeric": True,
        "campaign": "vectors",
        "base": base_of(kind),
    }
    return Protocol(**(fields | changes))
