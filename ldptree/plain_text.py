"""Write text of data as plain text, so that a name, a label or a path does nothing wherever it is shown.

One function for each place that would act on it. SQL has its own (`quote` and `literal`), and so has TOML.
"""

from __future__ import annotations

import html
import json
import re

_RANGES = (
    *(
        (0x00, 0x08),
        (0x0B, 0x1F),
        (0x7F, 0x9F),
    ),  # they move the cursor, begin commands of a terminal, or forge lines
    *(
        (0x061C, 0x061C),
        (0x200E, 0x200F),
        (0x202A, 0x202E),
        (0x2060, 0x206F),
    ),  # they turn what follows around
    *(
        (0xAD, 0xAD),
        (0x200B, 0x200D),
        (0xFEFF, 0xFEFF),
        (0xFFF9, 0xFFFB),
        (0xE0000, 0xE007F),
    ),  # nobody sees them
    *((0x2028, 0x2029), (0xD800, 0xDFFF), (0xFFFE, 0xFFFF)),  # lines of Unicode alone; no characters at all
)
VISIBLE = {code: json.dumps(chr(code))[1:-1] for low, high in _RANGES for code in range(low, high + 1)}
"""Escapes of characters that act, as JSON writes them, so that JSON with them stays the same JSON."""
_ACTS_IN_MARKDOWN = re.compile(r"[\\`*_{}\[\]#|~!@]|:(?=//)|(?<=www)\.", re.IGNORECASE)
_NUMBER = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?\s*", re.IGNORECASE)


def make_visible(text: str) -> str:
    """Return the text with every character written out that a terminal, a log or a page would act on; lines and tabs stay."""
    return text if text.isprintable() else text.translate(VISIBLE)


def put_on_one_line(text: str) -> str:
    """Return the text, visible, with the ends of its lines written out too."""
    return make_visible(text).replace("\n", "\\n")


def indent_lines(text: str) -> str:
    """Return the text, visible, each line but the first set in, so that none looks like an entry of its own."""
    return re.sub(r"\n(?! )", "\n  ", make_visible(text))


def escape_html(text: str) -> str:
    """Return the text as HTML and SVG show it."""
    return html.escape(make_visible(text))


def escape_markdown(text: str) -> str:
    """Return the text as Markdown shows it on one line, with no link, picture, table or HTML of its own."""
    line = html.escape(make_visible(re.sub(r"[ \t\r\n]+", " ", text).strip()), quote=False)
    return _ACTS_IN_MARKDOWN.sub(r"\\\g<0>", line)


def escape_cell(text: str) -> str:
    """Return the text, visible, as a cell of a CSV, after a ' where a spreadsheet would compute it. Numbers stay numbers."""
    text = make_visible(text)
    start = text.lstrip()
    is_computed = start[:1] in tuple("=+-@＝＋－＠") and len(start) > 1 and not _NUMBER.fullmatch(start)
    return f"'{text}" if is_computed or text.startswith("\t") else text
