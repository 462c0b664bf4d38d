"""What the suite public-rows claims."""

from ldptree_benchmark.results.claims import Claims

claims = Claims()
SETS = ("anonymity", "census", "chicago", "diabetes", "employee")

for n in (10, 20, 50, 100, 200, 500):

    @claims(1, 2, 4, says=f"With {n} public rows the correction is better than one tree")
    def _(s, n=n):
        names = [f"{name}-{n}{how}" for name in SETS for how in ("", "-differ")]
        assert s.show(s.mean("correction", *names) - s.mean("lpct", *names), "+") >= 0.0
