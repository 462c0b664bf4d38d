"""What the suite lpdt-table6 claims."""

from ldptree_benchmark.results.claims import Claims

claims = Claims()


@claims(2)
def _(s):
    """LPDT-M is faster than DECONV, as the paper says (in the mean over sets)"""
    assert s.show(s.mean("lpdt-m") / s.mean("deconv")) < 1


@claims(2)
def _(s):
    """LPDT-M is faster than PHIST and APHIST, as the paper says (in the mean over sets)"""
    assert s.show(s.mean("lpdt-m") / min(s.mean("phist"), s.mean("aphist"))) < 1
