"""The page of a run in rounds: what it says of features, rounds, privacy and scores is so, whatever the data are called."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace

import numpy as np
import pytest
from chain import RoundsChain, shells, shells_config
from page_reader import Page
from page_samples import HOSTILE

from ldptree.encoding import CategoricalFeature, Encoding, NumericFeature
from ldptree.models.curves import along
from ldptree.models.public_view import ShownModel
from ldptree.partition.product import Histogram, Product
from ldptree.partition.tree import Partition
from storage.store import Store
from tasks.artifacts import read_shown
from tasks.page import numbers as n
from tasks.page import plots, rounds_finding, rounds_privacy, rounds_words
from tasks.page.facts import RoundsFacts, Span, facts_from
from tasks.page.number_facts import PieceFacts
from tasks.page.places import number_words
from tasks.page.render import render, summary_markdown
from tasks.page.rounds_facts import SurfaceFacts
from tasks.page.rounds_learned import curves_of, tree_of
from tasks.page.rounds_places import places_of
from tasks.report import read_facts

pytestmark = pytest.mark.slow


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
def tree_chain(rows, tmp_path_factory):
    """HistOfTree with labels by Laplace noise, a mask of each holder's own, and no scores."""
    config = shells_config(
        rows,
        model={"estimator": "histoftree"},
        histoftree={"bins": 2, "binned": 1, "depth": 1, "label": "laplace"},
        dataset={"drop": [], "test_fraction": 0.0},
        features={"private": [], "protects": {"weight": "hides"}},
        evaluate=False,
    )
    return RoundsChain(Store(tmp_path_factory.mktemp("tree")), config).converse()


@pytest.fixture(scope="module")
def tree(tree_chain):
    return read_facts(tree_chain.store, tree_chain.page["page"])


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


def plain(text):
    """As a page's words come back: every kind of space as one."""
    return " ".join(text.split())


def model_of(chain):
    return ShownModel.from_json(chain.store.file(chain.model["model"], "model.json").read_bytes())


def test_features_are_ranked_by_their_share_of_the_variance_of_the_answers(facts, tree):
    """The law gives size, weight and kind 32, 57 and 11 %; the model is noisy, so only the order and a wide margin are asked."""
    for one in (facts, tree):
        assert sum(feature.strength for feature in one.features) == pytest.approx(1.0)
    ranked = facts.strongest
    assert [feature.name for feature in ranked][:2] == ["weight", "size"]
    assert 0.4 < ranked[0].strength < 0.75
    page = Page(render(facts)).words
    places = [page.index(plain(f"{feature.name} {n.share(feature.strength)}")) for feature in ranked]
    assert places == sorted(places)


def test_a_curve_is_the_released_models_own_answer_averaged_over_the_holders(ours, facts):
    """Of a public feature, by hand: everybody's answer with that feature set, what they protect left out."""
    curve = next(one for one in facts.curves if one.column == "size")
    assert curve.is_smooth
    assert curve.strength == pytest.approx(next(f.strength for f in facts.features if f.name == "size"))
    model, shown = model_of(ours), read_shown(ours.store, ours.shown["shown"])
    assert facts.n_averaged == shown.n
    size = model.encoding.features[0]
    for piece in curve.pieces[::8]:
        rows = np.where(shown.protects, np.nan, shown.values)
        rows[:, 0] = ((piece.low + piece.high) / 2 - size.minimum) / (size.maximum - size.minimum)
        # what is drawn of weight has a mean of 0 only over many people: 5 standard errors of its 2 rings
        assert piece.value == pytest.approx(model.inner.predict(rows).mean(), abs=5 * 2.1 / np.sqrt(shown.n))


def test_a_curve_along_a_private_feature_is_drawn_and_says_what_of_it_was_learned(facts):
    curve = facts.curves[0]
    assert curve.column == "weight"
    swing = curve.pieces[-1].value - curve.pieces[0].value
    assert swing == pytest.approx(next(e for e in facts.effects if e.shape == "rise").swing, rel=0.25)
    told = rounds_words.curves_caption(facts)
    assert "along weight, which is private, only the height was learned" in told
    assert rounds_words.curve_aria(curve, facts) in "".join(
        value for _, name, value in Page(render(facts)).attributes if name == "aria-label"
    )


