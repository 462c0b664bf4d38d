"""What the suite lpct-parameters claims."""

from ldptree_benchmark.results.claims import Claims

claims = Claims()


@claims(0.5, 1, 2, 4, 8, paper=True)
def _(s):
    """Figure 7(a): the accuracy first increases with the depth (3 above 1 at every epsilon)"""
    assert s.show(s.mean("depth-3", "gamma-0.5") - s.mean("depth-1", "gamma-0.5"), "+") >= 0.0


@claims(0.5, 1, 2, 4, paper=True)
def _(s):
    """Figure 7(a): then it begins to decrease (8 below 3 up to eps 4)"""
    assert s.show(s.mean("depth-8", "gamma-0.5") - s.mean("depth-3", "gamma-0.5"), "+") <= 0.0


@claims(0.5, paper=True)
def _(s):
    """Figure 7(a): the best depth is increasing with epsilon: at eps .5 depth 3 is above 5"""
    assert s.show(s.mean("depth-3", "gamma-0.5") - s.mean("depth-5", "gamma-0.5"), "+") >= 0.0


@claims(8, paper=True)
def _(s):
    """Figure 7(a): and at eps 8 depth 4 is above 3"""
    assert s.show(s.mean("depth-4", "gamma-0.5") - s.mean("depth-3", "gamma-0.5"), "+") >= 0.0


for name, bounds in {"prune": "as (14) has them", "tight": "tighter than (14)"}.items():

    @claims(
        2,
        4,
        8,
        paper=True,
        says=f"Figure 7(b), bounds {bounds}: the accuracy first increases with p0 (4 above 2)",
    )
    def _(s, name=name):
        assert s.show(s.mean(f"{name}-4", "gamma-0.5") - s.mean(f"{name}-2", "gamma-0.5"), "+") >= 0.0

    @claims(
        0.5,
        1,
        2,
        4,
        8,
        paper=True,
        says=f"Figure 7(b), bounds {bounds}: then it falls slightly at most (8 within .02 of 6)",
    )
    def _(s, name=name):
        assert s.show(s.mean(f"{name}-8", "gamma-0.5") - s.mean(f"{name}-6", "gamma-0.5"), "+") >= -0.02


@claims(1, paper=True)
def _(s):
    """Figure 7(c): at eps 1 the accuracy is increasing with lam (10 above .1)"""
    assert s.show(s.mean("lam-10", "gamma-5") - s.mean("lam-0.1", "gamma-5"), "+") >= 0.0


@claims(1, paper=True)
def _(s):
    """Figure 7(c): at eps 1, further (300 above 10)"""
    assert s.show(s.mean("lam-300", "gamma-5") - s.mean("lam-10", "gamma-5"), "+") >= 0.0


@claims(1, paper=True)
def _(s):
    """Figure 7(c): at eps 1, to the end (2000 above 300)"""
    assert s.show(s.mean("lam-2000", "gamma-5") - s.mean("lam-300", "gamma-5"), "+") >= 0.0


@claims(2, 4, 8, paper=True)
def _(s):
    """Figure 7(c): at eps 2, 4 and 8 it is an inverted U: 50 is above .1"""
    assert s.show(s.mean("lam-50", "gamma-5") - s.mean("lam-0.1", "gamma-5"), "+") >= 0.0


@claims(2, 4, 8, paper=True)
def _(s):
    """Figure 7(c): and 50 is above 2000"""
    assert s.show(s.mean("lam-50", "gamma-5") - s.mean("lam-2000", "gamma-5"), "+") >= 0.0


@claims(2, paper=True)
def _(s):
    """Figure 7(c): the best lam is decreasing with epsilon: at eps 2 300 is above 10"""
    assert s.show(s.mean("lam-300", "gamma-5") - s.mean("lam-10", "gamma-5"), "+") >= 0.0


@claims(8, paper=True)
def _(s):
    """Figure 7(c): and at eps 8 10 is above 300"""
    assert s.show(s.mean("lam-10", "gamma-5") - s.mean("lam-300", "gamma-5"), "+") >= 0.0
