"""What the suite lpdt-shift claims."""

from ldptree_benchmark.results.claims import Claims

claims = Claims()


@claims(1, 2, 4)
def _(s):
    """On wine learned weighting is nowhere worse than public rows alone"""
    assert s.show(s.mean("lpdt", "wine") / s.mean("public", "wine")) <= 1.0


@claims(1, 2, 4)
def _(s):
    """Where people are alike learned weighting costs at most 2 %"""
    assert s.show(s.mean("lpdt", "alike") / s.mean("public", "alike")) <= 1.02


@claims(1, 2, 4)
def _(s):
    """A shift of everybody by .8 standard deviations of the labels is found in every run from eps 1 on"""
    assert s.show(s.mean("lpdt", "everybody-4", of="alarm")) >= 1.0


@claims(1, 2, 4)
def _(s):
    """Where people are alike LPDT says otherwise in at most one run of ten"""
    assert s.show(s.mean("lpdt", "alike", of="alarm")) <= 0.1


@claims(1, 2, 4)
def _(s):
    """Intervals of 90 % hold 90 % where people are alike"""
    assert s.show(s.mean("lpdt", "alike", of="covered")) >= 0.9


@claims(1, 2, 4)
def _(s):
    """Intervals of 90 % hold 90 % where everybody is shifted"""
    assert s.show(s.mean("lpdt", "everybody-1", "everybody-2", "everybody-4", of="covered")) >= 0.9


@claims(1, 2, 4)
def _(s):
    """Intervals of 90 % hold 90 % where half are shifted"""
    assert s.show(s.mean("lpdt", "half-4", of="covered")) >= 0.9
