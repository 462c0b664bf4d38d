"""Show what the holders of a work folder spent, and copy their database (`ldptree ledger`). Counts only: nobody is named."""

from __future__ import annotations

import secrets
import sqlite3
from collections import Counter
from pathlib import Path
from typing import Any

from flows.command.streams import make_console, print_json
from flows.work_folder.provenance import open_existing
from ldptree.errors import ConfigError
from ldptree.protocol.ledger import Charge, Names, format_epsilon
from schemas.named_files import check_output, shown_path
from storage.ledger.accounts import RELEASE, Account
from storage.ledger.campaigns import campaigns_in
from storage.ledger.database import Database
from storage.ledger.lost_parts import check_state
from storage.ledger.schema import ANSWERS, CHARGES, RELEASED_CHECKS
from storage.private_files import FILE, fsync
from storage.store import Store


def show_ledger(work: Path, *, as_json: bool) -> None:
    """Print campaigns, questions, people, what they spent and what is left to them. Raises ConfigError, ArtifactCorrupt."""
    store = open_existing(work)
    check_state(store, by_digest=True)
    content = describe(store)
    if as_json:
        print_json(content)
        return
    print(f"{content['database']}: {content['transactions']:,} transactions")
    if not content["questions"]:
        print("Nobody was charged.")
    else:
        cap, most = content["cap"], format_epsilon(content["largest"]["epsilon"])
        held = "there is no lifetime cap" if cap is None else f"the lifetime cap is {format_epsilon(cap)}"
        print(f"Of {content['people']:,} people nobody spent more than epsilon {most}; {held}.")
        _print_table(("question", "epsilon >", "people >"), content["questions"])
        _print_table(("epsilon spent >", "people >", "known by", "left >"), content["spent"])
    if content["campaigns"]:
        _print_table(("campaign", "files >", "reports >"), content["campaigns"])
    reports = content["reports"]
    print()
    print(f"files of reports: {reports['files']:,} ({reports['bytes']:,} bytes)")
    print(f"released answers of checks: {content['released_checks']:,}")
    print(f"accounts of trials, which protect nobody and are left out here: {content['trials']:,}")


def describe(store: Store) -> dict[str, Any]:
    """Return what `ldptree ledger --json` prints, of releases."""
    database = Database(store.objects)
    ledger = Account(store, None).read()
    cap, largest = ledger.cap, ledger.largest_spend()
    with database.reading() as kept:
        answers = {row.file: row.size for row in kept.rows(ANSWERS, account=RELEASE)}
        accounts = {row.account for row in kept.rows(CHARGES)} - {RELEASE}
        n_checks, n_transactions = len(kept.rows(RELEASED_CHECKS)), len(kept.transactions())
    spent = [
        {
            "epsilon": epsilon,
            "people": n,
            "known_by": known_by,
            "left": None if cap is None else _left(cap, epsilon),
        }
        for known_by, of in ledger.count_by_spend().items()
        for epsilon, n in sorted(of.items())
    ]
    return {
        "database": database.where,
        "transactions": n_transactions,
        "cap": cap,
        "people": sum(line["people"] for line in spent),
        "largest": {"epsilon": largest.epsilon, "questions": len(largest.on)},
        "questions": _questions(ledger.entries),
        "spent": spent,
        "campaigns": [
            {
                "campaign": campaign.name,
                "files": len({*campaign.asked().values()}),
                "reports": sum(report.rows for report in campaign.reports()),
            }
            for campaign in campaigns_in(store)
        ],
        "reports": {"files": len(answers), "bytes": sum(answers.values())},
        "released_checks": n_checks,
        "trials": len(accounts),
    }


def back_up(work: Path, to: Path) -> None:
    """Copy the database as it is at one moment into a new file of its owner only. Raises ConfigError, ArtifactCorrupt."""
    store = open_existing(work)
    check_state(store)
    database = Database(store.objects)
    if (name := database.server_name) is not None:
        raise ConfigError(
            f"{database.where}: PostgreSQL copies its own databases. Run: pg_dump --file=FILE {name}"
        )
    if not database.is_there:
        raise ConfigError(f"{database.where}: no database yet, as nobody was asked here.")
    where = f"FILE {shown_path(to)}"
    if to.exists() or to.is_symlink():
        raise ConfigError(f"{where}: stands already, and is not written over. Name a new file.")
    if to.resolve().is_relative_to(work.resolve()):
        raise ConfigError(
            f"{where}: lies in the work folder. Name a file on another disk, where a backup belongs."
        )
    check_output(to, "FILE")
    aside = to.with_name(f".{secrets.token_hex(8)}.part")
    try:
        aside.touch(FILE, exist_ok=False)
        database.copy_to(aside)
        fsync(aside)
        to.hardlink_to(aside)
        fsync(to.absolute().parent)
    except (sqlite3.Error, OSError) as fault:
        reason = fault.strerror if isinstance(fault, OSError) else "it has no room, or cannot be written"
        raise ConfigError(f"{where}: cannot be written ({reason}).") from None
    finally:
        for path in to.parent.glob(f"{aside.name}*"):
            path.unlink(missing_ok=True)


def _questions(entries: tuple[Charge, ...]) -> list[dict[str, Any]]:
    """Return a line for each question as people call it, oldest first. Whoever is known by name is not counted by row too."""
    named = {entry.question for entry in entries if isinstance(entry.who, Names)}
    people = Counter[tuple[str, float]]()
    for entry in entries:
        is_counted = isinstance(entry.who, Names) or entry.question not in named
        people[entry.about or entry.question, entry.epsilon] += len(entry.who) if is_counted else 0
    return [{"question": about, "epsilon": epsilon, "people": n} for (about, epsilon), n in people.items()]


def _left(cap: float, epsilon: float) -> float:
    return max(round(cap - epsilon, 12), 0.0)


def _print_table(titles: tuple[str, ...], lines: list[dict[str, Any]]) -> None:
    """Print lines below titles; ">" after a title puts its figures to the right."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in titles:
        table.add_column(title.removesuffix(" >"), justify="right" if title.endswith(">") else "left")
    for line in lines:
        table.add_row(*map(_shown, line.values()))
    print()
    make_console().print(table)


def _shown(value: object) -> str:
    if isinstance(value, float):
        return format_epsilon(value) if value else "nothing"
    return "no cap" if value is None else f"{value:,}" if isinstance(value, int) else str(value)
