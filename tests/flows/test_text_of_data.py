"""Text of data never acts: not in a terminal, a log, a page, a picture, Markdown, SQL or a sheet, whatever a name holds."""

from __future__ import annotations

import csv
import json
import logging
import os
import pty
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import unquote
from xml.etree import ElementTree

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from chain import Chain, rides_config
from markdown_it import MarkdownIt

from flows.command.init import init
from flows.executors import InlineExecutor
from flows.finish import finish
from flows.pipeline import Pipeline
from flows.server import run_log
from flows.server.artifacts import show_failure
from ldptree.errors import DataError
from ldptree.plain_text import escape_cell, make_visible
from schemas.config import load
from storage.store import Store
from tasks.page.findings import Table
from tasks.page.render import summarize
from tasks.predict import load_model, predict_file
from tasks.report import read_facts

HOSTILE = {
    "clears the screen": "\x1b[2Jgone",
    "colours": "\x1b[31mred",
    "a link of a terminal": "\x1b]8;;http://evil.example\x1b\\here\x1b]8;;\x1b\\",
    "the clipboard": "\x1b]52;c;cm0gLXJm\x07",
    "C1": "\x9b2Jgone\x9d0;title\x9c",
    "a forged line": "a\r\nldptree: all is well",
    "over the line": "good\rbad\x08\x7f",
    "NUL": "a\0b",
    "right to left": "\u202egpj.exe\u2066",
    "unseen": "pa\u200bid\ufeff\U000e0041",
    "lines of Unicode": "a\u2028b\u2029c\x85d",
    "markup of rich": "[red]x[/red] [link=http://evil.example]y[/link] :bug:",
    "a link": "[x](javascript:alert(1))",
    "an address": "http://evil.example www.evil.example",
    "an image": "![](http://evil.example/x.png)",
    "HTML": "<img src=x onerror=alert(1)>",
    "a script": "</script></svg></title><script>alert(1)</script>",
    "a cell of a table": "a | b | `c` ``` *d* _e_",
    "a template": "{{ 7*7 }}{% raw %}",
    "quotes": 'x"; DROP TABLE data; -- \'\\"];',
    "a formula": '=HYPERLINK("http://evil.example")',
    "a formula after a blank": " =1+1",
    "a plus": "+cmd|' /C calc'!A0",
    "a minus": "-2+3",
    "an at": "@SUM(A1)",
    "a tab": "\t=1+1",
}
"""Names that somebody writes into a file that another person reads."""
MOVES = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\U000e0000-\U000e007f]"
)
LABELS = ("=1+1", "-1.5\x1b[2J</svg>")
EACH = pytest.mark.parametrize("name", list(HOSTILE))


def acts(text: str) -> list[str]:
    """What moves a cursor, hides, turns around or begins a line of its own."""
    return MOVES.findall(text)


# terminal and log

PRINTS = """
import json, sys
from flows.command.streams import prepare_streams
prepare_streams()
import typer
from flows.command.streams import print_json, print_file
from flows.command.terminal import StepList
from ldptree.errors import DataError
from rich.console import Console
from rich.table import Table
{more}
for name, text in json.loads({names!r}).items():
    text = text.replace("\\n", " ")
    print(text)
    print(text, file=sys.stderr)
    print(DataError(text))
    print_json({{"x": text}})
    print_file(text)
    {echo}
    with StepList(text, []) as shown:
        shown.say(text)
    table = Table(box=None)
    table.add_column(text)
    table.add_row(text)
    console = {console}
    console.print(table)
    console.print(text, style="bold", soft_wrap=True)
    print(f"END {{name}}", flush=True)
"""


def in_terminal(code: str, **environment: str) -> str:
    """All that a program writes to a terminal."""
    ours, its = pty.openpty()
    words = {"TERM": "xterm-256color", "COLUMNS": "400", **environment}
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=its, stderr=its, stdin=its, env=dict(os.environ) | words
    ) as program:
        os.close(its)
        written = b""
        try:
            while some := os.read(ours, 1 << 16):
                written += some
        except OSError:  # its last writer ended
            pass
    os.close(ours)
    assert program.returncode == 0, written
    return written.decode(errors="replace").replace("\r\n", "\n")


