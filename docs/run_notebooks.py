"""Runs the notebooks of docs/notebooks and keeps what they show: `make notebooks`.

A notebook is text, code and its outputs; nothing that changes from one run to the next is kept of the machine that ran it.
"""

from __future__ import annotations

from pathlib import Path

import nbformat
from nbclient import NotebookClient

FOLDER = Path(__file__).parent / "notebooks"
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


def run_notebook(path: Path) -> None:
    """Run its cells in a kernel of their own, and write it anew with their outputs."""
    notebook = nbformat.read(path, as_version=4)
    NotebookClient(
        notebook, timeout=120, kernel_name="python3", record_timing=False, coalesce_streams=True
    ).execute()
    notebook.metadata = nbformat.from_dict(METADATA)
    for number, cell in enumerate(notebook.cells):
        cell.id, cell.metadata = f"cell-{number}", nbformat.from_dict({})
    nbformat.validate(notebook)
    path.write_text(nbformat.writes(notebook) + "\n")


if __name__ == "__main__":
    for path in sorted(FOLDER.glob("*.ipynb")):
        run_notebook(path)
        print(path.relative_to(FOLDER.parents[1]))
