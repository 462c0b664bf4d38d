"""A suite of two methods on one law, an engine that computes its cells here, and made-up scores of it."""

from prefect.states import Completed, Failed

from ldptree_benchmark import cell as cells
from ldptree_benchmark.flow import _score, list_cells
from ldptree_benchmark.results.scores import Cell, Scores
from ldptree_benchmark.suite import Law, Suite

PAIR = Law(law="lpct-pair", parameters={"gamma": 0.5, "n_public": 50, "n_private": 300, "n_test": 200})


def suite_of(**changes):
    plain = {
        "name": "small",
        "title": "small",
        "laws": {"pair": PAIR.model_dump()},
        "methods": {"majority": {"learner": "majority"}, "line": {"learner": "public_line"}},
        "epsilons": [1.0, 4.0],
        "repetitions": 2,
    }
    return Suite.model_validate(plain | changes)


class Here:
    """An engine that computes cells one after the other, and counts those that did not stand."""

    def __init__(self, store):
        self.store, self.computed, self.asked = store, [], 0

    def map(self, task, step, call):
        arguments = call["arguments"]
        self.asked += len(call["label"])
        for number, label in enumerate(call["label"]):
            own = {key: values[number] for key, values in arguments.items()}
            place = cells.score_cell.step.place(self.store, own)
            if self.store.find(place) is None:
                self.computed.append(label)
            try:
                yield Completed(data=cells.score_cell.fn(self.store, **own))
            except Exception as fault:
                yield Failed(data=fault)


def score(store, suite, *, paper=False):
    engine = Here(store)
    return engine, list(_score(store, engine, list_cells(suite, dict(suite.laws), paper=paper)))


def scored(suite, values):
    """A suite with one score for every set, method and epsilon."""
    found = [
        Cell(
            dataset=dataset, method=method, candidate={}, epsilon=epsilon, repetition=0,
            score=values[dataset][method][place], seconds=1.0, process_peak_mib=1.0,
        )
        for dataset in suite.sets for method in suite.methods for place, epsilon in enumerate(suite.epsilons)
    ]  # fmt: skip
    return found, Scores.of(suite, found)
