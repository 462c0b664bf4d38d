"""What the suite lpct-chicago claims."""

from ldptree_benchmark.results.claims import Claims

claims = Claims()


@claims(2, 4)
def _(s):
    """LPCT is above the best of the models of public rows at eps 2 and more"""
    assert s.show(s.mean("lpct") - s.mean("public-boosting"), "+") >= 0.0


@claims(0.5, 1, 2, 4)
def _(s):
    """Learned weighting is not below automatic weighting"""
    assert s.show(s.mean("lpct") - s.mean("lpct-auto"), "+") >= -0.001


@claims(0.5, 1, 2, 4)
def _(s):
    """Learned weighting is above private rows alone"""
    assert s.show(s.mean("lpct") - s.mean("lpct-private"), "+") >= 0.0


@claims(1)
def _(s):
    """Signed subsets are worth something at eps 1"""
    assert s.show(s.mean("lpct-signed") - s.mean("lpct"), "+") >= 0.0
