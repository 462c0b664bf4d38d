"""What the suite correction-intervals claims."""

from ldptree_benchmark.results.claims import Claims

claims = Claims()


@claims(1, 4)
def _(s):
    """Intervals of 90 % of the default hold 90 %, in the mean over shifts"""
    assert s.show(s.mean("correction", of="covered")) >= 0.9


@claims(1, 4)
def _(s):
    """Intervals of 90 % of corrected boosting hold 90 %"""
    assert s.show(s.mean("correction-boosting", of="covered")) >= 0.9


@claims(1, 4)
def _(s):
    """Intervals of 90 % of a corrected tree hold 90 %"""
    assert s.show(s.mean("correction-tree", of="covered")) >= 0.9


@claims(1, 4)
def _(s):
    """Without a shift at most one run of ten says that the public model is wrong"""
    assert s.show(s.mean("correction", "shift-0", of="alarm")) <= 0.1


@claims(1, 4)
def _(s):
    """A shift of two standard deviations of the noise is found"""
    assert s.show(s.mean("correction", "shift-2", of="alarm")) >= 0.9
