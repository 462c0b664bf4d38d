"""What the suite correction-calibration claims."""

from ldptree_benchmark.results.claims import Claims

claims = Claims()


@claims(2, 4, 8)
def _(s):
    """At a stated .05 it is called wrong in at most .08 of all runs, over the kinds of noise"""
    assert s.show(s.mean("correction", of="alarm")) <= 0.08


@claims(2, 4, 8)
def _(s):
    """And in at least .02"""
    assert s.show(s.mean("correction", of="alarm")) >= 0.02


@claims(2, 4, 8)
def _(s):
    """With heavy tails (t of 2 degrees) in at most .08"""
    assert s.show(s.mean("correction", "t2", of="alarm")) <= 0.08
