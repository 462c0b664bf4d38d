"""The real regression sets of the LPDT and HistOfTree papers, the papers' splits of them, and the figures they printed.

What lives here: reading the files (the folder LDPTREE_DATA names), which column is the label, and a range of each label that
is known without looking at a row. The printed figures are transcribed
in `suites/papers.toml`.

Neither paper says which column is predicted where a set has several: a target is what the printed errors fit (the least an error
can be is near the tree's, a constant's is the variance), and each loader that had to choose says so.
"""

from __future__ import annotations

import os
import tomllib
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ldptree.errors import ConfigError

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

LPDT_NAMES = ("ABA", "ALG", "AQU", "BUI", "CBM", "CON", "CPU", "FIS", "HOU", "MUS", "RED", "WHI")
"""Sets of LPDT Table 4 that are here; AIR and CCP are not."""
HISTOFTREE_NAMES = ("ABA", "AQU", "BUI", "DAK", "FIS", "MUS", "POR", "PYR", "RED", "WHI")
"""Sets of HistOfTree section 5.2."""
NAMES = (*LPDT_NAMES, "DAK", "POR", "PYR")

with (Path(__file__).parent / "suites" / "papers.toml").open("rb") as _file:
    PAPER: dict[str, Any] = tomllib.load(_file)
"""The papers' tables."""


@dataclass(frozen=True, eq=False)
class RegressionSet:
    """A set as it is in its file, not scaled.

    Attributes:
        name: the papers' three letters.
        X: float64 [n, d], read-only.
        y: float64 [n], read-only.
        features: names of the d columns.
        prior_range: (low, high) of a label, known before any row is seen.
    """

    name: str
    X: Floats
    y: Floats
    features: tuple[str, ...]
    prior_range: tuple[float, float]


@dataclass(frozen=True, eq=False)
class Split:
    """Row numbers of one repetition: n_q = public, n = private, the rest test."""

    public: Integers
    private: Integers
    test: Integers


