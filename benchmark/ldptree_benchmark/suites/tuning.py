"""What the suite tuning claims."""

from ldptree_benchmark.results.claims import Claims

claims = Claims()


@claims(0.5, 1, 2, 4, 8)
def _(s):
    """Tuning the default does not pay: it is worse than no tuning at every epsilon"""
    assert s.show(s.mean("tuned") - s.mean("lpct"), "+") <= 0.0


@claims(0.5, 1, 2, 4, 8)
def _(s):
    """and costs no more than .01"""
    assert s.show(s.mean("tuned") - s.mean("lpct"), "+") >= -0.01


@claims(0.5, 1, 2, 4, 8)
def _(s):
    """LPCT as it was published needs tuning, and there it pays"""
    assert s.show(s.mean("lpct-m-tuned") - s.mean("lpct-m"), "+") >= 0.0


@claims(0.5, 1, 2, 4, 8, paper=True)
def _(s):
    """The default, without tuning, is above the published method with the best depth on test rows"""
    assert s.show(s.mean("lpct") - s.mean("lpct-m-best"), "+") >= 0.0
