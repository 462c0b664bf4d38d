"""Settings of families that cannot be, and what is said of them: by an estimator, and by a configuration with the key's path."""

from __future__ import annotations

import math
from typing import Any

WEIGHED, ONE_TREE, RANGED = "lpct lpdt", "lpct lpdt correction", "lpdt histoftree public_features"
SWAPPED = "low must be below high, got {}; swap them"
TWO = "must be (low, high), two numbers"
FINITE = "must be (low, high), two finite numbers"
_TABLE: list[tuple[str, dict[str, Any], str]] = [
    (ONE_TREE, {"partition": "max_edge"}, "partition: did you mean 'max-edge'?"),
    (ONE_TREE, {"partition": "kd"}, "partition: 'cart', 'max-edge' or 'random-edge', got 'kd'"),
    (ONE_TREE, {"depth": 63}, "depth: 'auto' or a whole number from 0 to 62, got 63"),
    (ONE_TREE, {"depth": 2.5}, "depth: got 2.5"),
    (ONE_TREE, {"depth": -1}, "depth: got -1"),
    (ONE_TREE, {"depth": True}, "depth: got True"),
    (ONE_TREE, {"min_samples_leaf": 0}, "min_samples_leaf: whole number from 1, got 0"),
    (ONE_TREE, {"min_samples_leaf": 1.5}, "min_samples_leaf: got 1.5"),
    (WEIGHED, {"lam": "learnt"}, "lam: 'learned', 'auto' or a number from 0 to infinity, got 'learnt'; did you mean"),
    (WEIGHED, {"lam": -0.5}, "lam: from 0 to infinity, got -0.5"),
    (WEIGHED, {"lam": math.nan}, "lam: got nan"),
    (WEIGHED, {"prune": "smoth"}, "prune: got 'smoth'; did you mean 'smooth'?"),
    (WEIGHED, {"rule": "margins"}, "rule: must be 'margin' or 'ratio', got 'margins'; did you mean 'margin'?"),
    (WEIGHED, {"rule": "ratio"}, 'rule: "ratio" is the paper\'s, for a fixed lam'),
    (WEIGHED, {"rule": "ratio", "lam": 0}, 'rule: prune = "none"'),
    (WEIGHED, {"rule": "ratio", "lam": "auto"}, 'rule: prune = "none"'),
    (WEIGHED, {"rule": "ratio", "prune": "none"}, "rule: fixed lam"),
    ("lpct", {"prune": "fallback"}, "prune: must be 'smooth', 'variance', 'none' or 'paper', got 'fallback'"),
    ("lpct", {"paper": {"termination": False}}, 'paper.termination: is for prune = "paper", and this is "smooth"; leave it out'),
    (
        "lpct",
        {"prune": "paper", "paper": {"stop_empty": False}},
        'paper.stop_empty: is for partition = "max-edge" or "random-edge"; leave it out with "cart"',
    ),
    ("lpdt", {"prune": "variance"}, "prune: must be 'smooth', 'fallback' or 'none', got 'variance'"),
    ("lpdt", {"prune": "paper"}, "prune: got 'paper'"),
    ("lpdt", {"rule": "ratio", "lam": 0.0, "prune": "smooth"}, 'rule: prune = "none" or "fallback"'),
    ("lpdt histoftree", {"rho": 0}, "rho: must be a number above 0 and below 1, got 0"),
    ("lpdt histoftree", {"rho": 1.0}, "rho: above 0 and below 1, got 1"),
    ("lpdt histoftree", {"rho": "half"}, "rho: got 'half'"),
    (RANGED, {"label_range": (9, -9)}, "label_range: " + SWAPPED.format("(9, -9)")),
    (RANGED, {"label_range": [3, 3]}, "label_range: low must be below high"),
    (RANGED, {"label_range": (0, math.inf)}, "label_range: " + FINITE),
    (RANGED, {"label_range": ("a", "b")}, "label_range: " + FINITE),
    (RANGED, {"label_range": [0, True]}, "label_range: " + FINITE),
    (RANGED, {"label_range": 4}, f"label_range: {TWO}, got 4"),
    (RANGED, {"label_range": (0, 1, 2)}, "label_range: " + TWO),
    (RANGED, {"label_range": [0]}, f"label_range: {TWO}, got [0]"),
    (RANGED, {"label_range": "0-10"}, "label_range: " + TWO),
    ("correction", {"base": "florest"}, "base: got 'florest'; did you mean 'forest'?"),
    ("correction", {"label_levels": 1}, "label_levels: must be 'auto' or a whole number from 2 to 1,024, got 1"),
    ("correction", {"label_levels": True}, "label_levels: from 2 to 1,024, got True"),
    ("correction", {"residual_range": 0.0}, "residual_range: must be 'auto' or a number above 0, got 0.0"),
    ("correction", {"residual_range": math.inf}, "residual_range: got inf"),
    ("correction", {"residual_range": "wide"}, "residual_range: got 'wide'"),
    ("correction", {"max_protocol_bytes": 0}, "max_protocol_bytes: got 0"),
    ("histoftree", {"t": 0}, "t: must be 'auto' or a whole number from 1 to 254, got 0"),
    ("histoftree", {"t": 1.5}, "t: got 1.5"),
    ("histoftree", {"t": "many"}, "t: got 'many'"),
    ("histoftree", {"t": True}, "t: got True"),
    ("histoftree", {"s": -1}, "s: got -1"),
    ("histoftree", {"p": 63}, "p: whole number from 0 to 62, got 63"),
    ("histoftree", {"bias_weight": 0}, "bias_weight: a number above 0"),
    ("histoftree", {"t_shift": 2}, "t_shift: got 2"),
    ("histoftree", {"partition": "kart"}, "partition: did you mean 'cart'?"),
    ("histoftree", {"criterion": "gini"}, "criterion: must be 'weighted' or 'printed', got 'gini'"),
    ("histoftree", {"mechanism": "oue"}, "mechanism: must be 'grr' or 'randomized_response', got 'oue'"),
    ("histoftree", {"label": "gauss"}, "label: must be 'optimal_label', 'duchi' or 'laplace', got 'gauss'"),
    ("histoftree", {"mask_release": "some"}, "mask_release: must be 'all', 'cells' or 'none', got 'some'"),
    ("histoftree", {"min_samples_leaf": 0, "partition": "cart"}, 'min_samples_leaf: 0 is for partition = "max-edge"'),
]  # fmt: skip
WRONG_SETTINGS = [
    (family, settings, *fault.split(": ", 1))
    for families, settings, fault in _TABLE
    for family in families.split()
]
"""Family, settings, the key at fault, and what is said of it."""
