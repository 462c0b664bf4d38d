"""What a model says of itself: the figures are the model's, the words lead to the right cell."""

from __future__ import annotations

import re

import numpy as np
import pytest
from example_models import every_kind_of_feature, protocol_of, random_counts, random_tree, totals_of

from ldptree.encoding import CategoricalFeature, Encoding, NumericFeature
from ldptree.families.tree_fit import fit_model
from ldptree.models.description import Condition, Evidence, find_conditions, share_below
from ldptree.models.tree import ClassTree
from ldptree.partition.tree import Partition
from ldptree.protocol.totals import Totals
from tasks.page.units import figures, raw_number, say_condition

NO_YES = ("no", "yes")
X = Encoding((NumericFeature("x", 0.0, 1.0),))
HALVES = Partition.of([0, -1, -1], [0.5, 0, 0], [1, -1, -1], [2, -1, -1])


@pytest.fixture(scope="module")
def learned():
    """A model of random totals over every kind of feature, its totals and its public counts."""
    rng = np.random.default_rng(1)
    encoding = every_kind_of_feature()
    protocol = protocol_of(random_tree(encoding.n_encoded, 6, rng), encoding)
    totals = totals_of(protocol, random_counts(protocol.n_cells, 2, 20_000, rng), rng)
    public = random_counts(protocol.n_cells, 2, 300, rng)
    return fit_model(protocol, totals, public), totals, public


def described(model, totals, public, names=None):
    """The description of a model beside its totals and the public rows of its cells."""
    return model.describe(Evidence(names=names or {}, totals=(totals,), public_counts=public))


def path_words(model, node, names, *, only_last=False):
    """The conditions that lead to a node, in words."""
    found = find_conditions(model.partition, model.raw_tree, node, names, only_last=only_last)
    return tuple(say_condition(one) for one in found)


def tree_of(fit, names=None):
    """The root of the tree of a model that was fitted here."""
    model, totals, public = fit
    return described(model, totals, public, names).tree


def model_of(encoding, partition, counts, classes=NO_YES, **fit) -> ClassTree:
    """A model of exact totals `counts` [cells, classes], with a large budget."""
    return fitted(encoding, partition, counts, classes, **fit)[0]


def fitted(
    encoding, partition, counts, classes, *, public=None, **fit
) -> tuple[ClassTree, Totals, np.ndarray]:
    """The same with the totals it was fitted on."""
    counts = np.asarray(counts)
    protocol = protocol_of(partition, encoding, classes=classes, epsilon=8.0)
    raw = protocol.mechanism.sample_totals(np.append(counts.ravel(), 0), np.random.default_rng(0))
    n = int(counts.sum())
    totals = Totals.from_raw(raw, mechanism=protocol.mechanism, n_private=n, depth=2)
    public = counts // 10 if public is None else public
    return fit_model(protocol, totals, public, **fit), totals, public


def test_there_is_one_fact_a_cell_and_shares_are_of_the_whole(learned):
    model, totals, public = learned
    cells = described(model, totals, public).cells
    assert len(cells) == model.partition.n_leaves
    assert sum(cell.share for cell in cells) == pytest.approx(1.0)
    assert sum(cell.public_share for cell in cells) == pytest.approx(1.0)
    assert all(0.0 <= cell.share <= 1.0 for cell in cells)


def test_what_a_cell_says_is_what_the_model_decides(learned):
    model, totals, public = learned
    for cell, node in zip(described(model, totals, public).cells, model.partition.leaves, strict=True):
        assert cell.decision == str(model.classes[model.decision[node]])
        (share,) = cell.estimates
        assert share.value == pytest.approx(model.probability[node, 1])
        assert cell.rests_on in ("private", "public", "both", "neighbours")
        assert (share.value > 0.5) == (cell.decision == str(model.classes[1]))


def test_the_raw_margin_of_a_cell_is_its_reports_and_their_noise(learned):
    model, totals, public = learned
    leaves = model.partition.leaves
    for j, cell in enumerate(described(model, totals, public).cells):
        noise = model.noise_sd[leaves[j], 0]
        if noise >= 1.0:
            assert cell.reports == (None,)
            continue
        assert cell.reports[0].sd == pytest.approx(noise)
        # the noise of one margin as a share, and as a number of holders: their ratio is the cell's mass
        mass = np.sqrt(totals.cell_variance([-0.5, 0.5])[j]) / noise
        margin = totals.counts[j, 1] - totals.cell_counts[j] / 2
        assert cell.reports[0].value == pytest.approx(0.5 + margin / mass)


def test_the_public_margin_of_a_cell_is_its_public_rows(learned):
    model, totals, public = learned
    for cell, counts in zip(described(model, totals, public).cells, public, strict=True):
        if counts.sum() == 0:
            assert cell.public == (None,)
        else:
            assert cell.public[0].value == pytest.approx(counts[1] / counts.sum())


