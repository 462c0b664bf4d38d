"""Words that nobody who reads a page or a terminal meets, as the glossary has them."""

from __future__ import annotations

import re
from pathlib import Path

from page_truth.artifacts import Run
from page_truth.reading import read

GLOSSARY = Path(__file__).parents[2] / "docs" / "reference" / "glossary.md"
_SECTION = GLOSSARY.read_text(encoding="utf-8").partition("### Where people read")[2].partition("\n## ")[0]
AVOIDED = re.compile(rf"\b(?:{'|'.join(re.findall('`([^`]+)`', _SECTION))})s?\b", re.IGNORECASE)


def find_avoided(html: str) -> list[str]:
    """Return words that a page has and the glossary avoids; a command, a configuration and names from data are no words."""
    words = re.sub(r'<dl class="plain pairs">.*?</dl>|<code>.*?</code>|“[^”]*”', " ", html, flags=re.DOTALL)
    return AVOIDED.findall(read(words).text)


def check_words(run: Run) -> list[str]:
    """Whether the page has another word than the glossary for an idea; names of columns are data."""
    private = run.facts["privacy"]
    columns = {feature["name"] for feature in private["features"]} | {
        name for name, _ in private["example"]["row"]
    }
    return [f"the page says {word!r}" for word in find_avoided(run.html) if word.lower() not in columns]
