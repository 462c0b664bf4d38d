"""What the suite lpct-variants claims."""

from ldptree_benchmark.results.claims import Claims

claims = Claims()


@claims(0.5, 1, 2, 4, 8)
def _(s):
    """Smoothing costs at most .015 on a tree of the right depth"""
    assert s.show(s.mean("auto") - s.mean("bare"), "+") >= -0.015


@claims(0.5, 1, 2, 4)
def _(s):
    """and gains .04 and more on one that is too deep"""
    assert s.show(s.mean("deep") - s.mean("deep-bare"), "+") >= 0.04


@claims(0.5, 1, 2, 4, 8)
def _(s):
    """Learned weighting is not below automatic weighting (by .005)"""
    assert s.show(s.mean("lpct") - s.mean("auto"), "+") >= -0.005


@claims(1, 2)
def _(s):
    """Signed subsets are worth something at eps 1 and 2"""
    assert s.show(s.mean("signed") - s.mean("lpct"), "+") >= 0.0


@claims(4, 8)
def _(s):
    """and nothing at eps 4 and 8 (within .005)"""
    assert -0.005 <= s.show(s.mean("signed") - s.mean("lpct"), "+") <= 0.005


@claims(0.5, 1, 2, 4, 8)
def _(s):
    """With joint reports max-edge is no better than a random partition (within .005)"""
    assert -0.005 <= s.show(s.mean("random-edge") - s.mean("lpct"), "+") <= 0.005


@claims(0.5, 1, 2, 4)
def _(s):
    """Algorithm 2 of the paper, read literally, is near a coin's toss (below .6)"""
    assert s.show(s.mean("algorithm-2")) <= 0.6


@claims(0.5, 1, 2, 4, 8)
def _(s):
    """The default correction is at least as good as LPCT on these pairs"""
    assert s.show(s.mean("correction") - s.mean("lpct"), "+") >= 0.0
