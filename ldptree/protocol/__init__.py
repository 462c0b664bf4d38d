"""What is published, what a respondent sends, and what it adds up to: protocols, questions, totals, the ledger."""

from ldptree.protocol.protocol import Protocol

__all__ = ["Protocol"]
