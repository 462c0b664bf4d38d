"""The holder's side: read a protocol, check it, randomise one row once, remember it."""

from ldptree.client.client import Client, Report
from ldptree.client.memory import FileMemory

__all__ = ["Client", "FileMemory", "Report"]