STYLES = re.compile(r"\x1b\[(?:[012]m|1A|2K|\?25[lh])")
"""What our own lists and tables send."""


@pytest.fixture(scope="module")
def printed() -> dict[str, str]:
    """What a terminal gets of each name, from every writer."""
    code = PRINTS.format(
        names=json.dumps(HOSTILE),
        more="from flows.command import streams",
        echo="streams.say(text)",
        console="streams.make_console()",
    )
    parts = re.split(r"END (.*)\n", in_terminal(code))
    return dict(zip(parts[1::2], parts[::2], strict=False))


@EACH
def test_a_terminal_shows_text_and_does_nothing_that_it_says(printed: dict[str, str], name: str) -> None:
    plain = STYLES.sub("", printed[name]).replace("\r", "", 2)
    assert acts(plain) == []
    if not acts(HOSTILE[name]) and "\t" not in HOSTILE[name]:
        assert plain.count(HOSTILE[name]) >= 8  # as it is


@pytest.fixture(scope="module")
def piped() -> dict[str, bytes]:
    """What a program that reads another's output gets of each name."""
    code = f"""
import json
from flows.command.streams import prepare_streams, print_file, print_json
prepare_streams()
for name, text in json.loads({json.dumps(HOSTILE)!r}).items():
    print_json({{"x": text}})
    print_file(text)
    print(f"END {{name}}", flush=True)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout
    parts = re.split(rb"END (.*)\n", done)
    return {name.decode(): said for name, said in zip(parts[1::2], parts[::2], strict=False)}


@EACH
def test_what_a_program_reads_stays_what_it_is(piped: dict[str, bytes], name: str) -> None:
    first, _, rest = piped[name].partition(b"\n")
    assert json.loads(first) == {"x": HOSTILE[name]}
    assert acts(first.decode()) == []
    assert rest.decode() == f"{HOSTILE[name]}\n"


@EACH
def test_an_error_says_a_name_and_does_nothing_that_it_says(name: str) -> None:
    """Also where Prefect, a notebook or a log shows it: as its text, its states and its lines have it."""
    assert acts(str(DataError(f'column "{HOSTILE[name]}": empty.'))) == []


def test_a_long_name_leaves_the_remedy_of_an_error_in_sight() -> None:
    said = str(DataError(f"rides.csv: {'x' * 100_000}: no such column.\nRename it."))
    assert len(said) < 5_000
    assert said.startswith("rides.csv: xxx")
    assert said.endswith("xxx: no such column.\nRename it.")


def test_no_line_of_a_log_is_forged(monkeypatch: pytest.MonkeyPatch) -> None:
    lines: list[str] = []
    handler = logging.Handler()
    monkeypatch.setattr(handler, "emit", lambda record: lines.append(record.getMessage()))
    logger = logging.getLogger("prefect.flow_runs")
    monkeypatch.setattr(logger, "handlers", [handler])
    monkeypatch.setattr(logger, "propagate", False)
    for text in HOSTILE.values():
        logger.warning("prune: done; found: %s", text)
        try:
            raise DataError(text)
        except DataError:
            logger.exception("Encountered an exception")
    assert len(lines) == 2 * len(HOSTILE)
    assert acts("".join(lines)) == []
    assert not [line for line in lines if re.search("^ldptree", line, re.M) and "\n" in line]


# Markdown


def kept_artifacts(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is sent to Prefect of Markdown: texts, descriptions, and texts in cells, which its UI reads as Markdown too."""
    texts: list[str] = []

    def keep(**content: Any) -> None:
        for value in content.values():
            for row in value if isinstance(value, list) else [{"": value}]:
                texts.extend(cell for cell in row.values() if isinstance(cell, str))

    def keep_link(address: str, **more: Any) -> None:
        assert re.fullmatch(r"/ldptree/runs/[\w.%~-]*/page\.html", address)
        keep(**more)

    for kind in ("table", "markdown"):
        monkeypatch.setattr(
            f"flows.server.artifacts.create_{kind}_artifact",
            lambda content, **more: keep(content=content, **more),
        )
    monkeypatch.setattr("flows.server.artifacts.create_link_artifact", keep_link)
    return texts


def elements(markdown: str) -> set[str]:
    """All that a reader of Markdown makes of it, by name; raw HTML is some of it."""
    found = set()
    for token in MarkdownIt("commonmark", {"html": True}).enable("table").parse(markdown):
        found |= {token.type, *(child.type for child in token.children or ())}
    return found


