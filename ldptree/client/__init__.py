"""The holder's side, which reads and checks a protocol, randomises one row once, and remembers the report."""

from ldptree.client.client import Client, Report
from ldptree.client.memory import FileMemory

__all__ = ["Client", "FileMemory", "Report"]