def test_the_tree_has_every_cell_once_and_shares_that_add_up(learned):
    model, totals, public = learned

    def leaves(node):
        return [node] if not node.children else [leaf for child in node.children for leaf in leaves(child)]

    def check(node):
        if node.children:
            assert len(node.children) == 2
            assert node.cells == sum(child.cells for child in node.children)
            assert node.share == pytest.approx(sum(child.share for child in node.children))
            assert all(child.conditions for child in node.children)
            for child in node.children:
                check(child)
        else:
            assert node.cells == 1

    root = described(model, totals, public).tree
    check(root)
    assert root.conditions == ()
    assert (root.cells, root.share) == (model.partition.n_leaves, pytest.approx(1.0))
    decided = [leaf.decision for leaf in leaves(root)]
    assert sorted(decided) == sorted(cell.decision for cell in described(model, totals, public).cells)


def satisfied(words, row) -> bool:
    """Whether a row, name to value, is where the words of a path lead."""
    for said in words:
        name = next(n for n in sorted(row, key=len, reverse=True) if said.startswith(n))
        value, rest = row[name], said.removeprefix(name).strip()
        if rest.startswith("is not "):
            if str(value) in re.split(r", | or ", rest.removeprefix("is not ")):
                return False
        elif rest.startswith("is "):
            if str(value) != rest.removeprefix("is "):
                return False
        else:
            low, high = -np.inf, np.inf
            if match := re.fullmatch(r"(?!up )(\S+) to (\S+)", rest):
                low, high = (float(v.replace(",", "")) for v in match.groups())
            elif match := re.fullmatch(r"(up to|over) (\S+)", rest):
                bound = float(match[2].replace(",", ""))
                low, high = (low, bound) if match[1] == "up to" else (bound, high)
            else:
                raise AssertionError(said)
            if not low < value <= high:
                return False
    return True


def test_the_words_of_a_path_lead_every_row_to_its_own_cell_and_no_other():
    encoding = Encoding(
        (
            NumericFeature("trip_miles", 0.0, 16.0),
            NumericFeature("fare", 0.0, 8.0),
            CategoricalFeature("firm", ("ash", "birch", "cedar")),
        )
    )
    # columns: miles, fare, firm = ash, birch, cedar; thresholds that few digits say exactly
    tree = Partition.of(
        [0, 2, -1, 3, -1, -1, 0, 1, -1, -1, 4, -1, -1],
        [0.5, 0.5, 0, 0.5, 0, 0, 0.75, 0.25, 0, 0, 0.5, 0, 0],
        [1, 3, -1, 4, -1, -1, 7, 8, -1, -1, 11, -1, -1],
        [6, 2, -1, 5, -1, -1, 10, 9, -1, -1, 12, -1, -1],
    )
    model = model_of(encoding, tree, np.full((7, 2), 500))
    rng = np.random.default_rng(0)
    raw = np.column_stack([rng.uniform(0, 16, 500), rng.uniform(0, 8, 500), rng.integers(0, 3, 500)]).astype(
        float
    )
    raw[:4, 0] = [8.0, 12.0, 0.0, 16.0]
    paths = [path_words(model, int(node), {}) for node in tree.leaves]
    for cell, (miles, fare, firm) in zip(model.cells(raw), raw, strict=True):
        row = {"trip miles": miles, "fare": fare, "firm": encoding.features[2].levels[int(firm)]}
        assert [satisfied(words, row) for words in paths] == [j == cell for j in range(7)]
    assert path_words(model, 8, {}) == ("trip miles 8 to 12", "fare up to 2")
    assert path_words(model, 4, {}) == ("trip miles up to 8", "firm is not birch or ash")
    assert path_words(model, 4, {}, only_last=True) == ("firm is not birch",)
    assert path_words(model, 0, {}) == ()
    said = [raw_number(value) for value in (-0.004854, -3.0, -12345.6, 0.5, 2019.0)]
    assert said == ["\u22120.004854", "\u22123", "\u221212,346", "0.5", "2019"]


def test_large_and_small_figures_are_said_without_an_exponent():
    said = [figures(value, 3) for value in (175_812.0, 0.04183, 6.0, 0.0, -999.6)]
    assert said == ["176,000", "0.0418", "6.00", "0", "-1,000"]
    assert figures(55_123.0, 2, sign="+") == "+55,000"


def test_of_several_bounds_on_one_column_the_tightest_are_said():
    encoding = Encoding((NumericFeature("miles", 0.0, 16.0),))
    tree = Partition.of(
        [0, 0, -1, -1, 0, -1, -1],
        [0.5, 0.25, 0, 0, 0.75, 0, 0],
        [1, 2, -1, -1, 5, -1, -1],
        [4, 3, -1, -1, 6, -1, -1],
    )
    model = model_of(encoding, tree, np.full((4, 2), 500))
    said = [path_words(model, int(node), {}) for node in tree.leaves]
    assert said == [
        ("miles up to 4",),
        ("miles 4 to 8",),
        ("miles 8 to 12",),
        ("miles over 12",),
    ]


