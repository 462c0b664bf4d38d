"""What the suite lpct-table2 claims."""

from ldptree_benchmark.results.claims import Claims

claims = Claims()


@claims(0.5, 2, 8)
def _(s):
    """Of all methods that protect people or need none, the default correction has the best rank sum"""
    assert s.is_first(
        "correction",
        among=(
            "lpct",
            "lpct-cart",
            "lpct-m",
            "lpct-prune-m",
            "lpct-prune-cart",
            "lpct-tight-m",
            "lpct-tight-cart",
            "lpdt",
            "phist",
            "pglm",
            "psgd-l",
            "psgd-n",
            "ct-q",
            "public-tree",
            "public-forest",
            "public-boosting",
            "public-line",
            "majority",
        ),
    )