@EACH
def test_artifacts_show_text_as_it_stands(monkeypatch: pytest.MonkeyPatch, name: str, tmp_path: Path) -> None:
    text = HOSTILE[name]
    texts = kept_artifacts(monkeypatch)
    monkeypatch.setattr(run_log, "deployment", SimpleNamespace(id=None, name=""))
    failure = run_log.describe_failure(text, command=f"ldptree run '{text}'", has_started=False)
    show_failure(failure, str(tmp_path / "work" / "runs" / text.replace("/", "") / "page.html"))
    harmful = {
        "link_open",
        "image",
        "html_inline",
        "html_block",
        "em_open",
        "s_open",
        "heading_open",
        "fence",
    }
    for written in texts:
        assert elements(written) & harmful == set(), written
        assert acts(written) == []
        assert not re.search(
            r"(?<!`)(https?://|www\.)(?!127)", re.sub(r"(?m)^    .*", "", written)
        )  # no link of itself


# one run whose columns, categories and classes are all of them


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> SimpleNamespace:
    """A run, its page, its summary and its model."""
    folder = tmp_path_factory.mktemp("hostile")
    n, rng = 1_300, np.random.default_rng(3)
    texts = list(HOSTILE.values())
    numbers = {text: rng.normal(size=n) for text in texts if "\0" not in text}
    kind = rng.integers(0, len(texts), n)
    paid = np.where(rng.random(n) < np.where(kind % 2, 0.2, 0.9), *LABELS)
    table = {
        "zone": ["open" if i % 2 else "closed" for i in range(n)],
        "firm": [texts[i] for i in kind],
        **numbers,
        "paid": list(paid),
    }
    path = folder / "rides.parquet"
    pq.write_table(pa.table(table), path)
    dataset = {"name": HOSTILE["HTML"] + HOSTILE["clears the screen"], "drop": [], "categorical": ["firm"]}
    config = rides_config(path, dataset=dataset | {"positive": LABELS[0]}, model={"depth": 4})
    store = Store(folder / "work")
    walked = Pipeline(store=store, config=config, executor=InlineExecutor(store), name="odd")
    walked.walk()
    finish(walked)
    facts = read_facts(store, walked.page["page"])
    at = folder / "work" / "runs" / "odd"
    return SimpleNamespace(at=at, facts=facts, model=load_model(at), rows=path, table=table)


def pages(run: SimpleNamespace) -> dict[str, str]:
    return {
        "page": (run.at / "page.html").read_text(),
        "index": (run.at.parents[1] / "index.html").read_text(),
        "notebook": run.model._repr_html_(),
    }


@pytest.mark.parametrize("kind", ["page", "index", "notebook"])
def test_pages_and_pictures_show_text_as_it_stands(run: SimpleNamespace, kind: str) -> None:
    html = pages(run)[kind]
    assert acts(html) == []
    assert not re.search(r'<script|<img|href="(?!data:|#|runs/|\.\./)', html)
    assert not re.search(r"<[^>]*\son\w+=", html)
    assert "{{ 7*7 }}" in html or kind == "index"
    if kind == "notebook":
        ElementTree.fromstring(f"<div>{html}</div>")


def test_the_summary_shows_text_as_it_stands(run: SimpleNamespace) -> None:
    text = summarize(run.facts)
    assert elements(text) & {"link_open", "image", "html_inline", "html_block", "s_open"} == set()
    assert acts(text) == []


def test_a_model_in_other_languages_is_that_model(run: SimpleNamespace) -> None:
    """Its SQL scores the rows as it does itself, its JSON is read again, and its drawing is lines of one node each."""
    model, connection = run.model, duckdb.connect()
    connection.register("rows", pa.table(run.table))
    answers = connection.sql(model.to_sql("rows")).fetchall()
    assert len(answers) == len(run.table["paid"])
    assert {row[len(run.table)] for row in answers} <= set(LABELS)
    assert json.loads(model.to_json())
    dot = model.to_dot()
    assert acts(dot) == []
    for line in dot.splitlines()[3:-1]:
        assert re.fullmatch(r'  \d+ (-> \d+ )?\[label="([^"\\]|\\.)*"(, style=rounded)?\];', line), line