def test_a_curve_claims_no_noise_of_its_own(facts, tree):
    for one in (facts, tree):
        assert one.curves
        assert {piece.sd for curve in one.curves for piece in curve.pieces} == {None}
        page = Page(render(one))
        assert "The band is" not in page.words
        assert not any(value == "band" for _, _, value in page.attributes)


def test_a_smooth_band_encloses_its_curve(facts):
    """Corners of the outline: the upper edge there and the lower edge back, with the curve's own points between."""
    curve = next(one for one in facts.curves if one.is_smooth)
    curve = replace(curve, pieces=tuple(replace(piece, sd=0.5) for piece in curve.pieces))
    across, axis = plots.column_axis(curve), plots.value_axis([curve])
    drawn = str(plots.curve_plot(across, axis, curve, "told"))
    corners = [tuple(map(float, one.split(","))) for one in re.search(r' d="M([^"]*)Z"', drawn)[1].split("L")]
    half = len(corners) // 2
    upper, lower = corners[:half], corners[half:][::-1]
    assert [x for x, _ in upper] == [x for x, _ in lower]
    points = [float(y) for y in re.findall(r'class="step"[^>]* y1="([\d.]+)"', drawn)]
    assert half == len(points) + 1
    assert all(high < y < low for (_, high), y, (_, low) in zip(upper[:-1], points, lower[:-1], strict=True))


def test_why_there_is_no_single_tree_is_said_and_where_the_trees_step(facts):
    assert facts.surface.n_trees == 20
    told = rounds_words.no_tree(facts)
    assert "There is no single tree to draw" in told
    page = Page(render(facts)).words
    assert " ".join(told.split()) in page
    assert facts.surface.steps
    assert all(f"{one.asks}?" in page for one in facts.surface.steps)
    assert facts.tree is None
    few = replace(facts, surface=SurfaceFacts(n_trees=0, line_sd=0.0, trees_sd=0.0))
    assert "There is no tree" in Page(render(few)).words
    flat = replace(facts, surface=SurfaceFacts(n_trees=20, line_sd=1.0, trees_sd=0.0))
    assert "the line is the whole answer" in Page(render(flat)).words


def test_the_tree_has_its_histogram_at_every_leaf_with_the_models_own_values(tree_chain, tree):
    model = model_of(tree_chain).inner
    assert len(tree.tree.children) == 2
    boxes = [box for leaf in tree.tree.children for box in leaf.boxes]
    per_leaf = model.value.reshape(2, 2).T.ravel()
    assert [box.value for box in boxes] == per_leaf.tolist()
    assert [box.share for box in boxes] == model.shares.reshape(2, 2).T.ravel().tolist()
    assert tree.tree.share_private == pytest.approx(1.0)
    assert [box.is_heard for box in boxes] == (model.count > 2 * model.count_sd).reshape(
        2, 2
    ).T.ravel().tolist()
    mean = sum(box.share * box.value for box in boxes)
    assert tree.tree.value == pytest.approx(mean, rel=1e-6)
    page = Page(render(tree)).words
    for leaf in tree.tree.children:
        assert leaf.condition in page
        for box in leaf.boxes:
            assert plain(f"{', '.join(box.place)} {n.share(box.share)}") in page


def test_bins_are_told_in_the_columns_own_unit_and_meet(tree_chain, tree):
    weight = model_of(tree_chain).encoding.features[1]
    middle = number_words(float(f"{(weight.minimum + weight.maximum) / 2:.3g}"))
    (leaf, _) = tree.tree.children
    assert [box.place for box in leaf.boxes] == [(f"weight up to {middle}",), (f"weight above {middle}",)]


def test_a_bin_of_a_category_is_a_level_or_not_it():
    encoding = Encoding((NumericFeature("size", 0.0, 9.0), CategoricalFeature("what_is", ("calm", "wild"))))
    product = Product(Histogram((2, 0), 3), Partition.single())
    told = places_of(product, encoding, {"what_is": {"wild": "of the reef"}})
    assert told(0) == ("what is is not of the reef", "size up to 3")
    assert told(4) == ("what is is not known", "size above 3 to 6")
    assert told(8) == ("what is is of the reef", "size above 6")


