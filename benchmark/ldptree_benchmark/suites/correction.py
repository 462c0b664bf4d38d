"""What the suite correction claims."""

from ldptree_benchmark.results.claims import Claims

claims = Claims()
SETS = ("chicago", "flash-cab", "globe")


@claims(1, 2, 4)
def _(s):
    """On Chicago's trips above the public model, in the mean over three companies"""
    assert s.show(s.mean("correction", *SETS) - s.mean("public-model", *SETS), "+") >= 0.0


@claims(1, 2, 4)
def _(s):
    """On Chicago's trips above one tree grown from the same reports"""
    assert s.show(s.mean("correction", *SETS) - s.mean("lpct", *SETS), "+") >= 0.0


@claims(1, 2, 4)
def _(s):
    """On wine .005 above the public model"""
    assert s.show(s.mean("correction", "good-wine") - s.mean("public-model", "good-wine"), "+") >= 0.005


@claims(1, 2, 4)
def _(s):
    """Where people are much alike at most .004 below the public model"""
    assert (
        s.show(
            s.mean("correction", "anonymity", "diabetes", "employee")
            - s.mean("public-model", "anonymity", "diabetes", "employee"),
            "+",
        )
        >= -0.004
    )
