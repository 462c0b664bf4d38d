"""What the suite lpct-figure10 claims."""

from ldptree_benchmark.results.claims import Claims

claims = Claims()
SHARES = (0.2, 0.4, 0.6, 1)

for data in ("diabetes", "employee"):
    names = [f"{data}-{share}" for share in SHARES]

    @claims(
        2,
        8,
        paper=True,
        says=f"{data}: accuracy increases with the use of public rows at every share (PHIST, LPDT)",
    )
    def _(s, names=names):
        assert min(s.show([s.score(name, "lpdt") - s.score(name, "phist") for name in names], "+")) >= 0.0

    @claims(2, 8, paper=True, says=f"{data}: the same (LPDT, LPCT)")
    def _(s, names=names):
        assert min(s.show([s.score(name, "lpct-m") - s.score(name, "lpdt") for name in names], "+")) >= 0.0


@claims(2, 8, paper=True)
def _(s):
    """employee: LPCT with .2 of the private rows is not below PHIST with .6 of them"""
    assert s.show(s.score("employee-0.2", "lpct-m") - s.score("employee-0.6", "phist"), "+") >= 0.0
