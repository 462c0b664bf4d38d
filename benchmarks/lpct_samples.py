"""The samples that `lpct.py` measures on: LPCT's synthetic pairs, a law of four classes, and real sets in LDPTREE_DATA.

What lives here: public, private and test rows as arrays. What does not: anything that is learned from them.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

PAIRS = {0.5: 50, 5.0: 1_000}
"""gamma of the public law, and how many public rows go with it in LPCT's Figure 4."""
N_TEST = 20_000
N_COMPANIES = 8


@dataclass(frozen=True, eq=False)
class Sample:
    """Rows in three parts; features float64 [n, d], labels int [n] from 0."""

    public_X: NDArray[np.float64]  # noqa: N815 - the field's name
    public_y: NDArray[np.int64]
    X: NDArray[np.float64]
    y: NDArray[np.int64]
    test_X: NDArray[np.float64]  # noqa: N815
    test_y: NDArray[np.int64]
    n_classes: int = 2


def share_private(X: NDArray[np.float64]) -> NDArray[np.float64]:
    """eta_P of LPCT section 6.1 with the amplitude of its Figure 4 (as printed it exceeds 1); Bayes accuracy .787."""
    first, second = X.T
    size = np.abs(1.5 * first - 0.5) * np.abs(1.5 * second - 0.5) * np.maximum(0, 1 - np.abs(2 * second - 1))
    return 0.5 + np.sign(first - 1 / 3) * np.sign(second - 1 / 3) * 0.4 * size**0.1


def share_public(X: NDArray[np.float64], gamma: float) -> NDArray[np.float64]:
    """eta_Q of LPCT section 6.1: the same sign, weaker the larger gamma."""
    z = 2.5 * (share_private(X) - 0.5)
    return 0.5 + 0.4 * np.sign(z) * np.abs(z) ** gamma


def synthetic_pair(
    gamma: float, run: int, *, n_private: int = 10_000, n_public: int | None = None, n_test: int = N_TEST
) -> Sample:
    """One draw of the pair on [0, 1]^2; the same run is the same draw."""
    rng = np.random.default_rng([run, round(gamma * 10)])
    n_public = PAIRS[gamma] if n_public is None else n_public
    X, public_X, test_X = (rng.random((n, 2)) for n in (n_private, n_public, n_test))

    def labels(share: NDArray[np.float64]) -> NDArray[np.int64]:
        return (rng.random(share.size) < share).astype(np.int64)

    public_y = labels(share_public(public_X, gamma))
    return Sample(public_X, public_y, X, labels(share_private(X)), test_X, labels(share_private(test_X)))


def four_classes(
    run: int,
    *,
    n_private: int = 50_000,
    n_public: int = 500,
    clear: float = 0.4,
    wrong: float = 0.1,
    n_test: int = N_TEST,
) -> Sample:
    """Four turning sectors of [0, 1]^2; a share `wrong` of the public labels is another class.

    With the angle in turns and the radius r around the centre, the sector is floor(4 (angle + r) + 1/2) mod 4. It is the
    class with probability `clear`; otherwise the class is one of the four at random.
    """
    rng = np.random.default_rng([run, 4])

    def draw(n: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        X = rng.random((n, 2))
        first, second = (X - 0.5).T
        turns = np.arctan2(second, first) / (2 * np.pi) + np.hypot(first, second)
        sector = np.floor(4 * turns + 0.5).astype(np.int64) % 4
        any_class = rng.integers(0, 4, n)
        return X, np.where(rng.random(n) < clear, sector, any_class)

    (X, y), (public_X, public_y), (test_X, test_y) = draw(n_private), draw(n_public), draw(n_test)
    is_wrong = rng.random(n_public) < wrong
    public_y = np.where(is_wrong, (public_y + rng.integers(1, 4, n_public)) % 4, public_y)
    return Sample(public_X, public_y, X, y, test_X, test_y, n_classes=4)


def folder() -> Path:
    """LDPTREE_DATA."""
    found = os.environ.get("LDPTREE_DATA")
    if not found:
        raise SystemExit("set LDPTREE_DATA to the folder that holds taxi/, wine/ and so on")
    return Path(found)


@dataclass(frozen=True, eq=False)
class Table:
    """A real set before it is split."""

    X: NDArray[np.float64]
    y: NDArray[np.int64]
    is_public: NDArray[np.bool_]
    n_classes: int = 2

    def split(self, run: int, test_share: float = 0.2) -> Sample:
        """Private rows in two at random; missing values become the public median."""
        rng = np.random.default_rng([run, 77])
        middle = np.nanmedian(self.X[self.is_public], axis=0)
        X = np.where(np.isnan(self.X), np.nan_to_num(middle), self.X)
        rows = rng.permutation(np.flatnonzero(~self.is_public))
        test, train = np.split(rows, [round(test_share * rows.size)])
        parts = [part for at in (np.flatnonzero(self.is_public), train, test) for part in (X[at], self.y[at])]
        return Sample(*parts, n_classes=self.n_classes)


@cache
def _trips() -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.str_]]:
    import polars as pl

    names = ("Taxi_Trips_2022_03.parquet", "Taxi_Trips_2022_04.parquet")
    trips = pl.concat([pl.read_parquet(folder() / "taxi" / n) for n in names], how="vertical_relaxed")
    trips = trips.filter(pl.col("payment_type").is_in(["Cash", "Credit Card"]))
    numbers = trips.select(
        pl.col("fare", "extras", "tolls", "trip_seconds", "trip_miles").cast(pl.Float64)
    ).to_numpy()
    areas = [
        trips[f"{end}_community_area"].cast(pl.Float64).fill_null(0).cast(pl.Int64).to_numpy()
        for end in ("pickup", "dropoff")
    ]
    X = np.hstack([numbers, *(np.eye(78)[area] for area in areas)])
    return (
        X,
        (trips["payment_type"] == "Credit Card").to_numpy().astype(np.int64),
        trips["company"].to_numpy().astype(str),
    )


def companies() -> list[str]:
    """The eight largest companies of the real trips."""
    names, sizes = np.unique(_trips()[2], return_counts=True)
    return [str(name) for name in names[np.argsort(-sizes, kind="stable")[:N_COMPANIES]]]


def chicago(company: str) -> Table:
    """Two real days of Chicago trips, card against cash, without tips; one company is public."""
    X, y, company_of = _trips()
    return Table(X, y, company_of == company)


def _wines() -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Eleven measurements and the quality; red ones are public."""
    files = [(folder() / "wine" / f"winequality-{colour}.csv").read_text() for colour in ("red", "white")]
    red, white = (np.loadtxt(f.replace(";", ",").splitlines()[1:], delimiter=",") for f in files)
    return np.vstack([red, white]), np.arange(len(red) + len(white)) < len(red)


def wine() -> Table:
    """Quality 6 or more; red wines are public, white ones private."""
    rows, is_public = _wines()
    return Table(rows[:, :-1], (rows[:, -1] >= 6).astype(np.int64), is_public)


def wine_classes() -> Table:
    """As `wine`, in four classes: quality up to 4, 5, 6, and 7 or more."""
    rows, is_public = _wines()
    return Table(rows[:, :-1], np.digitize(rows[:, -1], [4.5, 5.5, 6.5]), is_public, n_classes=4)
