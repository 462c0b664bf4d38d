"""Mechanisms: what a holder sends about a cell and a label. One mechanism, one file; one line here."""

from ldptree.mechanisms import joint

MECHANISMS = {"joint": joint}

__all__ = ["MECHANISMS"]
