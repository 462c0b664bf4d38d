"""What the suite histoftree-figure2-masks claims."""

from ldptree_benchmark.results.claims import Claims

claims = Claims()
RANGES = {"mean": "labels in the mean label's range", "sample": "labels in the sample's range"}
GAMMAS = (0.25, 0.5, 1, 2, 4)
BEST = {"mean": (2, 2, 1, 1, 2), "sample": (1, 1, 1, 1, 1)}
AMONG = ("s-0", "s-1", "s-2", "s-3")

for of, where in RANGES.items():
    SETS = [f"{of}-{gamma:g}" for gamma in GAMMAS]
    for binned in (1, 2):

        @claims(
            4, paper=True, says=f"The paper: the error falls with gamma; s = {binned}, {where}, within .01"
        )
        def _(s, binned=binned, sets=SETS):
            assert max(s.show(s.steps(f"s-{binned}", *sets), "+")) <= 0.01

    for gamma, best in zip(GAMMAS, BEST[of], strict=True):
        words = f"The paper: the best s is 1 or 2; here {best} at gamma {gamma:g}, {where}, within .005"

        @claims(4, paper=True, says=words)
        def _(s, name=f"{of}-{gamma:g}", best=best):
            assert s.show(s.lag(f"s-{best}", name, among=AMONG)) <= 0.005

    for method, words in (
        ("adaptive", "The paper: AdHistOfTree"),
        ("adaptive-finer", "With finer constants on the second term of (15) AdHistOfTree"),
    ):

        @claims(4, paper=True, says=f"{words} is about the best; {where}, within .01")
        def _(s, method=method, sets=SETS):
            assert s.show(s.lag(method, *sets, among=AMONG)) <= 0.01
