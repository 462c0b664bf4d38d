"""The page of a run in rounds: what it says of features, rounds, privacy and scores is so, whatever the data are called."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest
from page_reader import Page
from page_samples import HOSTILE
from rounds_chain import RoundsChain, shells, shells_config

from storage.store import Store
from tasks.page import rounds_finding, rounds_privacy, rounds_words
from tasks.page.facts import RoundsFacts, Span, facts_from
from tasks.page.render import render, summary_markdown
from tasks.report import read_facts


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    return shells(tmp_path_factory.mktemp("rows") / "shells.parquet", 900, 1)


@pytest.fixture(scope="module")
def ours(rows, tmp_path_factory):
    chain = RoundsChain(Store(tmp_path_factory.mktemp("ours")), shells_config(rows, privacy={"epsilon": 4.0}))
    return chain.converse()


@pytest.fixture(scope="module")
def facts(ours):
    return read_facts(ours.store, ours.page["page"])


@pytest.fixture(scope="module")
def tree(rows, tmp_path_factory):
    """HistOfTree with labels by Laplace noise, a mask of each holder's own, and no scores."""
    config = shells_config(
        rows,
        model={"estimator": "histoftree"},
        histoftree={"bins": 2, "binned": 1, "depth": 1, "label": "laplace"},
        dataset={"drop": [], "test_fraction": 0.0},
        features={"private": [], "protects": {"weight": "hides"}},
        evaluate=False,
    )
    chain = RoundsChain(Store(tmp_path_factory.mktemp("tree")), config).converse()
    return read_facts(chain.store, chain.page["page"])


def said(facts):
    return " ".join(sentence for answer in rounds_privacy.answers(facts) for sentence in answer.sentences)


def test_the_page_tells_every_round_with_what_was_asked_of_how_many_at_what_epsilon(ours, facts):
    assert [one.n_asked for one in facts.asked] == [record.facts["n_asked"] for record in ours.asked]
    page = Page(render(facts)).words
    for one in facts.asked:
        assert " ".join(rounds_words.question(one, facts).split()) in page
        assert " ".join(rounds_words.answer(one, facts).split()) in page
        assert one.epsilon <= 4.0
    assert "No holder spent more than ε = 4" in page.replace("\u00a0", " ")
    assert sum(one.n_asked for one in facts.asked) + facts.n_never_asked == facts.n_private


def test_the_page_tells_which_features_are_public_and_how_many_protect_each(facts, tree):
    assert [(f.name, f.declared, f.protects) for f in facts.features] == [
        ("size", "public", 0),
        ("weight", "private", facts.n_private),
        ("kind", "public", 0),
    ]
    (own,) = tree.protected
    assert own.declared == "own choice"
    assert 0 < own.protects < tree.n_private
    assert f"protected by {own.protects} of {tree.n_private}" in Page(render(tree)).words


def test_the_effect_of_a_private_feature_is_told_in_the_labels_unit(facts):
    """The law has 8 rings from the lowest to the highest weight; the contrast's ends are as far apart or a little less."""
    (effect,) = [one for one in facts.effects if one.shape == "rise"]
    assert effect.feature == "weight"
    assert 3 < effect.swing < 12
    assert facts.is_helped
    assert "of the private weight" in rounds_finding.headline(facts)
    assert "rings" in rounds_finding.headline(facts)


def test_scores_and_baselines_are_those_of_the_run(ours, facts):
    content = json.loads(ours.store.file(ours.scores["scores"], "scores.json").read_bytes())
    assert facts.ours.metrics["mse"] == content["scores"]["ours"]["mse"]
    assert {score.key for score in facts.baselines} == set(content["scores"]) - {"ours"}
    assert all(score.interval for score in facts.scores)
    assert facts.bins
    page = Page(render(facts)).words
    assert "Predicted against true" in page
    assert rounds_words.figure(facts.ours, 2)[:3] in page


def test_a_model_worse_than_the_mean_is_told_as_such(facts):
    constant = facts.baseline("constant")
    ours = replace(facts.ours, metrics=facts.ours.metrics | {"mse": constant.figure + 9}, interval=None)
    beaten = replace(constant, lead=Span(low=-10.0, high=-8.0))
    told = " ".join(rounds_finding.lead(replace(facts, ours=ours, baselines=(beaten,))))
    assert "the model is worse than that" in told


def test_a_privacy_officer_reads_what_is_protected_and_what_is_not(facts, tree):
    text = said(facts)
    assert "The label (rings), and weight." in text
    assert "semi-feature local differential privacy" in text
    assert f"at most by a factor of {math.exp(4):.1f}" in text
    assert "What a holder shows: everybody can see it, exactly" in text
    assert "The mask:" not in text
    assert "The mask: which features a holder protects is published" in said(tree)
    hidden = replace(tree, mask_release="none")
    assert "which of them a holder protects" in said(hidden)
    assert "that show the same" not in said(hidden)
    assert "What a holder shows" not in said(hidden)


def test_what_to_know_before_relying_on_it_is_said_first(facts, tree):
    assert any("came from a seed" in warning for warning in facts.warnings)
    assert any("Laplace" in warning for warning in tree.warnings)
    assert "simulation device" in said(tree)
    assert not any("Laplace" in warning for warning in facts.warnings)


def test_a_tree_of_cells_tells_its_shape(tree):
    shape = tree.shape
    assert (shape.bins, len(shape.binned), shape.depth, shape.cells) == (2, 1, 1, 4)
    assert shape.by_report
    assert "t = 2 bins on s = 1 feature (weight)" in Page(render(tree)).words
    assert tree.ours is None
    assert "there is no score here" in Page(render(tree)).words
    assert tree.most_rounds == 2
    assert tree.epsilon_exact <= 2.0 * (1 + 1e-9)


def test_facts_come_back_from_json_as_they_were(facts, tree):
    for one in (facts, tree):
        again = facts_from(json.loads(json.dumps(one.to_dict())))
        assert isinstance(again, RoundsFacts)
        assert again == one


def test_a_spend_above_the_claim_is_no_fact(facts):
    with pytest.raises(ValueError, match="more than epsilon = 4"):
        replace(facts, epsilon_exact=4.1)


def test_names_from_the_data_are_never_markup(facts, tree):
    for one in (facts, tree):
        hostile = replace(
            one,
            name=HOSTILE,
            title=HOSTILE,
            target=HOSTILE,
            unit=HOSTILE,
            noun=HOSTILE,
            nouns=HOSTILE,
            learned=HOSTILE,
            features=tuple(replace(feature, name=HOSTILE) for feature in one.features),
            asked=tuple(replace(asked, feature=HOSTILE) for asked in one.asked),
            effects=tuple(replace(effect, feature=HOSTILE) for effect in one.effects),
            shape=one.shape and replace(one.shape, binned=(HOSTILE,)),
        )
        page = Page(render(hostile))
        assert "script" not in page.tags
        assert "<script" not in summary_markdown(hostile)


def test_the_summary_has_the_finding_the_scores_and_the_privacy(facts):
    markdown = summary_markdown(facts)
    assert markdown.startswith("## ")
    assert "Reports and what is shown" in markdown
    assert "What is not protected" in markdown
