"""The tables of the holders' database. Rows are inserted and never changed: each belongs to the transaction that inserted it.

origin           the database itself: which work folder's secret it began with
transactions     the digest of everything up to each transaction
caps             lifetime caps that were stated
charges          what a question cost each of some holders, who are rows of a file or people
people           lists of people, by sorted 64-bit keyed hashes of their names, in parts of at most 16 MiB, with their digests
questions        which question was put where one charge pays for several
answers          by which files of reports a question was answered
campaigns        the protocol and the terms that a campaign's first run published
files            the raw files whose holders a campaign asked, who has a role in them, and all files of the run that asked
reports          the files of reports that a campaign received
released_checks  the answers about private rows that left their holders
"""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Double, Integer, LargeBinary, MetaData, Table, Text

VERSION = 1
APPLICATION = 0x6C647074
"""SQLite's `application_id` of a holders' database, "ldpt"."""
TABLES = MetaData()


def _table(name: str, *columns: Column[object]) -> Table:
    """Without an index, which a damaged file could contradict: who looks something up reads the whole table."""
    number = Column("transaction", Integer, nullable=False)
    return Table(name, TABLES, Column("id", Integer, primary_key=True), number, *columns)


def _text(name: str, *, is_needed: bool = True) -> Column[object]:
    return Column(name, Text, nullable=not is_needed)


def _number(name: str, *, is_needed: bool = True) -> Column[object]:
    return Column(name, BigInteger, nullable=not is_needed)


TRANSACTIONS = Table(
    "transactions",
    TABLES,
    Column("number", Integer, primary_key=True),
    Column("digest", Text, nullable=False),
)
ORIGIN = _table("origin", _number("version"), _text("secret"), _text("salt"))
CAPS = _table("caps", _text("account"), Column("cap", Double, nullable=False))
CHARGES = _table(
    "charges",
    _text("account"),
    _text("question"),
    Column("epsilon", Double, nullable=False),
    _text("about"),
    _text("source", is_needed=False),
    _number("start", is_needed=False),
    _number("stop", is_needed=False),
    _number("people", is_needed=False),
    _text("named_by", is_needed=False),
    _text("name_type", is_needed=False),
)
PEOPLE = _table(
    "people",
    _number("list"),
    _number("n"),
    _text("digest"),
    Column("hashes", LargeBinary, nullable=False),  # last: who reads the columns before it does not read it
)
QUESTIONS = _table("questions", _text("account"), _text("place"), _text("digest"))
ANSWERS = _table(
    "answers", _text("account"), _text("question"), _text("file"), _number("size"), _text("digest")
)
CAMPAIGNS = _table("campaigns", _text("name"), _text("protocol"), _text("terms"), _text("form"))
FILES = _table(
    "files",
    _text("campaign"),
    _text("name"),
    _text("digest"),
    _number("people", is_needed=False),
    _text("run"),
)
REPORTS = _table("reports", _text("campaign"), _text("file"), _text("manifest"))
RELEASED_CHECKS = _table("released_checks", _text("answer"))