def splits(dataset: RegressionSet, repetition: int) -> Split:
    """1 : 7 : 2 public : private : test, drawn anew for each repetition (LPDT 4.2: 50 of them).

    n_q is a tenth of all rows and the test rows are a fifth, both rounded up. The same for the same set and repetition.
    """
    n = dataset.y.size
    order = np.random.default_rng([zlib.crc32(dataset.name.encode()), repetition]).permutation(n)
    n_public, n_test = -(-n // 10), -(-n // 5)
    return Split(order[:n_public], order[n_public + n_test :], order[n_public : n_public + n_test])


def min_max(X: Floats) -> Floats:
    """Each column to [0, 1] by its own range, a constant one to 0: what both papers do to all rows at once.

    It reads the private and the test rows' ranges, so no private method may call it; it is how a paper's experiment is repeated.
    """
    low, width = X.min(axis=0), np.ptp(X, axis=0)
    return np.where(width > 0, (X - low) / np.where(width > 0, width, 1.0), 0.0)


def histoftree_printed(name: str, epsilon: float) -> dict[str, float]:
    """Printed MSE over that of a plain tree, by "aligned/..." or "personalized/..." method (Tables 1-3); eps is 1, 2 or 4."""
    paper = PAPER["histoftree"]
    return dict(zip(paper["columns"], paper["epsilon"][f"{epsilon:g}"][name], strict=True))


@cache
def load(name: str) -> RegressionSet:
    """A set by its name in `NAMES`.

    Raises:
        ConfigError: the name is unknown, LDPTREE_DATA is not set, or the file is not in it.
    """
    if name not in _READERS:
        raise ConfigError(f"regression sets: no set {name!r}; there are {', '.join(NAMES)}")
    read, prior_range = _READERS[name]
    X, y, features = read()
    X, y = np.array(X, dtype=np.float64), np.array(y, dtype=np.float64)
    X.flags.writeable = y.flags.writeable = False
    return RegressionSet(name, X, y, tuple(features), prior_range)


Read = tuple[Floats, Floats, list[str]]


def _path(relative: str) -> Path:
    home = os.environ.get("LDPTREE_DATA")
    if not home:
        raise ConfigError(f"{relative}: set LDPTREE_DATA to the folder of data sets")
    path = Path(home) / relative
    if not path.is_file():
        raise ConfigError(f"{relative}: not in the folder that LDPTREE_DATA names")
    return path


def _lines(relative: str) -> list[str]:
    lines = _path(relative).read_text(encoding="utf-8-sig").splitlines()
    return [line.strip() for line in lines if line.strip()]


def _numbers(lines: list[str], separator: str | None = ",") -> Floats:
    return np.array([[float(cell) for cell in line.split(separator)] for line in lines])


def _last(values: Floats, names: list[str]) -> Read:
    return values[:, :-1], values[:, -1], names


def _abalone() -> Read:
    """Sex as a code, F 0, I 1, M 2 (d = 8 in both papers)."""
    codes = {"F": "0", "I": "1", "M": "2"}
    names = [
        "sex",
        "length",
        "diameter",
        "height",
        "whole weight",
        "shucked weight",
        "viscera weight",
        "shell weight",
    ]
    return _last(_numbers([codes[line[0]] + line[1:] for line in _lines("abalone/abalone.csv")]), names)


def _algerian() -> Read:
    """Label 1 is "fire"; the date is left out (LPDT D.3). The paper says d = 12, the file has 10 columns without the date.

    The row of 14/7/2012 lost a comma ("14.6 9"), so that its last value stands one field too far left: put back.
    """
    rows = [line.split(",") for line in _lines("algerian/Algerian_forest_fires_dataset_UPDATE.csv")]
    names = [cell.strip() for cell in rows[1]]
    values, labels = [], []
    for row in rows:
        if not row[0].isdigit():
            continue
        *numbers, label = [
            cell for field in row[3:] for cell in (field.split() if "fire" not in field else [field.strip()])
        ]
        values.append([float(cell) for cell in numbers])
        labels.append(float(label == "fire"))
    return np.array(values), np.array(labels), names[3:-1]


def _aquatic() -> Read:
    names = ["TPSA(Tot)", "SAacc", "H-050", "MLOGP", "RDCHI", "GATS1p", "nN", "C-040"]
    return _last(_numbers(_lines("aquatic/qsar_aquatic_toxicity.csv"), ";"), names)


def _building() -> Read:
    """Sale price V-9 from the 103 physical, financial and economic columns; four dates and the other output are left out.

    V-9 is the output whose variance, 1.45e6, is near the errors printed by LPDT. Its d = 105 counts the two outputs.
    """
    sheet = _excel("building/Residential-Building-Data-Set.xlsx", sheet_name="Data", has_header=False)
    names = [f"{name} (column {k})" for k, name in enumerate(sheet.row(1), start=1)]
    values = sheet.slice(2).cast(pl.Float64).to_numpy()
    return values[:, 4:107], values[:, 107], names[4:107]


def _naval() -> Read:
    """The lever's position from the other measurements and the compressor's decay: 16 columns, as LPDT Table 4 counts.

    The target is the only one whose variance (6.9) and tree (4e-27: it is a function of the speed) fit the printed errors.
    """
    lines = _lines("cbm/naval.csv")
    names = [
        "ship speed",
        "GTT",
        "GTn",
        "GGn",
        "Ts",
        "Tp",
        "T48",
        "T1",
        "T2",
        "P48",
        "P1",
        "P2",
        "Pexh",
        "TIC",
        "mf",
        "kMc",
    ]
    values = _numbers(lines[1:])
    return values[:, 1:17], values[:, 0], names


def _concrete() -> Read:
    sheet = _excel("concrete/Concrete_Data.xls")
    return _last(
        sheet.cast(pl.Float64).to_numpy(), [name.split("(")[0].strip() for name in sheet.columns[:-1]]
    )


def _arff(relative: str) -> Read:
    lines = _lines(relative)
    start = lines.index("@data")
    names = [line.split()[1] for line in lines[:start] if line.startswith("@attribute")]
    return _last(_numbers(lines[start + 1 :]), names[:-1])


def _fish() -> Read:
    lines = _lines("fish/qsar_fish_toxicity.csv")
    return _last(_numbers(lines[1:], ";"), lines[0].split(";")[:-1])


def _housing() -> Read:
    names = ["CRIM", "ZN", "INDUS", "CHAS", "NOX", "RM", "AGE", "DIS", "RAD", "TAX", "PTRATIO", "B", "LSTAT"]
    return _last(_numbers(_lines("housing/housing.data"), None), names)


def _music() -> Read:
    """Latitude from the 68 sound columns; the longitude's variance, 2,542, does not fit the printed errors of 300 to 420."""
    values = _numbers(_lines("music/default_features_1059_tracks.txt"))
    return values[:, :68], values[:, 68], [f"sound {k}" for k in range(1, 69)]


def _wine(colour: str, separator: str) -> Read:
    """Both papers print 4,898 rows for red (there are 1,599) and LPDT d = 12 (there are 11; it counts the label)."""
    lines = _lines(f"wine/winequality-{colour}.csv")
    names = [name.strip('"') for name in lines[0].split(separator)]
    return _last(_numbers(lines[1:], separator), names[:-1])


def _istanbul() -> Read:
    """The exchange's return in lira from its return in dollars and seven indexes.

    HistOfTree does not say which. A constant's error over a tree's is 6.5 for this one and 7.3 for the dollar; the
    paper prints 6.65 to 6.69 at eps 1 and 2, where its method is near a constant. Its 10 features count the date and the label.
    """
    lines = _lines("istanbul/data_akbilgic.csv")
    values = _numbers([line.split(",", 1)[1] for line in lines[2:]])
    return values[:, 1:], values[:, 0], ["ISE in dollars", *lines[1].split(",")[3:]]


def _portfolio() -> Read:
    """The annual return from six weights and the other five indicators as measured, five sheets of periods under each other.

    HistOfTree does not say which. A constant's error over a tree's is 4.5 for this one; the paper prints 4.15 at eps 1,
    and the total risk and the relative win rate fit as well (4.6 and 4.8).
    Its 12 features count the label.
    """
    sheets = _excel("portfolio/stock portfolio performance data set.xlsx", sheet_id=0, has_header=False)
    tables = [sheet for sheet in sheets.values() if sheet.width == 19]
    names = [name.strip() for name in tables[0].row(1)]
    values = np.vstack([table.slice(2).cast(pl.Float64).to_numpy() for table in tables])
    return np.delete(values[:, 1:13], 6, axis=1), values[:, 7], [*names[1:7], *names[8:13]]


def _excel(relative: str, **options: Any) -> Any:
    return pl.read_excel(_path(relative), engine="calamine", **options)


_READERS: dict[str, tuple[Callable[[], Read], tuple[float, float]]] = {
    # rings of a shell, one a year: the species lives for about 30 years at most
    "ABA": (_abalone, (0.0, 30.0)),
    # no fire, fire
    "ALG": (_algerian, (0.0, 1.0)),
    # -log10 of a lethal concentration in mol / l: from 1 mol / l to a picomole
    "AQU": (_aquatic, (0.0, 12.0)),
    # tens of thousands of rials a square metre, to a hundred million rials
    "BUI": (_building, (0.0, 10_000.0)),
    # a lever whose scale goes to 10
    "CBM": (_naval, (0.0, 10.0)),
    # MPa: above 100 a concrete is of a class of its own
    "CON": (_concrete, (0.0, 100.0)),
    # per cent
    "CPU": (lambda: _arff("cpusmall/cpu.small.arff"), (0.0, 100.0)),
    "FIS": (_fish, (0.0, 12.0)),
    # thousands of dollars: the census writes 50 for whatever is above it
    "HOU": (_housing, (0.0, 50.0)),
    # degrees of latitude where people live
    "MUS": (_music, (-60.0, 75.0)),
    # a tasters' score from 0 to 10
    "RED": (lambda: _wine("red", ";"), (0.0, 10.0)),
    "WHI": (lambda: _wine("white", ","), (0.0, 10.0)),
    # a day's return: the exchange stops a share that moved by 10 per cent
    "DAK": (_istanbul, (-0.1, 0.1)),
    # a year's return of a portfolio without debt: it cannot lose more than all, and seldom more than doubles
    "POR": (_portfolio, (-1.0, 1.0)),
    # activities scaled to [0, 1] by whoever made the set
    "PYR": (lambda: _arff("pyrim/pyrim.arff"), (0.0, 1.0)),
}
