"""One word for one idea: names in the code are those of docs/reference/glossary.md, and the private idiom of the
first building is gone."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest
from page_truth.words import AVOIDED, find_avoided

from tasks.page import captions

ROOT = Path(__file__).parents[1]
LAYERS = ("ldptree", "schemas", "storage", "tasks", "flows", "benchmark/ldptree_benchmark", "benchmark/timed")
IDIOM = re.compile(
    r"(?:^|_)(?:said|told|mended|mends?|mending|hoped|hush|poured|officer|grafted|begun|uncut)(?:_|$)",
    re.IGNORECASE,
)


KEYS = {key for texts in vars(captions).values() if isinstance(texts, dict) for key in texts}
"""Of the page's texts, which nobody reads."""


@cache
def nodes_of(path):
    return list(ast.walk(ast.parse(path.read_text())))


def names_in(path):
    """Every name that a module makes or uses, its own among them."""
    yield path.stem
    for node in nodes_of(path):
        for key in ("name", "id", "arg", "attr"):
            if isinstance(name := getattr(node, key, None), str):
                yield name


def files_of(layer):
    """Its own: what others wrote lies in an environment."""
    return [path for path in (ROOT / layer).rglob("*.py") if ".venv" not in path.parts]


@pytest.mark.parametrize("layer", LAYERS)
def test_no_name_is_of_the_private_idiom(layer):
    found = {
        str(path.relative_to(ROOT)): sorted(set(filter(IDIOM.search, names_in(path))))
        for path in files_of(layer)
    }
    assert {path: names for path, names in found.items() if names} == {}


def test_the_glossary_names_files_that_are_there():
    named = re.findall(
        r"`((?:ldptree|schemas|storage|tasks|flows)/[\w/.]+)`",
        (ROOT / "docs/reference/glossary.md").read_text(),
    )
    assert [name for name in named if not (ROOT / name).exists()] == []


def test_the_glossary_names_attributes_that_are_there():
    """`Class.attribute`: a class of the product's, and a name in its body."""
    bodies: dict[str, set[str]] = {}
    for path in (path for layer in LAYERS for path in files_of(layer)):
        for node in nodes_of(path):
            if isinstance(node, ast.ClassDef):
                names = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
                names |= {each.name for each in ast.walk(node) if isinstance(each, ast.FunctionDef)}
                bodies.setdefault(node.name, set()).update(names)
    named = re.findall(r"`([A-Z]\w+)\.(\w+)", (ROOT / "docs/reference/glossary.md").read_text())
    assert len(named) > 15
    assert [one for one in named if one[1] not in bodies.get(one[0], ())] == []


def sentences_in(path):
    """Every text of a module that has a space and is no docstring, but help of commands; without code, keys and options."""
    silent: set[int] = set()
    for node in nodes_of(path):
        decorators = [ast.unparse(each) for each in getattr(node, "decorator_list", ())]
        if getattr(node, "name", "") == "audit":
            silent |= {id(each) for each in ast.walk(node)}
        elif not any("command" in each for each in decorators) and isinstance(
            getattr(node, "body", None), list
        ):
            silent |= {id(each.value) for each in node.body if isinstance(each, ast.Expr)}
    for node in nodes_of(path):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in silent:
            text = re.sub(r"`[^`]*`|--\S+|[a-z]+\.[a-z_]+|\[[a-z]+\]|[a-z]+ = |Literal\[.*\]", "", node.value)
            if " " in text.strip() and not text.startswith("Example: "):
                yield text


def test_what_people_read_has_the_glossarys_words():
    """Where no word of the code stands for an idea that people have another word for; an audit is of the code's words."""
    assert len(re.findall("\\|", AVOIDED.pattern)) > 12
    files = [path for layer in ("flows", "tasks/page") for path in files_of(layer)]
    read = {
        str(path.relative_to(ROOT)): [
            text
            for text in sentences_in(path)
            if AVOIDED.search(re.sub(r"{[^}]*}", "", text)) and text not in KEYS
        ]
        for path in [*files, ROOT / "tasks/report.py"]
        if path.name != "audit.py"
    }
    read |= {
        path.name: AVOIDED.findall(re.sub(r"<[^>]*>|{[{%].*?[%}]}", " ", path.read_text()))
        for path in (ROOT / "tasks/page/templates").glob("*.j2")
    }
    assert {path: texts for path, texts in read.items() if texts} == {}


@pytest.mark.parametrize("path", [*(ROOT / "docs/gallery").glob("*.html")], ids=lambda path: path.stem)
def test_a_page_of_the_gallery_has_the_glossarys_words(path):
    """Those of each kind of run are read by `page_truth`."""
    assert find_avoided(path.read_text()) == []


ROOMS = {"holder", "respondent", "cell", "kind", "simulation", "the answers"}
"""Words of the code that a page of the documentation may need; pages for everybody do without."""
FOR_EVERYBODY = ("README.md", "docs/index.md", "docs/tutorial", "docs/gallery")


@pytest.mark.parametrize(
    "page",
    [
        ROOT / "README.md",
        *(ROOT / "docs").glob("*.md"),
        *(
            path
            for room in ("tutorial", "how-to", "explanation", "gallery")
            for path in (ROOT / "docs" / room).glob("*.md")
            if path.name != "architecture.md"
        ),
    ],
    ids=lambda path: path.stem,
)
def test_a_page_of_the_documentation_has_the_glossarys_words(page):
    is_for_everybody = page.relative_to(ROOT).as_posix().startswith(FOR_EVERYBODY)
    text = re.sub(r"(?m)^```[\s\S]*?^```|^    .*$|`[^`]*`|\]\([^)]*\)", " ", page.read_text())
    words = {word.lower().removesuffix("s") for word in AVOIDED.findall(text)}
    assert words - (set() if is_for_everybody else ROOMS) == set()


def test_what_a_step_leaves_is_explained_in_the_glossarys_words():
    """As `explain` prints it."""
    from flows import pipeline  # noqa: F401 - with every step
    from tasks.step import REGISTERED

    says = {name: step.step.says for name, step in REGISTERED.items()}
    assert len(says) > 15
    assert {name: text for name, text in says.items() if AVOIDED.search(text)} == {}
