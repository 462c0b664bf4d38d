"""What the suite lpdt-figures claims."""

from ldptree_benchmark.results.claims import Claims

claims = Claims()


@claims(3, 4, 6, 8)
def _(s):
    """The error first falls with depth (Figure 2(a)): depth 3 is better than depth 2"""
    assert s.show(s.mean("depth-3", "6000-2000") - s.mean("depth-2", "6000-2000"), "+") <= 0.0


@claims(3, 4, 6, 8)
def _(s):
    """Then it rises (Figure 2(a)): depth 6 is worse than depth 3"""
    assert s.show(s.mean("depth-6", "6000-2000") - s.mean("depth-3", "6000-2000"), "+") >= 0.0


@claims(3)
def _(s):
    """The best depth grows with epsilon (Figure 2(a)): depth 4 is worse than 3 at eps 3"""
    assert s.show(s.mean("depth-4", "6000-2000") - s.mean("depth-3", "6000-2000"), "+") >= 0.0


@claims(8)
def _(s):
    """The best depth grows with epsilon (Figure 2(a)): depth 4 is better than 3 at eps 8"""
    assert s.show(s.mean("depth-4", "6000-2000") - s.mean("depth-3", "6000-2000"), "+") <= 0.0


@claims(3, 4, 6, 8)
def _(s):
    """Larger leaves help (Figure 2(b)): at least 95 public rows are better than 15"""
    assert s.show(s.mean("leaf-95", "6000-2000") - s.mean("depth-6", "6000-2000"), "+") <= 0.0


@claims(3, 4, 6, 8)
def _(s):
    """Too large ones do not (Figure 2(b)): at least 135 are worse than 95"""
    assert s.show(s.mean("leaf-135", "6000-2000") - s.mean("leaf-95", "6000-2000"), "+") >= 0.0


@claims(1, 2, 3, 4, 6, 8)
def _(s):
    """LPDT is better than PHIST (Figure 2(c))"""
    assert s.show(s.mean("depth-3", "6000-2000") - s.mean("phist", "6000-2000"), "+") <= 0.0


@claims(1, 2, 3, 4, 6, 8)
def _(s):
    """Ours, with nothing set, leaves at most .1 besides the noise"""
    assert s.show(s.mean("lpdt", "6000-2000")) <= 1.1


@claims(1, 2, 3, 4, 6, 8)
def _(s):
    """Ours is no worse than a plain tree on the same public rows"""
    assert s.show(s.mean("lpdt") / s.mean("public-tree")) <= 1.0
