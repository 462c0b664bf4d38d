"""Writes the pages of what was measured, and the gallery: docs/measured/NAME.md is told from docs/measured/NAME.toml.

    python docs/write_measured.py            # writes the pages anew; tests/test_contributing.py fails where one is stale

A file is one `Page`: results, each with the command that takes it, the day, its claims (held or not) and its tables. A
table is CSV as it is shown (or the Markdown that a script printed), or a tidy CSV file beside it with the columns of `TIDY`, of
which `across` becomes the columns.
"""

from __future__ import annotations

import csv
import datetime
import io
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

from draw_dots import draw_dots
from pydantic import BaseModel, ConfigDict

FOLDERS = [Path(__file__).parent / name for name in ("measured", "gallery")]
TIDY = ("set", "method", "parameters", "eps", "score", "spread")
FIGURE = re.compile(r"\[?-?\d|-?$")
"""How a cell of a column of figures begins; an empty one, and "-", too."""
NUMBER = re.compile(r"(?<![\d.])\d[\d,]*(?:\.\d+)?")
"""A number in a cell, without its sign."""
Read = TypeVar("Read", bound=BaseModel)
WRITTEN = "<!-- written by `python docs/write_measured.py` from {name} -->"


class Strict(BaseModel):
    """A table of the file; a key that it does not know is refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Claim(Strict):
    """What was claimed before it was measured."""

    says: str
    held: bool


class Picture(Strict):
    """The columns that are drawn of the first table of `result`: rows whose cells end in `unit`, as shares of the column `of`."""

    result: str
    columns: tuple[str, ...]
    unit: str = ""
    of: str = ""


class Table(Strict):
    """Figures: as they are shown (`csv`), or tidy in a file (`tidy`) with the values of `across` as columns."""

    title: str = ""
    csv: str = ""
    tidy: str = ""
    across: str = "eps"


class Result(Strict):
    """One thing that was measured: `note` is what a reader must know before the tables, `finding` what they show."""

    title: str
    date: datetime.date
    command: str = ""
    cores: str = ""
    note: str = ""
    finding: str = ""
    pictures: dict[str, str] = {}
    claims: tuple[Claim, ...] = ()
    tables: tuple[Table, ...] = ()


class Page(Strict):
    """What one page shows: `reader` says whom it is for, `about` what holds for all of its results, `suites` whose follow.

    `picture`: what is drawn; without it the first table with a score of each method for each epsilon.
    """

    title: str
    reader: str
    about: str = ""
    picture: Picture | None = None
    results: tuple[Result, ...] = ()
    suites: tuple[str, ...] = ()


class Suites(Strict):
    """What `ldptree benchmark` left of a suite in results.toml, copied to suites/NAME.toml."""

    results: tuple[Result, ...]


def read_page(path: Path) -> Page:
    """The file as it is checked. Raises SystemExit with a sentence: it, or a suite's results, cannot be read."""
    page = _read(path, Page)
    files = [path.parent / "suites" / f"{name}.toml" for name in page.suites]
    found = [_read(file, Suites).results for file in files]
    return page.model_copy(
        update={"results": (*page.results, *(one for results in found for one in results))}
    )


def _read(path: Path, kind: type[Read]) -> Read:
    try:
        return kind.model_validate(tomllib.loads(path.read_text()))
    except OSError as fault:
        raise SystemExit(f"{path}: {fault.strerror}") from None
    except ValueError as fault:  # of both libraries
        first, *_ = str(fault).splitlines()
        raise SystemExit(
            f"{path}: cut off, or of another version ({first}). Run its command again, and copy results.toml here."
        ) from None


