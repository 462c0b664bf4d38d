"""What the suite range claims."""

from ldptree_benchmark.results.claims import Claims

claims = Claims()
SETS = ("public-10", "public-20", "public-50", "public-100", "public-200", "public-500")


@claims(0.5, 8)
def _(s):
    """Ours: from 10 public rows on their range serves as well as the known one (within .01)"""
    assert s.show(s.mean("public", *SETS) - s.mean("known", *SETS), "+") >= -0.01


@claims(0.5, 8)
def _(s):
    """Ours: and as well as that of the private rows, which nobody may know (within .01)"""
    assert s.show(s.mean("public", *SETS) - s.mean("private", *SETS), "+") >= -0.01


@claims(8)
def _(s):
    """Ours: people outside of the range are better moved to its border than dropped (10 public rows)"""
    assert s.show(s.mean("public", "public-10") - s.mean("public-dropped", "public-10"), "+") >= 0.02


@claims(8)
def _(s):
    """Ours: a guess of [0, 1] is worse"""
    assert s.show(s.mean("guess-1", *SETS) - s.mean("known", *SETS), "+") <= -0.01


@claims(0.5, 8, paper=True)
def _(s):
    """Figure 8(b, c): the estimated range matches the known one as public rows get more (within .01 with 500)"""
    assert s.show(s.mean("lpct-public", "public-500") - s.mean("lpct-known", "public-500"), "+") >= -0.01


@claims(0.5, 8, paper=True)
def _(s):
    """Figure 8(b, c): the gap is more substantial with few public rows (.01 and more with 10)"""
    assert s.show(s.mean("lpct-public", "public-10") - s.mean("lpct-known", "public-10"), "+") <= -0.01


@claims(0.5, 8, paper=True)
def _(s):
    """Figure 8(b, c): an unknown range significantly degrades the performance (by .01 and more, the best guess taken)"""
    assert s.show(s.mean("lpct-guess", *SETS) - s.mean("lpct-known", *SETS), "+") <= -0.01
