"""What the suite lpct-classes claims."""

from ldptree_benchmark.results.claims import Claims

claims = Claims()


@claims(2)
def _(s):
    """At eps 2 LPCT is .03 above a public tree (sectors-40)"""
    assert s.show(s.mean("lpct", "sectors-40") - s.mean("public-tree", "sectors-40"), "+") >= 0.03


@claims(2)
def _(s):
    """At eps 2 LPCT is .03 above a public forest (sectors-40)"""
    assert s.show(s.mean("lpct", "sectors-40") - s.mean("public-forest", "sectors-40"), "+") >= 0.03
