"""What the suite histoftree-figure2 claims."""

from ldptree_benchmark.results.claims import Claims

claims = Claims()
RANGES = {"mean": "labels in the mean label's range", "sample": "labels in the sample's range"}
EPSILONS = (0.5, 1, 2, 4, 8, 16)

for of, where in RANGES.items():
    SETS = [f"{of}-{private}" for private in (1, 2, 3, 4)]
    for name in SETS:

        @claims(
            paper=True, says=f"The paper: the error falls with epsilon; s* = {name[-1]}, {where}, within .005"
        )
        def _(s, name=name):
            assert max(s.show(s.steps_of_epsilon(EPSILONS, "histoftree", name), "+")) <= 0.005

    for epsilons, reach in (((4, 8, 16), "from epsilon 4 on"), ((0.5, 1, 2), "below epsilon 4")):

        @claims(
            *epsilons,
            paper=True,
            says=f"The paper: more public features, less error; {reach}, {where}, within .01",
        )
        def _(s, of=of, sets=SETS):
            assert max(s.show(s.steps("histoftree", *sets[::-1], f"{of}-0"), "+")) <= 0.01

        @claims(
            *epsilons,
            paper=True,
            says=f"The paper: label LDP (LabelDT) is the best; {reach}, {where}, within .005",
        )
        def _(s, sets=SETS):
            assert s.show(s.lag("label-ldp", *sets, among=("histoftree", "ldp"))) <= 0.005

    @claims(*EPSILONS, paper=True, says=f"The paper: plain LDP is the worst; {where}")
    def _(s, sets=SETS):
        assert s.show(s.mean("histoftree", *sets) - s.mean("ldp", *sets), "+") <= 0.0
