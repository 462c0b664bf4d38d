"""Every mechanism, partition and rule in the pipeline: a whole run's steps, and what its page says was sent."""

from __future__ import annotations

import pytest
from chain import Chain, rides, rides_config

from ldptree.errors import ConfigError
from ldptree.mechanisms import CHOICES
from storage.store import Store
from tasks.artifacts import read_model, read_protocol
from tasks.page import privacy
from tasks.report import read_facts

SENT = {
    "grr": "kept or replaced by another",
    "oue": "each tossed at random",
    "sue": "each tossed at random",
    "ss": "as a set of",
    "olh": "a hash function drawn at random",
    "discrete_laplace": "whole numbers",
    "randomized_response": "and a label apart",
    "laplace": "not for the floating-point numbers",
    "signed_subset": "as a random set of kinds",
}


@pytest.fixture
def run(tmp_path):
    """Changes of the configuration to a run on 300 rides, 200 of them private, that nobody scores."""

    def run(**changes):
        path = rides(tmp_path / "rides.csv", 300, 1)
        return Chain(Store(tmp_path / "work"), rides_config(path, **({"evaluate": False} | changes)))

    return run


@pytest.mark.parametrize(
    ("mechanism", "form"), [*((m, "reports") for m in CHOICES[1:]), ("grr", "totals"), ("laplace", "totals")]
)
def test_every_mechanism_runs_from_rows_to_a_page_that_says_what_was_sent(run, mechanism, form):
    limit = {"reports": 2**31, "totals": 0}[form]
    chain = run(privacy={"epsilon": 4.0, "mechanism": mechanism, "max_report_bytes": limit})
    facts = read_facts(chain.store, chain.page["page"])
    model = read_model(chain.store, chain.model["model"])
    assert model.mechanism.split()[-1] == mechanism
    assert (facts.privacy.mechanism.split()[-1], facts.privacy.form) == (mechanism, form)
    assert facts.privacy.epsilon_exact <= facts.privacy.epsilon == facts.privacy.epsilon_spent == 4.0
    said = " ".join(sentence.text for answer in privacy.answers(facts) for sentence in answer.sentences)
    assert SENT[mechanism] in said
    assert "inf" not in said.split()
    assert f"({facts.privacy.mechanism.replace('_', ' ')})" in said


def test_a_real_holder_is_never_asked_for_laplace(run):
    with pytest.raises(ConfigError, match="use discrete_laplace"):
        run(privacy={"mechanism": "laplace"}, simulation={"noise_seed": None}, release=True)


@pytest.mark.parametrize(
    "model",
    [
        {"partition": "max-edge"},
        {"partition": "random-edge"},
        {"lam": 0},
        {"lam": float("inf")},
        {"lam": "auto", "prune": "none", "rule": "ratio"},
        {"prune": "variance"},
        {"prune": "paper", "paper": {"termination": False}},
        {"prune": "paper", "paper": {"termination": False, "stop_at_public": True}},
        {"prune": "paper", "paper": {"termination": False, "stop_empty": False}, "partition": "max-edge"},
    ],
)
def test_every_variant_of_the_paper_runs(run, model):
    chain = run(model=model)
    protocol = read_protocol(chain.store, chain.protocol)
    assert read_model(chain.store, chain.model["model"]).prune == model.get("prune", "smooth")
    assert protocol.epsilon == chain.config.privacy.epsilon
    assert chain.page


@pytest.mark.parametrize(
    ("model", "said"),
    [
        ({"rule": "ratio"}, "model.rule: .*fixed lam"),
        ({"rule": "ratio", "lam": "auto"}, "model.rule"),
        ({"paper": {"terminate": True}}, r"model\.paper\.terminate: unknown key; did you mean termination"),
        ({"prune": "papers"}, "model.prune"),
    ],
)
def test_settings_that_do_not_go_together_are_told_at_once(run, model, said):
    with pytest.raises(ConfigError, match=said):
        run(model=model)


def test_a_campaign_asks_once(run):
    with pytest.raises(ConfigError, match=r"model\.paper\.termination: a campaign asks each holder once"):
        run(model={"prune": "paper"}, campaign={"name": "rides"})
