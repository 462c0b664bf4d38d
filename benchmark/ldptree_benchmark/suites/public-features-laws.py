"""What the suite public-features-laws claims."""

from ldptree_benchmark.results.claims import Claims

claims = Claims()
for epsilon, most in ((2, (0.03, 0.06, 0.09, 0.1)), (4, (0.012, 0.025, 0.035, 0.04))):
    for private, bound in enumerate(most, start=1):
        words = (
            f"Section 5.1, the first {private} protected: an error of at most {bound:g} at epsilon {epsilon}"
        )

        @claims(epsilon, says=words)
        def _(s, private=private, bound=bound):
            assert s.show(s.mean("public-features", f"sines-{private}")) <= bound


for private in (1, 2, 3):
    words = f"A private feature that matters beside a public one, the first {private} protected: at most .17 at epsilon 4"

    @claims(4, says=words)
    def _(s, private=private):
        assert s.show(s.mean("public-features", f"interaction-{private}")) <= 0.17


for percent, bound in ((50, 0.05), (30, 0.05), (10, 0.15)):
    words = (
        f"A level that {percent} % have is found: at most {bound:g} of the error of a constant at epsilon 4"
    )

    @claims(4, says=words)
    def _(s, name=f"level-{percent}", bound=bound):
        assert s.show(s.mean("public-features", name) / s.mean("mean", name)) <= bound


for people in (3000, 5000, 8000):

    @claims(2, 4, says=f"Seven private columns of no use at most double the error, {people:,} people")
    def _(s, people=people):
        useless, useful = (s.score(f"{kind}-{people}", "public-features") for kind in ("useless", "useful"))
        assert s.show(useless / useful) <= 2.0
