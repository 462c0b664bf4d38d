"""What the suite lpct-intervals claims."""

from ldptree_benchmark.results.claims import Claims

claims = Claims()


@claims(0.5, 1, 2, 4, 8)
def _(s):
    """Where people are alike, intervals of 90 % hold 90 % (CART)"""
    assert s.show(s.mean("cart", "alike", of="covered")) >= 0.9


@claims(0.5, 1, 2, 4, 8)
def _(s):
    """Where people are alike, intervals of 90 % hold 90 % (max-edge)"""
    assert s.show(s.mean("max-edge", "alike", of="covered")) >= 0.9


@claims(0.5, 1, 2, 4, 8)
def _(s):
    """The same of 100,000 private people (CART)"""
    assert s.show(s.mean("cart", "many", of="covered")) >= 0.9


@claims(0.5, 1, 2, 4, 8)
def _(s):
    """The same with private rows alone"""
    assert s.show(s.mean("cart-private", "alike", of="covered")) >= 0.9


@claims(2, 4, 8)
def _(s):
    """Where public people are contrary, intervals of 90 % hold 90 % from eps 2 on (CART)"""
    assert s.show(s.mean("cart", "contrary", of="covered")) >= 0.9


@claims(0.5, 1)
def _(s):
    """and below that 70 %"""
    assert s.show(s.mean("cart", "contrary", of="covered")) >= 0.7


@claims(0.5, 1, 2, 4, 8)
def _(s):
    """Where people are alike, at most one run of ten sees a difference"""
    assert s.show(s.mean("cart", "alike", "many", of="alarm")) <= 0.1


@claims(2, 4, 8)
def _(s):
    """Where public people are contrary, two runs of three see it from eps 2 on"""
    assert s.show(s.mean("cart", "contrary", of="alarm")) >= 0.66
