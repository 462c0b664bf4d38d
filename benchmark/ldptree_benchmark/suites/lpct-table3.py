"""What the suite lpct-table3 claims."""

from ldptree_benchmark.results.claims import Claims

claims = Claims()


@claims(2)
def _(s):
    """One holder after the other is slower, as the paper says: PSGD-L takes at least 3 times as long as LPCT-CART as published"""
    assert s.show(s.mean("psgd-l") / s.mean("lpct-cart")) >= 3


@claims(2)
def _(s):
    """Our LPCT is at most 100 times as slow as scikit-learn's tree on all rows"""
    assert s.show(s.mean("lpct")) <= 100
