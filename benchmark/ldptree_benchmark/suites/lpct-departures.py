"""What the suite lpct-departures claims."""

from ldptree_benchmark.results.claims import Claims

claims = Claims()


@claims(0.5, 2, 8, paper=True)
def _(s):
    """LPCT-M of the code is within .01 of the printed figure"""
    assert s.show(s.away_from_printed("lpct-m-code", "anonymity", "email", "census", "employee-9")) <= 0.01


@claims(0.5, 2, paper=True)
def _(s):
    """LPCT-M of the code is within .01 of the printed figure on diabetes"""
    assert s.show(s.away_from_printed("lpct-m-code", "diabetes")) <= 0.01


@claims(0.5, 2, 8, paper=True)
def _(s):
    """LPCT-CART of the code is within .01 of the printed figure"""
    assert s.show(s.away_from_printed("lpct-cart-code", "anonymity", "census", "employee-9")) <= 0.01


@claims(0.5, 2, paper=True)
def _(s):
    """LPCT-CART of the code is within .01 of the printed figure on diabetes"""
    assert s.show(s.away_from_printed("lpct-cart-code", "diabetes")) <= 0.01


@claims(0.5, 2, 8, paper=True)
def _(s):
    """LPCT-CART of the code, with at most six levels, is within .01 of the printed figure on e-mails"""
    assert s.show(s.away_from_printed("lpct-cart-shallow", "email")) <= 0.01


@claims(8, paper=True)
def _(s):
    """On diabetes at eps 8 LPCT-M is within .01 of the printed figure without any noise"""
    assert s.show(s.away_from_printed("lpct-m-bare", "diabetes")) <= 0.01


@claims(8, paper=True)
def _(s):
    """On diabetes at eps 8 LPCT-CART is within .01 of the printed figure without any noise"""
    assert s.show(s.away_from_printed("lpct-cart-bare", "diabetes")) <= 0.01
