"""Every mechanism, partition and rule in the pipeline: what is learned from reports and drawn totals, and what its page says."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pyarrow.parquet as pq
import pytest
from chain import Chain, fares, fares_config, learned, published, rides, rides_config
from families import THREE, paid_in_three_ways
from page_truth.reading import read

from ldptree.errors import ConfigError
from ldptree.mechanisms import CHOICES
from storage.store import Store
from tasks.page import findings, privacy, summary
from tasks.page.render import render
from tasks.report import read_facts
from tasks.scoring.held_back import read_rows

SENT = {
    "grr": "kept or replaced by another",
    "oue": "each tossed at random",
    "sue": "each tossed at random",
    "ss": "as a set of",
    "olh": "a hash function drawn at random",
    "discrete_laplace": "whole numbers",
    "randomized_response": "and a label apart",
    "laplace": "not for the floating-point numbers",
    "signed_subset": "as a random set of groups",
}
NUMBERS = {"randomized_response": "number_response", "laplace": "number_laplace"}
"""What these are called where the label is a number."""


@pytest.fixture
def run(tmp_path):
    """A family and changes of the configuration to a run that nobody scores, two thirds of its rows private."""

    def run(family="lpct", n=300, columns=None, **changes):
        write, make = (fares, fares_config) if "number" in family else (rides, rides_config)
        if family.startswith("correction"):
            changes["model"] = {"estimator": "correction", "base": "tree", "questions": 1} | changes.get(
                "model", {}
            )
        if "three" in family:
            changes, columns = {"dataset": THREE} | changes, paid_in_three_ways(n, 2)
        path = write(tmp_path / "rows.csv", n, 2, **(columns or {}))
        return Chain(Store(tmp_path / "work"), make(path, **({"evaluate": False} | changes)))

    return run


@pytest.mark.parametrize(
    ("mechanism", "form"), [*((m, "reports") for m in CHOICES[1:]), ("grr", "totals"), ("laplace", "totals")]
)
def test_every_mechanism_runs_from_rows_to_a_page_that_says_what_was_sent(run, mechanism, form):
    limit = {"reports": 2**31, "totals": 0}[form]
    chain = run(privacy={"epsilon": 4.0, "mechanism": mechanism, "max_report_bytes": limit})
    facts = read_facts(chain.store, chain.page["page"])
    assert learned(chain).mechanism.split()[-1] == mechanism
    assert (facts.privacy.mechanism.split()[-1], facts.privacy.form) == (mechanism, form)
    assert facts.privacy.epsilon_exact <= facts.privacy.epsilon == facts.privacy.epsilon_spent == 4.0
    said = " ".join(sentence.text for answer in privacy.answers(facts) for sentence in answer.sentences)
    assert SENT[mechanism] in said
    assert "inf" not in said.split()
    assert f"({facts.privacy.mechanism.replace('_', ' ')})" in said


FAST = {
    *(("number", mechanism) for mechanism in ("oue", "laplace", "discrete_laplace", "randomized_response")),
    *(("number", "signed_subset"), ("correction of a number", "grr"), ("correction of a number", "oue")),
    ("correction of a number", "olh"),
}
LEARNS = [
    *(("number", mechanism, "reports") for mechanism in CHOICES[1:]),
    *(("number", mechanism, "totals") for mechanism in ("grr", "laplace")),
    *(("correction of a number", mechanism, "reports") for mechanism in ("grr", "oue", "olh", "sue", "ss")),
    *(("correction of a number", mechanism, "totals") for mechanism in ("grr", "olh")),
    *(("correction of three classes", mechanism, "reports") for mechanism in ("grr", "oue")),
    ("correction of three classes", "olh", "totals"),
]


@pytest.mark.parametrize(
    ("family", "mechanism", "form"),
    [
        pytest.param(
            *each,
            marks=[] if each[:2] in FAST or each[2] == "totals" or "three" in each[0] else pytest.mark.slow,
        )
        for each in LEARNS
    ],
)
def test_every_mechanism_learns_from_reports_and_from_drawn_totals(run, family, mechanism, form):
    """At epsilon 16 and in one cell, 400 people have a mean, and the public model a mean error, that is known to a tenth of the
    label's range (5 standard deviations or more); of three classes, about which 130 each are asked, to .15 of a share.
    """
    limit = {"reports": 2**31, "totals": 0}[form]
    model = {"depth": 0} | ({"lam": 0.0, "prune": "none"} if family == "number" else {})
    chain = run(
        family,
        n=600,
        privacy={"epsilon": 16.0, "mechanism": mechanism, "max_report_bytes": limit},
        model=model,
    )
    asked, model = published(chain), learned(chain)
    assert asked.mechanism.name == NUMBERS.get(mechanism, mechanism)
    (path,) = chain.store.files(chain.reports[0]["reports"])
    assert pq.read_schema(path).metadata[b"form"].decode() == form
    if family == "number":
        assert not model.classes
        people = pl.read_csv(chain.config.dataset.path[0]).filter(pl.col("zone") == "closed")["paid"]
        low, high = model.label.range
        mean = people.clip(low, high).mean()
        assert model.estimate[:, 0][0] == pytest.approx(mean, abs=0.1 * (high - low))
        return
    rows = read_rows(chain.store.files(chain.held["train"]), asked)
    if family == "correction of a number":
        errors = asked.residuals(rows.raw, rows.labels)
        half = asked.label_range[1]
        assert model.corrections.observed[0, 0] == pytest.approx(errors.mean(), abs=0.2 * half)
        return
    means = asked.base.errors(asked.encoding, rows.raw, rows.labels).mean(axis=0)
    assert model.corrections.observed[0] == pytest.approx(means, abs=0.15)
    assert np.ptp(means) > 0.4


@pytest.mark.parametrize(
    "mechanism",
    [*NUMBERS, "discrete_laplace", pytest.param("signed_subset", marks=pytest.mark.slow)],
)
def test_the_page_of_every_kind_of_noise_of_a_number_says_what_was_sent(run, mechanism):
    chain = run("number", n=600, privacy={"epsilon": 4.0, "mechanism": mechanism}, model={"depth": 2})
    told = read_facts(chain.store, chain.page["page"]).privacy
    (asked,) = told.asked
    assert told.mechanism == asked.question.mechanism == NUMBERS.get(mechanism, mechanism)
    assert told.epsilon_exact <= told.epsilon == 4.0
    is_apart = mechanism not in ("discrete_laplace", "signed_subset")
    assert ("label_noise_sd" in asked.question.figures) == is_apart


def test_the_page_tells_of_the_parts_of_cells_that_reports_were_asked_about(run):
    plain = {"drop": ["person", "firm"], "fill": "drop"}
    chain = run("number", n=900, model={"depth": "auto", "min_samples_leaf": 5}, dataset=plain)
    facts, asked = read_facts(chain.store, chain.page["page"]), published(chain).partition
    n_leaves = learned(chain).partition.n_leaves
    assert facts.n_cells == asked.n_leaves < n_leaves == len(facts.model.cells)
    assert sum(cell.share for cell in facts.model.cells) == pytest.approx(1.0, rel=0.01)
    assert "shared out" in {one.key for one in findings.tabulate_cells(facts).notes}
    is_found = replace(facts, description=replace(facts.model, is_found=True))
    said = {one.key: one.text for one in (*summary.lead(is_found), *summary.explain_finding(is_found))}
    assert f"{asked.n_leaves} parts of {n_leaves} groups" in said["parts"]
    page = read(render(facts))
    folded = [one for one in page.every("details") if one.first("summary").text.startswith("As a tree")]
    assert len(folded) == 1, "a tree of groups has as many words as an open page may have"


PAPER = {"prune": "paper"}
VARIANTS = [
    *(("lpct", {"partition": kind}) for kind in ("max-edge", "random-edge")),
    *(("lpct", {"lam": lam}) for lam in (0, float("inf"))),
    ("lpct", {"lam": "auto", "prune": "none", "rule": "ratio"}),
    ("lpct", {"prune": "variance"}),
    ("lpct", PAPER | {"paper": {"termination": False}}),
    ("lpct", PAPER | {"paper": {"termination": False, "stop_at_public": True}}),
    ("lpct", PAPER | {"paper": {"termination": False, "stop_empty": False}, "partition": "max-edge"}),
    *(("number", {"partition": kind}) for kind in ("max-edge", "random-edge")),
    ("number", {"lam": 0.0, "prune": "none", "rule": "ratio"}),
    ("number", {"lam": "auto", "prune": "fallback"}),
    ("number", {"lam": float("inf")}),
    ("number", {"depth": 0}),
    ("number", {"rho": 0.3}),
]


@pytest.mark.parametrize(("family", "model"), VARIANTS)
def test_every_variant_of_the_papers_runs(run, family, model):
    apart = family == "number" and ("rho" in model or model.get("rule") == "ratio")
    chain = run(
        family, model=model, privacy={"epsilon": 4.0, "mechanism": "randomized_response" if apart else "auto"}
    )
    assert learned(chain).prune == model.get("prune", "smooth")
    assert np.isfinite(learned(chain).estimate[:, 0]).all()
    assert published(chain).epsilon == chain.config.privacy.epsilon
    assert family == "number" or chain.page


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"model": {"rule": "ratio"}}, "model.rule: .*fixed lam"),
        ({"model": {"rule": "ratio", "lam": "auto"}}, "model.rule"),
        ({"model": {"paper": {"terminate": True}}}, r"model\.paper\.terminate: unknown key; did you mean termination"),
        ({"model": {"prune": "papers"}}, "model.prune"),
        ({"model": PAPER, "campaign": {"name": "rides"}}, r"model\.paper\.termination: a campaign asks each holder once"),
    ],
)  # fmt: skip
def test_settings_that_do_not_go_together_are_told_at_once(run, changes, said):
    with pytest.raises(ConfigError, match=said):
        run(**changes)


def test_a_real_holder_is_never_asked_for_laplace(run):
    with pytest.raises(ConfigError, match="use discrete_laplace"):
        run(privacy={"mechanism": "laplace"}, simulation={"noise_seed": None}, release=True)
