"""Who trains, who validates, and what the ledger keeps of it."""

import numpy as np
import pytest

from ldptree.errors import BudgetError, ConfigError, DataError
from ldptree.estimators.private_tuning import ask, draw_groups, squared_errors, tune
from ldptree.estimators.tuning import AllErrors, Difference
from ldptree.oracles import Words
from ldptree.protocol.ledger import Charge, Ledger, RowRange


def coins(seed=0):
    return np.random.default_rng(seed)


def words(_=None):
    return Words.seeded(np.random.SeedSequence(20261121))


@pytest.mark.parametrize("n_training", [1, 2, 5])
@pytest.mark.parametrize("n", [10, 11, 1000])
def test_nobody_is_in_two_groups_and_everybody_in_one(n, n_training):
    groups = draw_groups(n, n_training=n_training, validation_share=0.2, coins=coins())
    parts = [groups.rows(part) for part in (*groups.training, groups.validation)]
    assert all(part.size for part in parts)
    assert sorted(np.concatenate(parts).tolist()) == list(range(n))
    assert groups.validation[1] - groups.validation[0] == round(n * 0.2)
    sizes = [b - a for a, b in groups.training]
    assert max(sizes) - min(sizes) <= 1


def test_the_split_is_drawn_by_public_coins_alone():
    one, again, other = (
        draw_groups(500, n_training=1, validation_share=0.3, coins=coins(s)) for s in (1, 1, 2)
    )
    np.testing.assert_array_equal(one.order, again.order)
    assert (one.order != other.order).any()


def test_too_few_rows_to_divide_are_refused():
    for n, share, groups in ((4, 0.2, 1), (10, 0.9, 2), (10, 0.95, 1)):
        with pytest.raises(DataError, match="set tune = None"):
            draw_groups(n, n_training=groups, validation_share=share, coins=coins())


def asked_once(question, ledger, start=100, n=40):
    return ask(question, np.zeros((n, 3)), epsilon=1.0, start=start, ledger=ledger, words=words())


def test_the_ledger_says_what_each_validation_holder_spent_on_what():
    ledger = Ledger(cap=1.0)
    asked_once(Difference.for_budget(1.0, [1.0] * 3), ledger)
    told = [(e.who.start, e.who.stop, e.epsilon, e.about) for e in ledger.entries]
    assert told == [
        (100, 120, 1.0, "tuning, difference: candidate 1 less candidate 0"),
        (120, 140, 1.0, "tuning, difference: candidate 2 less candidate 0"),
    ]


def test_the_ledger_refuses_a_holder_who_answers_about_two_models():
    """The planted fault: the same holders are asked about another candidate, with all of epsilon again."""

    class Twice(Difference):
        def asked(self, n):
            return np.full(n, 2, dtype=np.int64)

    ledger, question = Ledger(cap=1.0), Difference.for_budget(1.0, [1.0] * 3)
    asked_once(question, ledger)
    with pytest.raises(BudgetError, match="candidate 2 less candidate 0"):
        asked_once(Twice(question.ranges, question.mechanism), ledger)


def test_the_ledger_refuses_a_holder_who_trained():
    ledger = Ledger(cap=1.0)
    rows = RowRange(source="private rows", start=0, stop=101)
    ledger.spend(Charge(question="training", epsilon=1.0, who=rows, about="round 1"))
    with pytest.raises(BudgetError, match="round 1"):
        asked_once(Difference.for_budget(1.0, [1.0] * 3), ledger)


def test_the_papers_noise_is_refused_for_what_it_spends():
    ledger = Ledger(cap=1.0)
    with pytest.raises(ConfigError, match=r"spends epsilon 1\.73"):
        asked_once(AllErrors.as_printed(1.0, [1.0] * 3), ledger)
    assert not len(ledger)


def tuned_by(losses, *, first_like=None, ledger=None, **settings):
    k = losses.shape[1]
    given = {
        "choice": "auto",
        "epsilon": 2.0,
        "public_losses": losses[:50],
        "loss_bound": 1.0,
        "difference_bounds": [0.0] + [1.0] * (k - 1),
    }
    return tune(
        [{"depth": j} for j in range(k)],
        first_like=np.arange(k) if first_like is None else np.array(first_like),
        private_losses=losses,
        n_training=[100] * k,
        start=0,
        ledger=Ledger(cap=2.0) if ledger is None else ledger,
        words_for=words,
        **given | settings,
    )


@pytest.mark.parametrize("choice", ["auto", "difference", "one-model", "laplace"])
def test_the_best_candidate_is_found_where_reports_can_tell(choice):
    losses = np.random.default_rng(0).random((20_000, 4)) * [1.0, 0.9, 0.2, 0.8]
    found = tuned_by(losses, choice=choice, epsilon=4.0, ledger=Ledger(cap=4.0))
    assert found.chosen == 2
    assert found.chosen_candidate == {"depth": 2}
    assert found.epsilon <= 4.0
    assert found.n_validation == 20_000
    assert "> " in repr(found)


def test_twins_are_asked_about_once_and_judged_alike():
    losses = np.random.default_rng(0).random((3000, 4))
    losses[:, 3] = losses[:, 1]
    ledger = Ledger(cap=2.0)
    found = tuned_by(losses, first_like=[0, 1, 2, 1], ledger=ledger)
    assert found.value[3] == found.value[1]
    assert len(ledger) <= 3
    assert sum(len(entry.who) for entry in ledger.entries) == 3000


def test_nobody_is_asked_where_all_candidates_are_one_model():
    ledger = Ledger(cap=2.0)
    found = tuned_by(np.random.default_rng(0).random((500, 3)), first_like=[0, 0, 0], ledger=ledger)
    assert (found.chosen, found.epsilon, found.n_validation, len(ledger)) == (0, 0.0, 0, 0)


def test_a_label_out_of_range_counts_as_its_end():
    errors = squared_errors(np.array([[0.0, 1.0], [0.5, 1.0]]), np.array([9.0, -9.0]), 0.0, 1.0)
    assert errors.tolist() == [[1.0, 0.0], [0.25, 1.0]]