def spread_out(rows: list[dict[str, str]], across: str) -> list[list[str]]:
    """A tidy table with the values of one column side by side; columns that are empty throughout are left out."""
    values = list(dict.fromkeys(row[across] for row in rows))
    down = [
        name for name in TIDY[:4] if name != across and any(row[name] not in ("", "default") for row in rows)
    ]
    found: dict[tuple[str, ...], dict[str, str]] = {}
    for row in rows:
        shown = row["score"] + (f" ± {row['spread']}" if row["spread"] else "")
        found.setdefault(tuple(row[name] for name in down), {})[row[across]] = shown
    head = [*down, *(f"{across} {value}" if across == "eps" else value for value in values)]
    return [head, *([*key, *(cells.get(value, "") for value in values)] for key, cells in found.items())]


def cells_of(table: Table, folder: Path) -> list[list[str]]:
    """The header and the rows of a table."""
    if table.csv.startswith("|"):
        lines = [re.split(r"(?<!\\)\|", line)[1:-1] for line in table.csv.strip().splitlines()]
        return [[cell.strip().replace("\\|", "|") for cell in line] for line in (lines[0], *lines[2:])]
    if not table.tidy:
        return list(csv.reader(io.StringIO(table.csv)))
    with (folder / table.tidy).open(newline="") as file:
        reader = csv.DictReader(file)
        if tuple(reader.fieldnames or ()) != TIDY:
            raise ValueError(f"{table.tidy}: the columns must be {', '.join(TIDY)}")
        return spread_out(list(reader), table.across)


def align(cells: list[str]) -> list[str]:
    """A column of figures with equal decimals: last zeros that were cut off are written again.

    Where a figure would get more digits than any other has, or one has no decimals, it stays.
    """
    places = list(zip(*(NUMBER.findall(cell) for cell in cells), strict=False))
    if not places or any(len(NUMBER.findall(cell)) != len(places) for cell in cells):
        return cells
    columns = [align_numbers(list(numbers)) for numbers in places]
    texts = [iter(numbers) for numbers in zip(*columns, strict=True)]
    return [
        NUMBER.sub(lambda _, left=left: next(left), cell) for cell, left in zip(cells, texts, strict=True)
    ]


def align_numbers(numbers: list[str]) -> list[str]:
    """The numbers at one place of each cell, as of `align`."""
    decimals = [len(number.partition(".")[2]) for number in numbers]
    most = max(count_digits(number) for number in numbers)
    if not all(decimals):
        return numbers
    padded = [number + "0" * (max(decimals) - n) for number, n in zip(numbers, decimals, strict=True)]
    return [new if count_digits(new) <= most else old for old, new in zip(numbers, padded, strict=True)]


def count_digits(number: str) -> int:
    """Return how many digits a number is known to, those before the first that is not 0 left out."""
    return len(re.sub(r"\D", "", number).lstrip("0"))


def write_table(rows: list[list[str]]) -> Iterator[str]:
    """Markdown, with the columns of figures to the right."""
    if len({len(row) for row in rows}) != 1:
        raise ValueError(f"rows of different lengths below the header {rows[0]}")
    columns = [list(column) for column in zip(*rows[1:], strict=True)]
    figures = [all(FIGURE.match(cell) for cell in column) for column in columns] or [False] * len(rows[0])
    shown = [align(column) if each else column for column, each in zip(columns, figures, strict=False)]
    for number, row in enumerate([rows[0], *zip(*shown, strict=True)]):
        yield "| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |"
        if number == 0:
            yield "|" + "".join("---:|" if each else "---|" for each in figures)


def find_picture(page: Page, result: Result, head: list[str]) -> Picture | None:
    """Return what is drawn of a table, None where nothing is."""
    if page.picture:
        return page.picture if page.picture.result == result.title else None
    columns = tuple(name for name in head if name.startswith("eps "))
    return Picture(result=result.title, columns=columns) if head[0] == "method" and len(columns) > 2 else None


