"""The documentation as a site: `make docs`.

Sphinx, since it is the best-kept generator for Python (MkDocs and its Material theme end in 2026): its search needs no server and
its API pages come from the docstrings. Pages are Markdown, or notebooks that MyST-NB shows as they were run (`make notebooks`).
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

project = "ldptree"
html_title = "ldptree"
author = "The ldptree authors"
copyright = author  # noqa: A001  # Sphinx asks for this name
extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
]
highlight_language = "text"
html_theme = "furo"
html_show_sourcelink = False
html_show_sphinx = False
templates_path: list[str] = []
exclude_patterns = ["client"]
myst_heading_anchors = 4
myst_enable_extensions = ["deflist"]  # not "dollarmath": its pages load MathJax from another host
autodoc_member_order = "bysource"
autodoc_typehints = "none"
napoleon_google_docstring = True
nb_execution_mode = "off"
smartquotes = False  # `lam="auto"` in the cell of a table is code
suppress_warnings = [
    "myst.xref_missing"
]  # links to files beside docs/, which a reader of the repository follows


def open_in_place(app: Any, name: str, template: str, context: dict[str, Any], tree: Any) -> None:
    """Links to files of this folder, such as the pages of the gallery, open instead of being saved; digits of tables align."""
    style = "<style>table{font-variant-numeric:tabular-nums}</style>"
    context["metatags"] = context.get("metatags", "") + style
    context["body"] = context.get("body", "").replace(' download=""', "")


def setup(app: Any) -> None:
    """Called by Sphinx."""
    app.connect("html-page-context", open_in_place)