def test_whole_numbers_known_values_and_the_ends_of_a_stretch_are_written_alike():
    for whole, low, high, said in (
        (True, 0.5, None, "hour from 1"),
        (True, None, 0.5, "hour up to 0"),
        (True, 2.5, 7.5, "hour 3 to 7"),
        (True, 4.5, 5.5, "hour 5"),
        (False, 0.5, None, "hour over 0.5"),
        (False, 4642.5, 7488.0, "hour 4,642 to 7,488"),
        (False, 2019.0, 2021.0, "hour 2019 to 2021"),
    ):
        assert say_condition(Condition(column="hour", low=low, high=high), is_whole=whole) == said
    assert say_condition(Condition(column="area", levels=("unknown",), is_not=True)) == "area is known"


def test_codes_are_called_by_their_names_where_they_have_some():
    encoding = Encoding((CategoricalFeature("area", (8, 76)),))
    tree = Partition.of([1, -1, -1], [0.5, 0, 0], [1, -1, -1], [2, -1, -1])
    fit = fitted(encoding, tree, [[500, 100], [100, 500]], (0, 1))
    names = {"area": {"76": "O'Hare"}, "paid": {"0": "cash", "1": "card"}}
    root = tree_of(fit, names)
    assert [say_condition(child.conditions[0]) for child in root.children] == [
        "area is 8",
        "area is O'Hare",
    ]
    wide = Encoding((CategoricalFeature("area", (8, 76, 77)),))
    tree = Partition.of([1, -1, -1], [0.5, 0, 0], [1, -1, -1], [2, -1, -1])
    three = fitted(wide, tree, [[500, 100], [100, 500]], (0, 1))
    assert [say_condition(child.conditions[0]) for child in tree_of(three, names).children] == [
        "area is not O'Hare",
        "area is O'Hare",
    ]
    assert [child.decision for child in root.children] == ["cash", "card"]
    assert path_words(fit[0], 2, {}) == ("area is 76",)


def test_an_inner_node_says_the_average_of_its_cells():
    root = tree_of(fitted(X, HALVES, [[3000, 1000], [200, 800]], NO_YES))
    left, right = root.children
    mean = left.share * left.estimates[0].value + right.share * right.estimates[0].value
    assert root.estimates[0].value == pytest.approx(mean)
    assert root.decision == "no"
    assert left.share == pytest.approx(0.8, abs=0.03)


def test_a_missing_value_and_a_test_that_parts_nothing_are_said_in_words():
    encoding = Encoding((NumericFeature("fare", 0.0, 8.0, fill=1.0, indicator=True),))
    tree = Partition.of([1, -1, -1], [0.5, 0, 0], [1, -1, -1], [2, -1, -1])
    model = model_of(encoding, tree, [[500, 100], [100, 500]])
    assert path_words(model, 1, {}) == ("fare is known",)
    assert path_words(model, 2, {}) == ("fare is missing",)


def test_private_shares_are_shares_even_where_noise_makes_totals_negative():
    model = model_of(X, HALVES, [[0, 0], [40, 10]])
    counts = model.private_total[model.partition.leaves].sum(axis=1)
    shares = share_below(model.partition, counts)
    assert shares[0] == pytest.approx(1.0)
    assert (shares >= 0).all()
    assert shares[1:].sum() == pytest.approx(1.0)


def test_of_three_classes_every_share_is_said_and_the_reports_alone_are_not_shrunk():
    counts = np.array([[9000, 500, 500], [1000, 6000, 3000]])
    fit = fitted(X, HALVES, counts, ("a", "b", "c"))
    left, right = described(*fit).cells
    assert (left.decision, right.decision) == ("a", "b")
    # noise at this budget is far below 0.01
    assert [one.value for one in left.reports] == pytest.approx([0.9, 0.05, 0.05], abs=0.01)
    assert [one.value for one in right.reports] == pytest.approx([0.1, 0.6, 0.3], abs=0.01)
    assert [one.value for one in right.estimates] == pytest.approx([0.1, 0.6, 0.3], abs=0.05)


def test_an_error_is_given_for_cells_alone():
    root = tree_of(fitted(X, HALVES, np.full((2, 2), 500), NO_YES))
    assert root.estimates[0].sd is None
    assert all(0 < child.estimates[0].sd < 0.5 for child in root.children)


def test_a_difference_between_private_and_public_people_is_found_where_there_is_one():
    private = np.array([[4000, 6000], [2000, 8000]])
    alike = described(*fitted(X, HALVES, private, NO_YES, public=private // 10))
    apart = described(*fitted(X, HALVES, private, NO_YES, public=np.array([[800, 200], [600, 400]])))
    assert abs(alike.differences[0].value) < 0.05
    assert apart.is_found
    assert apart.differences[0].value == pytest.approx(0.4, abs=0.08)  # 0.6 - 0.2 and 0.8 - 0.4