def draw_table(rows: list[list[str]], picture: Picture) -> str:
    """An SVG of some columns of a table."""
    at = [rows[0].index(name) for name in picture.columns]
    lines = []
    for row in rows[1:]:
        cells = [row[column] for column in at]
        (unit,) = figures_in(row[rows[0].index(picture.of)]) if picture.of else [1.0]
        if all(cell.endswith(picture.unit) for cell in cells):
            lines.append((row[0], [[figure / unit for figure in figures_in(cell)] for cell in cells]))
    return draw_dots(lines, picture.columns)


def figures_in(cell: str) -> list[float]:
    """Return the figure of a cell, or both ends of a range such as "1 to 2"; a spread after "±" is left out."""
    figures = re.findall(r"-?\d[\d,]*\.?\d*", cell.partition("±")[0])
    return [float(figure.replace(",", "")) for figure in figures]


def write_result(result: Result, folder: Path, drawing: tuple[str, Table] | None) -> Iterator[str]:
    """A section, with a picture of that table before it."""
    yield from (f"## {result.title}", "", result.note.strip(), "")
    yield from (f"![{words}]({path})\n" for path, words in result.pictures.items())
    for table in result.tables:
        if drawing and table is drawing[1]:
            yield from (f"![{table.title or result.title}, drawn from the table below]({drawing[0]})", "")
        yield from (*((table.title, "") if table.title else ()), *write_table(cells_of(table, folder)), "")
    yield from (f"- {'Held' if claim.held else '**Not held**'}: {claim.says}" for claim in result.claims)
    yield from ("", result.finding.strip(), "")
    where = f", {result.cores}" if result.cores else ""
    yield f"Measured {result.date:%Y-%m-%d}{where}" + (":" if result.command else ".")
    if result.command:
        yield from ("", *(f"    {line}" for line in result.command.strip().splitlines()))
    yield ""


def write_page(page: Page, path: Path) -> dict[Path, str]:
    """The Markdown of a page, and the picture of the first of its tables that has one."""
    drawn: dict[Path, str] = {}
    drawing = None
    for result, table in ((each, table) for each in page.results for table in each.tables):
        rows = cells_of(table, path.parent)
        if not drawn and (picture := find_picture(page, result, rows[0])):
            drawn[path.with_suffix(".svg")] = draw_table(rows, picture)
            drawing = (f"{path.stem}.svg", table)
    head = ("", WRITTEN.format(name=path.name), "", page.reader, "", page.about.strip(), "")
    lines = [f"# {page.title}", *head]
    for result in page.results:
        lines += write_result(result, path.parent, drawing)
    kept: list[str] = []
    for line in "\n".join(lines).splitlines():
        if line or (kept and kept[-1]):
            kept.append(line)
    return {path.with_suffix(".md"): "\n".join(kept).rstrip() + "\n", **drawn}


def draw_gains(stories: Page, folder: Path) -> str:
    """An SVG of what reports gain in each story beside the best model of public rows, in points or in % of the typical error."""
    lines = []
    for result in stories.results:
        with (folder / str(result.tables[0].tidy)).open(newline="") as file:
            scores = {row["method"]: float(row["score"]) for row in csv.DictReader(file)}
        public = [score for name, score in scores.items() if name.startswith(("public", "constant", "most"))]
        ours, is_error = scores["ldptree"], "constant" in scores
        gain = 100 * (1 - ours / min(public)) if is_error else ours - max(public)
        lines.append((result.title, [[gain]]))
    return draw_dots(lines, ["gain with reports, in points (of a number: in % of the typical error)"])


def written() -> dict[Path, str]:
    """Each page and picture, and what it should hold."""
    gallery = Path(__file__).parent / "gallery"
    gains = draw_gains(read_page(gallery / "stories.toml"), gallery)
    return {gallery.with_name("images") / "gains.svg": gains} | {
        file: text
        for folder in FOLDERS
        for path in sorted(folder.glob("*.toml"))
        for file, text in write_page(read_page(path), path).items()
    }


if __name__ == "__main__":
    for path, text in written().items():
        path.write_text(text)
