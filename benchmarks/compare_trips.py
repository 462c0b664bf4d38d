"""Real and simulated trips side by side: LDPTREE_DATA=DIR python benchmarks/compare_trips.py > tables.md

Prints the tables of docs/measured/simulated-trips.md and draws its picture. Both kinds of trips are in the challenge's columns;
the simulated ones are those of a Tuesday and a Friday, as the real ones are. The last table trains plain trees; it
describes the simulation and decides nothing in it.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import polars as pl
from fit_trips import real_trips

from ldptree.simulate.trips import COLUMNS, blocks, shift_of

CODES = {"Unknown": -1, "Cash": 0, "Credit Card": 1, "Mobile": 2, "Prcard": 3, "No Charge": 5, "Dispute": 6}
AREAS = {-1: "not known", 8: "8 Near North Side", 32: "32 Loop", 76: "76 O'Hare", 28: "28 Near West Side",
         6: "6 Lake View", 33: "33 Near South Side", 7: "7 Lincoln Park", 56: "56 Garfield Ridge (Midway)"}  # fmt: skip
FARES = (0, 5, 10, 15, 20, 30, 40, 50, 60, 80)
PICTURE = Path(__file__).parents[1] / "docs" / "images" / "simulated-trips.svg"
IS_CARD = pl.col("payment_type") == 1


def in_challenge_columns(trips: pl.DataFrame) -> pl.DataFrame:
    """The real trips as the challenge would hold them: whole dollars and miles, -1 where missing, no taxi_id."""
    shift = shift_of(trips["day"].to_numpy(), trips["hour"].to_numpy())
    total = pl.col("fare") + pl.col("tips") + pl.col("extras")
    whole = {
        "fare": pl.col("fare"),
        "tips": pl.col("tips"),
        "trip_total": total,
        "trip_seconds": pl.col("seconds"),
    }
    area = {end: pl.when(pl.col(end) == 0).then(-1).otherwise(end) for end in ("pickup", "dropoff")}
    return trips.select(
        shift=pl.Series(shift),
        company_id="company",
        pickup_community_area=area["pickup"],
        dropoff_community_area=area["dropoff"],
        payment_type=pl.col("payment").replace_strict(CODES, return_dtype=pl.Int64),
        trip_day_of_week="day",
        trip_hour_of_day="hour",
        **{name: value.round().fill_null(-1) for name, value in whole.items()},
        trip_miles=pl.col("miles").round(),
    )


def table(title: str, head: list[str], rows: list[list[str]]) -> None:
    print(f"\n### {title}\n\n| " + " | ".join(head) + " |\n|" + "---|" * len(head))
    for row in rows:
        print("| " + " | ".join(row) + " |")


def percent(x: float | None) -> str:
    return "" if x is None else f"{100 * x:.1f}"


def by(
    frames: list[pl.DataFrame], key: str, figures: dict[str, pl.Expr]
) -> dict[object, list[dict[str, float]]]:
    """For each value of `key`, the figures in each of the frames."""
    found = [{r[key]: r for r in f.group_by(key).agg(**figures).to_dicts()} for f in frames]
    nothing = dict.fromkeys(figures)
    return {k: [f.get(k, nothing) for f in found] for k in sorted(found[0], key=lambda k: -found[0][k]["n"])}


def marginals(real: pl.DataFrame, simulated: pl.DataFrame, names: list[str]) -> None:
    frames = [real, simulated]
    shape = {
        "n": pl.len(),
        "fare": pl.col("fare").median(),
        "miles": pl.col("trip_miles").mean(),
        "minutes": pl.col("trip_seconds").median() / 60,
        "still": (pl.col("trip_miles") == 0).mean(),
        "tip": (pl.col("tips") > 0).mean(),
    }
    rows = []
    label = {code: name for name, code in CODES.items()}
    for code, (a, b) in by(frames, "payment_type", shape).items():
        if a["n"] < 100:
            continue
        cells = [percent(a["n"] / real.height), percent(b["n"] / simulated.height)]
        cells += [f"{x[k]:.{d}f}" for k, d in (("fare", 0), ("miles", 1), ("minutes", 1)) for x in (a, b)]
        cells += [percent(x[k]) for k in ("still", "tip") for x in (a, b)]
        rows.append([f"{code} {label[code]}", *cells])
    figures = ("share %", "median fare", "mean miles", "median minutes", "no miles %", "tip > 0 %")
    head = [f"{f}, {w}" for f in figures for w in ("real", "sim.")]
    table("How trips are paid", ["payment", *head], rows)

    street = [f.filter(pl.col("payment_type").is_in([0, 1])) for f in frames]
    company = {
        "n": pl.len(),
        "still": (pl.col("trip_miles") == 0).mean(),
        "fare": pl.col("fare").median(),
        "airport": (pl.col("pickup_community_area") == 76).mean(),
    }
    card = by(street, "company_id", {"n": pl.len(), "card": IS_CARD.mean()})
    rows = []
    for i, (a, b) in by(frames, "company_id", company).items():
        cells = [percent(a["n"] / real.height), percent(b["n"] / simulated.height)]
        cells += [percent(x["card"]) for x in card[i]]
        cells += [f"{x['fare']:.0f}" for x in (a, b)] + [
            percent(x[k]) for k in ("still", "airport") for x in (a, b)
        ]
        rows.append([str(i), names[i], *cells])  # type: ignore[call-overload]
    figures = ("trips %", "card of card + cash %", "median fare", "no miles %", "from O'Hare %")
    head = [f"{f}, {w}" for f in figures for w in ("real", "sim.")]
    table("Companies", ["company_id", "modelled on", *head], rows)

    ends = ("pickup_community_area", "dropoff_community_area")
    rows = [
        [name, *(percent((f[end] == area).mean()) for end in ends for f in frames)]
        for area, name in AREAS.items()
    ]
    table(
        "Areas, % of trips", ["area", "pickup, real", "pickup, sim.", "dropoff, real", "dropoff, sim."], rows
    )

    rows = []
    for low, high in zip(FARES, [*FARES[1:], 10**6], strict=True):
        inside = [f.filter(pl.col("fare").is_between(low, high, closed="left")) for f in street]
        cells = [percent(i.height / f.height) for i, f in zip(inside, street, strict=True)]
        for firm in (None, 6, 12, 14):
            for i in inside:
                chosen = i if firm is None else i.filter(pl.col("company_id") == firm)
                cells.append(percent(chosen.select(IS_CARD.mean()).item()) if chosen.height >= 20 else "")
        rows.append([f"{low} to {high - 1}" if high < 10**6 else f"{low} and more", *cells])
    figures = ("trips %", "card %", "card %, company 6", "card %, company 12", "card %, company 14")
    head = [f"{f}, {w}" for f in figures for w in ("real", "sim.")]
    table("Card against cash by fare (dollars)", ["fare", *head], rows)

    rows = []
    for a, b in (("fare", "trip_miles"), ("fare", "trip_seconds"), ("trip_miles", "trip_seconds")):
        values = [f.select(pl.corr(a, b, method="spearman")).item() for f in street]
        rows.append([f"{a} and {b}", *(f"{v:.2f}" for v in values)])
    table("Rank correlation, card and cash trips", ["", "real", "simulated"], rows)


def features(trips: pl.DataFrame) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """X without tips, taxi and company; y is card; the company."""
    trips = trips.filter(pl.col("payment_type").is_in([0, 1]))
    numeric = ("fare", "trip_seconds", "trip_miles", "trip_hour_of_day")
    columns = [trips[c].to_numpy() for c in numeric]
    for end in ("pickup_community_area", "dropoff_community_area"):
        columns += [trips[end].to_numpy() == area for area in (-1, *range(1, 78))]
    X = np.stack(columns, axis=1).astype(np.float32)
    return np.asfortranarray(X), trips["payment_type"].to_numpy(), trips["company_id"].to_numpy()


def shortfall(real: pl.DataFrame, simulated: pl.DataFrame, names: list[str], repeats: int = 5) -> None:
    """Accuracy on the other companies' trips: majority, a tree of the public company's trips, a tree of their own."""
    from sklearn.model_selection import GridSearchCV
    from sklearn.tree import DecisionTreeClassifier

    sizes = {"max_leaf_nodes": [4, 8, 16, 32, 64]}
    rows = []
    sets = [features(real), features(simulated.sample(real.height, seed=1))]
    for firm in (6, 12, 11, 5, 14, 1):
        cells = []
        for X, y, company in sets:
            scores = []
            for repeat in range(repeats):
                rng = np.random.default_rng(repeat)
                public, others = (
                    np.flatnonzero(company == firm),
                    rng.permutation(np.flatnonzero(company != firm)),
                )
                test, train = others[: len(others) // 5], others[len(others) // 5 :]
                trees = [
                    GridSearchCV(DecisionTreeClassifier(random_state=repeat), sizes, cv=5).fit(
                        X[rows_], y[rows_]
                    )
                    for rows_ in (rng.permutation(public), train)
                ]
                top = max(y[test].mean(), 1 - y[test].mean())
                scores.append([top, *(t.score(X[test], y[test]) for t in trees)])
            cells += [percent(s) for s in np.mean(scores, axis=0)]
        rows.append([f"{firm} ({names[firm]})", *cells])
    head = [f"{f}, {w}" for w in ("real", "sim.") for f in ("majority", "public tree", "own tree")]
    table(
        "How far one company's tree falls short on the others (accuracy, %)", ["public company", *head], rows
    )


def picture(real: pl.DataFrame, simulated: pl.DataFrame) -> None:
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams.update(
        {"svg.fonttype": "none", "svg.hashsalt": "trips", "font.size": 9, "axes.spines.top": False}
    )
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(2, 2, figsize=(9, 6), layout="constrained")
    kinds = (("real", real, "#444444", "-"), ("simulated", simulated, "#d1495b", "--"))
    for name, trips, colour, line in kinds:
        hour = trips.group_by("trip_hour_of_day").len().sort("trip_hour_of_day")["len"] / trips.height
        axes[0, 0].plot(range(24), 100 * hour, line, color=colour, label=name)
        counts = np.histogram(trips["fare"].to_numpy(), bins=np.arange(0, 71, 2))[0]
        axes[0, 1].plot(np.arange(1, 70, 2), 100 * counts / trips.height, line, color=colour, label=name)
        street = trips.filter(pl.col("payment_type").is_in([0, 1]))
        for firm, mark in ((6, "o"), (12, "s")):
            part = street.filter(pl.col("company_id") == firm)
            steps = [part.filter(pl.col("fare").is_between(a, a + 6, closed="left")) for a in range(3, 63, 6)]
            share = [100 * s.select(IS_CARD.mean()).item() if s.height >= 20 else None for s in steps]
            axes[1, 0].plot(
                range(6, 66, 6),
                share,
                line,
                color=colour,
                marker=mark,
                ms=3.5,
                label=f"{name}, company {firm}",
            )
    street = [f.filter(pl.col("payment_type").is_in([0, 1])) for f in (real, simulated)]
    for a, b in by(street, "company_id", {"n": pl.len(), "card": IS_CARD.mean()}).values():
        axes[1, 1].scatter(
            100 * a["card"], 100 * b["card"], s=4 + a["n"] / 25, color="#d1495b", alpha=0.5, lw=0
        )
    axes[1, 1].plot([25, 70], [25, 70], color="#444444", lw=0.8)
    titles = ("Trips by hour, %", "Trips by fare, % for each 2 dollars", "Card of card + cash by fare, %",
              "Card of card + cash by company, %")  # fmt: skip
    below = ("hour of day", "fare, dollars", "fare, dollars", "real (the disc's area is the company's size)")
    for axis, title, label in zip(axes.flat, titles, below, strict=True):
        axis.set_title(title, loc="left")
        axis.set_xlabel(label)
    axes[1, 1].set_ylabel("simulated")
    axes[0, 0].legend(frameon=False)
    axes[1, 0].legend(frameon=False, fontsize=7)
    figure.savefig(PICTURE, metadata={"Date": None})


def main() -> None:
    trips = real_trips(Path(os.environ.get("LDPTREE_DATA", "data")))
    names = trips.group_by("company", "company_name").len().sort("company")["company_name"].to_list()
    real = in_challenge_columns(trips)
    simulated = pl.concat(
        [pl.DataFrame({c: block[c] for c in COLUMNS}) for block in blocks(1_000_000, seed=7)]
    )
    simulated = simulated.filter(
        pl.col("trip_day_of_week").is_in(real["trip_day_of_week"].unique().to_list())
    )
    picture(real, simulated)
    marginals(real, simulated, names)
    shortfall(real, simulated, names)


if __name__ == "__main__":
    main()
