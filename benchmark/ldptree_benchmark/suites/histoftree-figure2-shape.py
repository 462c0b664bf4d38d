"""What the suite histoftree-figure2-shape claims."""

from ldptree_benchmark.results.claims import Claims

claims = Claims()
RANGES = {"mean": "labels in the mean label's range", "sample": "labels in the sample's range"}

for of, where in RANGES.items():
    for bins in (1, 2, 3):

        @claims(4, paper=True, says=f"The paper: U-shaped in p, the least within 1 to 5; t = {bins}, {where}")
        def _(s, of=of, bins=bins):
            assert 1 <= s.show(s.picked(of, f"t-{bins}", "p"), "g") <= 5

    @claims(4, paper=True, says=f"The paper: t = 2 is the best; {where}")
    def _(s, of=of):
        assert s.show(s.lag("t-2", of)) <= 0.0

    for bins in (1, 2):

        @claims(
            4, paper=True, says=f"The paper: the best p grows with t, from t = {bins} to {bins + 1}; {where}"
        )
        def _(s, of=of, bins=bins):
            assert s.show(s.picked(of, f"t-{bins + 1}", "p") - s.picked(of, f"t-{bins}", "p"), "g") >= 1


for bins in (1, 2, 3):

    @claims(
        4,
        paper=True,
        says=f"The paper's own bounds want a smaller p for a larger t: from t = {bins} to {bins + 1}",
    )
    def _(s, bins=bins):
        fewer, more = (s.picked("mean", f"t-{t}", "p", by="B.1 to B.3") for t in (bins, bins + 1))
        assert s.show(more - fewer, "g") <= 0
