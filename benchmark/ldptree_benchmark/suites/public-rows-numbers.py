"""What the suite public-rows-numbers claims."""

from ldptree_benchmark.results.claims import Claims

claims = Claims()
SETS = ("abalone", "fish", "music", "wine")

for n in (10, 20, 50, 100, 200, 500):

    @claims(1, 2, 4, says=f"With {n} public rows the correction is better than one tree")
    def _(s, n=n):
        names = [f"{name}-{n}{how}" for name in SETS for how in ("", "-differ")]
        assert s.show(s.mean("correction", *names) / s.mean("lpdt", *names)) <= 1.0