def test_cells_in_the_noise_are_marked_and_do_not_set_the_scale(tree):
    first, *rest = tree.tree.children
    far = replace(first.boxes[0], value=9999.0, is_heard=False)
    noisy = replace(
        tree, tree=replace(tree.tree, children=(replace(first, boxes=(far, first.boxes[1])), *rest))
    )
    assert noisy.tree.span[1] < 9999
    assert Page(render(noisy)).words.count("in the noise") >= 1


def test_a_count_within_its_noise_is_no_count_and_curves_say_how_much_of_them_rests_on_such(tree_chain, tree):
    whole = model_of(tree_chain)
    lost = replace(whole.inner, count_sd=np.full(4, whole.inner.count.max()))
    root = tree_of(lost, whole.encoding, {})
    assert not any(box.is_heard for leaf in root.children for box in leaf.boxes)
    shown = read_shown(tree_chain.store, tree_chain.shown["shown"])
    curves = curves_of(along(replace(whole, inner=lost), shown), whole.encoding, {})
    assert {curve.in_noise for curve in curves} == {1.0}
    told = rounds_words.curves_caption(replace(tree, curves=curves))
    assert plain("at one step 100 % of the averaged answers") in plain(told)


def test_a_run_of_one_cell_has_no_tree_and_no_curve(rows, tmp_path):
    config = shells_config(
        rows,
        model={"estimator": "histoftree"},
        histoftree={"bins": 1, "binned": 0, "depth": 0},
        evaluate=False,
    )
    chain = RoundsChain(Store(tmp_path), config).converse()
    one = read_facts(chain.store, chain.page["page"])
    assert one.tree is None
    assert one.curves == ()
    page = Page(render(one)).words
    assert "The partition has one cell" in page
    assert "Along the" not in page


def test_a_mask_that_stays_with_the_holders_gives_people_of_the_models_own_cells(rows, tmp_path):
    config = shells_config(
        rows,
        model={"estimator": "histoftree"},
        histoftree={"mask_release": "none", "bins": 2, "binned": 1, "depth": 1},
        features={"private": [], "protects": {"weight": "hides"}},
        dataset={"drop": [], "test_fraction": 0.0},
        privacy={"epsilon": 8.0},
        evaluate=False,
    )
    chain = RoundsChain(Store(tmp_path), config).converse()
    one = read_facts(chain.store, chain.page["page"])
    assert one.curves
    assert "drawn from the model's own cells" in rounds_words.strength_caption(one)


def test_levels_are_called_as_the_configuration_calls_them(rows, tmp_path):
    config = shells_config(
        rows,
        model={"estimator": "histoftree"},
        histoftree={"bins": 2, "binned": 1, "depth": 2},
        dataset={"names": {"kind": {"calm": "of the bay", "wild": "of the reef"}}},
        evaluate=False,
    )
    chain = RoundsChain(Store(tmp_path), config).converse()
    page = Page(render(read_facts(chain.store, chain.page["page"]))).words
    assert "kind is of the bay" in page
    assert "kind is calm" not in page


def test_facts_come_back_from_json_as_they_were(facts, tree):
    for one in (facts, tree):
        again = facts_from(json.loads(json.dumps(one.to_dict())))
        assert isinstance(again, RoundsFacts)
        assert again == one


def test_a_spend_above_the_claim_is_no_fact(facts):
    with pytest.raises(ValueError, match="more than epsilon = 4"):
        replace(facts, epsilon_exact=4.1)


def hostile_node(node):
    return replace(
        node,
        condition=HOSTILE,
        boxes=tuple(replace(box, place=(HOSTILE,)) for box in node.boxes),
        children=tuple(hostile_node(child) for child in node.children),
    )


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
            curves=tuple(
                replace(curve, column=HOSTILE, pieces=(*curve.pieces, PieceFacts(name=HOSTILE, value=1.0)))
                for curve in one.curves
            ),
            tree=one.tree and hostile_node(one.tree),
            surface=one.surface
            and replace(one.surface, steps=tuple(replace(s, asks=HOSTILE) for s in one.surface.steps)),
        )
        page = Page(render(hostile))
        assert "script" not in page.tags
        assert "<script" not in summary_markdown(hostile)


def test_the_summary_has_the_finding_the_scores_and_the_privacy(facts):
    markdown = summary_markdown(facts)
    assert markdown.startswith("## ")
    assert "Reports and what is shown" in markdown
    assert "What is not protected" in markdown
