"""What the suite correction-hidden claims."""

from ldptree_benchmark.results.claims import Claims

claims = Claims()


@claims(1, 2, 4)
def _(s):
    """A difference that public labels ignore is found: .04 above the public model"""
    assert s.show(s.mean("correction", "hidden") - s.mean("public-model", "hidden"), "+") >= 0.04


@claims(2, 4)
def _(s):
    """Two such columns are both found: at most .015 below a tree without privacy"""
    assert s.show(s.mean("correction", "two") - s.mean("no-privacy", "two"), "+") >= -0.015


@claims(2, 4)
def _(s):
    """One whose effect another column turns round is found: .1 above the public model"""
    assert s.show(s.mean("correction", "turned") - s.mean("public-model", "turned"), "+") >= 0.1


@claims(0.5, 1, 2, 4)
def _(s):
    """With one question it cannot be: at most .005"""
    assert s.show(s.mean("one-question", "hidden") - s.mean("public-model", "hidden"), "+") <= 0.005


@claims(0.5, 1, 2, 4)
def _(s):
    """Where there is none, at most .002 below the public model"""
    assert s.show(s.mean("correction", "alike") - s.mean("public-model", "alike"), "+") >= -0.002


@claims(1, 2, 4)
def _(s):
    """That reports contradict the public model is said in every run on hidden from eps 1 on"""
    assert s.show(s.mean("correction", "hidden", of="alarm")) >= 1.0


@claims(0.5, 1, 2, 4)
def _(s):
    """Intervals of 90 % hold the mean of 90 % of held-back rows' cells on hidden"""
    assert s.show(s.mean("correction", "hidden", of="covered")) >= 0.9
