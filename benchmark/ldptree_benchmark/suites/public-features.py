"""What the suite public-features claims."""

from ldptree_benchmark.results.claims import Claims

claims = Claims()


@claims(1)
def _(s):
    """At most 1.35 times the error of a plain tree without privacy at epsilon 1, in the mean over sets"""
    assert s.show(s.mean("public-features") / s.mean("no-privacy")) <= 1.35


@claims(2)
def _(s):
    """At most 1.2 times the error of a plain tree without privacy at epsilon 2, in the mean over sets"""
    assert s.show(s.mean("public-features") / s.mean("no-privacy")) <= 1.2


@claims(4)
def _(s):
    """At most 1.08 times the error of a plain tree without privacy at epsilon 4, in the mean over sets"""
    assert s.show(s.mean("public-features") / s.mean("no-privacy")) <= 1.08


@claims(1, 2, 4)
def _(s):
    """Of methods that are shown public features ours has the best rank sum"""
    assert s.is_first("public-features", among=("histoftree", "par-dt", "krr"))


@claims(1, 2, 4)
def _(s):
    """Ours is better than a forest on a tenth of the rows, in the mean over sets"""
    assert s.show(s.mean("public-features") / s.mean("public-forest")) <= 1.0
