"""What the suite smoke claims."""

from ldptree_benchmark.results.claims import Claims

claims = Claims()


@claims(4)
def _(s):
    """Reports find a difference that public labels ignore: the correction is .03 above a public forest"""
    assert s.show(s.mean("correction", "hidden") - s.mean("public-forest", "hidden"), "+") >= 0.03
