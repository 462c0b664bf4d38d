"""What the suite histoftree-figure2-people claims."""

from ldptree_benchmark.results.claims import Claims

claims = Claims()
RANGES = {"mean": "labels in the mean label's range", "sample": "labels in the sample's range"}
PEOPLE = (2500, 5000, 10000, 20000, 40000)

for of, where in RANGES.items():
    for private in (1, 2, 3, 4):

        @claims(
            4, paper=True, says=f"The paper: the error falls with n; s* = {private}, {where}, within .005"
        )
        def _(s, of=of, private=private):
            assert max(s.show(s.steps("histoftree", *(f"{of}-{private}-{n}" for n in PEOPLE)), "+")) <= 0.005

    for fewer in (1, 2, 3):
        words = (
            f"from 2,500 to 40,000 people s* = {fewer} keeps less of its error than s* = {fewer + 1}; {where}"
        )

        @claims(4, paper=True, says=f"The paper: the rate is faster for small s*: {words}")
        def _(s, of=of, fewer=fewer):
            less, more = (
                s.score(f"{of}-{private}-40000", "histoftree") / s.score(f"{of}-{private}-2500", "histoftree")
                for private in (fewer, fewer + 1)
            )
            assert s.show(less - more, "+") <= 0.0
