"""Protocols and questions, which are published, the reports that answer them, their totals, and the ledger."""

from ldptree.protocol.protocol import Protocol

__all__ = ["Protocol"]
