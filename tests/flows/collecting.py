"""Where a curator asks people on their devices: public rides, people who have a row each, an inbox, and the run."""

import polars as pl
from chain import laid_over, rides

from flows.executors import InlineExecutor
from flows.pipeline import Pipeline
from schemas.config import parse
from storage.store import Store

PEOPLE = 3000


def part_people(room):
    """Write the public rides, and return the rows of those who have devices."""
    everybody = pl.read_csv(rides(room / "all.csv", 3 * PEOPLE // 2, 3))
    everybody.filter(pl.col("zone") == "open").write_csv(room / "public.csv")
    return everybody.filter(pl.col("zone") == "closed").drop("zone", "person")


def collection(room, **changes):
    """A configuration of the public rides in a room, with its inbox."""
    (room / "inbox").mkdir(exist_ok=True)
    content = {
        "name": "rides-asked",
        "evaluate": False,
        "seed": 7,
        "dataset": {
            "name": "rides",
            "path": [str(room / "public.csv")],
            "target": "paid",
            "positive": "card",
            "public": "true",
            "drop": ["person", "zone"],
            "question": "Who pays by card?",
        },
        "model": {"estimator": "correction", "base": "tree"},
        "privacy": {"epsilon": 2.0},
        "collection": {"expected_holders": PEOPLE, "inbox": str(room / "inbox")},
    }
    return parse(laid_over(content, changes))


def run_of(config, work, name="run", began=None):
    """The run, walked."""
    store = Store(work)
    run = Pipeline(store=store, config=config, executor=InlineExecutor(store), name=name)
    run.timeline.began_at = began or run.timeline.began_at
    run.walk()
    return run


def send(room, name, lines, end="\n"):
    (room / "inbox").mkdir(exist_ok=True)
    (room / "inbox" / name).write_text("\n".join(lines) + end)