def test_a_sheet_computes_no_answer(run: SimpleNamespace, tmp_path: Path) -> None:
    predict_file(run.at, run.rows, tmp_path / "answers.csv")
    predict_file(run.at, run.rows, tmp_path / "answers.parquet")
    with (tmp_path / "answers.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    exact = pq.read_table(tmp_path / "answers.parquet").to_pylist()
    assert {row["prediction"] for row in rows} == {"'=1+1", "'" + make_visible(LABELS[1])}
    assert acts((tmp_path / "answers.csv").read_text()) == []
    assert {row["prediction"] for row in exact} == set(LABELS)
    for row in rows[:20]:
        assert all(float(value) is not None for name, value in row.items() if name != "prediction")


@pytest.mark.parametrize(
    ("text", "cell"),
    [("-1.5", "-1.5"), ("+1e-3", "+1e-3"), ("-", "-"), ("", ""), ("a=b", "a=b"), ("1 + 1", "1 + 1")]
    + [
        (HOSTILE[name], f"'{make_visible(HOSTILE[name])}")
        for name in HOSTILE
        if name.startswith(("a formula", "a plus", "a minus", "an at", "a tab"))
    ],
)
def test_a_cell_of_a_sheet_is_text_where_it_would_be_computed(text: str, cell: str) -> None:
    assert escape_cell(text) == cell


@EACH
def test_a_cell_of_a_sheet_moves_no_cursor(name: str) -> None:
    assert acts(escape_cell(HOSTILE[name])) == []


def test_a_table_of_the_page_as_csv_keeps_names_as_they_are_and_writes_figures_as_programs_read_them() -> (
    None
):
    heads = ("firm", "Estimate", "\x1b[2Jgone")
    rows = (("+1+1", "+3.5", "1,234"), ("+5", "\u22120.5", "\u2013"), ("1,234 km", "+12 points", ""))
    written = unquote(Table("As a table", heads, rows).csv).partition(",")[2]
    assert list(csv.reader(written.splitlines())) == [
        ["firm", "Estimate", "\\u001b[2Jgone"],
        ["'+1+1", "3.5", "1234"],
        ["+5", "-0.5", ""],
        ["1,234 km", "12 points", ""],
    ]


@pytest.mark.parametrize("place", ["a column", "a category", "a class"])
def test_a_name_that_is_too_long_to_show_is_refused(place: str, tmp_path: Path) -> None:
    long = "x" * 100_000
    table = {
        "zone": ["open"] * 60 + ["closed"] * 60,
        long if place == "a column" else "firm": ["ash", long if place == "a category" else "oak"] * 60,
        "paid": ["cash", "cash", "card", long if place == "a class" else "card"] * 30,
    }
    pq.write_table(pa.table(table), tmp_path / "rides.parquet")
    config = rides_config(tmp_path / "rides.parquet", dataset={"drop": [], "positive": None})
    with pytest.raises(DataError, match="100,000 characters") as refused:
        _ = Chain(Store(tmp_path / "work"), config).scaled
    assert len(str(refused.value)) < 500


def test_init_writes_a_configuration_that_runs_whatever_the_columns_are_called(
    run: SimpleNamespace, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    init(
        run.rows,
        target="paid",
        public="zone = 'open'",
        out=tmp_path / "odd.toml",
        force=False,
        as_json=False,
    )
    content = (tmp_path / "odd.toml").read_text()
    assert acts(content) == []
    assert load(tmp_path / "odd.toml").dataset.target == "paid"
    assert "odd.toml: written" in capsys.readouterr().out


@EACH
def test_a_configuration_names_a_column_in_toml(name: str) -> None:
    from storage.raw.recognition.findings import toml_text

    written = f"x = {toml_text(HOSTILE[name])}"
    assert tomllib.loads(written) == {"x": HOSTILE[name]}
    assert acts(written) == []


def test_prefect_finds_a_run_by_tags_of_one_line() -> None:
    from flows.naming import tags_of

    config = rides_config(
        Path("x.csv"), dataset={"name": HOSTILE["a forged line"] + HOSTILE["clears the screen"]}
    )
    assert not [tag for tag in tags_of(config) if acts(tag) or "\n" in tag]
