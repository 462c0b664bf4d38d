"""The ledger adds up what holders spend, asks nobody twice for one question, and refuses what is over the cap."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest

from ldptree.errors import BudgetError
from ldptree.protocol.ledger import PART, Charge, Ledger, Names, RowRange

FILE = RowRange(source="file", start=0, stop=100)
NO_EPSILONS = [0.0, -1.0, -1e-300, math.nan, math.inf, -math.inf, 1e9, True, "1", None]


def asks(question, epsilon, who=FILE, **words):
    return Charge(question=question, epsilon=epsilon, who=who, **words)


def rows(start, stop, source="file"):
    return RowRange(source=source, start=start, stop=stop)


def test_different_questions_to_the_same_holders_add_up():
    ledger = Ledger()
    ledger.spend(asks("one", 1.0))
    ledger.spend(asks("two", 0.5, rows(50, 150)))
    assert ledger.spent_by(rows(0, 50)) == 1.0
    assert ledger.spent_by(rows(49, 51)) == 1.5
    assert ledger.spent_by(rows(100, 150)) == 0.5
    assert ledger.spent_by(rows(150, 151)) == 0.0
    assert ledger.spent_by(rows(0, 50, source="another file")) == 0.0


def test_named_holders_are_known_in_whatever_file_they_come():
    ledger = Ledger()
    ledger.spend(asks("one", 1.0, Names([7, 3, 9])))
    ledger.spend(asks("two", 2.0, Names([9, 1])))
    assert [ledger.spent_by(Names([who])) for who in (3, 9, 1, 5)] == [1.0, 3.0, 2.0, 0.0]
    assert ledger.spent_by(Names([5, 3, 9])) == 3.0


@pytest.mark.parametrize("who", [FILE, Names([1, 2, 3])], ids=["rows", "names"])
def test_a_question_asked_again_costs_nothing(who):
    ledger = Ledger(cap=1.0)
    assert len(ledger.spend(asks("one", 1.0, who))) == 1
    assert ledger.spend(asks("one", 1.0, who)) == ()
    assert (ledger.spent_by(who), len(ledger)) == (1.0, 1)


def test_of_a_question_asked_before_only_new_holders_are_charged():
    ledger = Ledger(cap=1.0)
    ledger.spend(asks("one", 1.0, rows(20, 40)))
    added = ledger.spend(asks("one", 1.0, rows(0, 100)))
    assert [(part.who.start, part.who.stop) for part in added] == [(0, 20), (40, 100)]
    ledger.spend(asks("one", 1.0, Names([2, 4])))
    (added,) = ledger.spend(asks("one", 1.0, Names([1, 2, 3, 4])))
    assert added.who.hashes.tolist() == [1, 3]
    assert (ledger.spent_by(rows(0, 100)), ledger.spent_by(Names([1, 2, 3, 4]))) == (1.0, 1.0)


def test_one_question_has_one_epsilon():
    ledger = Ledger()
    ledger.spend(asks("one", 1.0))
    with pytest.raises(BudgetError, match=r"asked at epsilon 2\.0, and before at 1\.0"):
        ledger.spend(asks("one", 2.0))


@pytest.mark.parametrize("who", [FILE, Names([1, 2, 3])], ids=["rows", "names"])
def test_a_budget_is_not_spent_twice(who):
    ledger = Ledger(cap=3.0)
    ledger.spend(asks("one", 2.0, who, about="week one"))
    with pytest.raises(BudgetError) as refused:
        ledger.spend(asks("two", 2.0, who, about="week two", where="trips.csv"))
    assert refused.value.exit_code == 4
    said = str(refused.value)
    assert said.startswith("trips.csv: holders would spend epsilon 4 over all, and their lifetime cap is 3: ")
    assert (
        "2 is spent already (2 on week one), and week two asks for 2. Nobody was asked. Ask for epsilon 1 at most, or ask"
        in said
    )
    assert (ledger.spent_by(who), len(ledger)) == (2.0, 1)
    ledger.spend(asks("two", 1.0, who))
    with pytest.raises(BudgetError, match="Nothing is left"):
        ledger.spend(asks("three", 1e-6, who))


def test_one_holder_over_the_cap_refuses_the_charge_of_all():
    ledger = Ledger(cap=1.0)
    ledger.spend([asks("one", 1.0, rows(99, 100)), asks("one", 1.0, Names([8]))])
    for charges in (
        asks("two", 1.0, FILE),
        asks("two", 1.0, Names([7, 8])),
        [asks("two", 1.0, rows(0, 99)), asks("two", 1.0, Names([8]))],
        [asks("two", 0.6, rows(0, 9)), asks("three", 0.6, rows(0, 9))],  # together
    ):
        with pytest.raises(BudgetError):
            ledger.spend(charges)
    assert len(ledger) == 2


def test_a_first_round_that_leaves_no_room_for_the_second_is_refused_before_both():
    ledger = Ledger(cap=0.7)
    second = [asks("protocol, after round 1", 0.35)]
    assert ledger.spend(asks("protocol, round 1", 0.35), room=second)
    assert ledger.largest_spend().epsilon == 0.35
    ledger.spend(asks("protocol, round 2", 0.35))
    assert ledger.spend(asks("protocol, round 1", 0.35), room=second) == ()  # given again, both are paid for
    other = Ledger(cap=0.6)
    with pytest.raises(BudgetError):
        other.spend(asks("protocol, round 1", 0.35), room=second)
    assert len(other) == 0


@pytest.mark.parametrize(("epsilon", "times"), [(0.1, 3), (0.1, 10), (1 / 3, 3), (0.7, 7), (1e-6, 300)])
def test_sums_are_exact(epsilon, times):
    """In floating point 0.1 three times is more than 0.3."""
    cap = round(epsilon * times, 9)
    ledger = Ledger(cap=cap)
    for number in range(times):
        ledger.spend(asks(str(number), epsilon))
    assert ledger.spent_by(FILE) == pytest.approx(cap, abs=1e-9)
    with pytest.raises(BudgetError):
        ledger.spend(asks("one more", epsilon))


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64, np.longdouble])
def test_an_amount_is_booked_as_it_is_whatever_type_it_has(kind):
    ledger = Ledger()
    for number in range(10):
        ledger.spend(asks(str(number), kind(0.1)))
    assert ledger.spent_by(FILE) == pytest.approx(10 * float(kind(0.1)), abs=1e-11)


NUMBER, HASHES, WHO = (
    "must be a number above 0",
    "hashes are whole numbers",
    "give a RowRange of a source, or Names",
)


@pytest.mark.parametrize(
    ("forged", "said"),
    [
        *((lambda e=e: Ledger().spend(asks("one", e)), "epsilon = ") for e in NO_EPSILONS),
        *(
            (
                lambda e=e: Ledger(cap=e) if e is not None else Ledger().hold_to(math.nan),
                "the lifetime cap = ",
            )
            for e in NO_EPSILONS
        ),
        *(
            (lambda e=e: Ledger().spend(asks("one", e)), rf"epsilon = -?inf: {NUMBER}")
            for e in (10**400, -(10**5000), np.float16(np.inf))
        ),
        # a hash that is cut to a whole number is somebody else's
        *((lambda hashes=hashes: Names(hashes), HASHES) for hashes in ([1.7], [-1], [[1, 2]])),
        *((lambda ends=ends: rows(*ends), "not a range") for ends in ((0.5, 2), (3, 3), (6, 5), (-1, 3))),
        *(
            (lambda who=who: asks("one", 1.0, who), WHO)
            for who in ([1, 2], None, "all", np.array([1, 2], np.uint64))
        ),
    ],
)
def test_amounts_and_people_who_cannot_be_are_refused(forged, said):
    with pytest.raises(BudgetError, match=said):
        forged()


def test_a_cap_can_be_lowered_and_never_raised_or_forgotten():
    ledger = Ledger()
    assert ledger.cap is None
    assert [ledger.hold_to(cap) for cap in (4.0, 5.0, None, 2.0, 3.0)] == [True, False, False, True, False]
    assert ledger.cap == 2.0


def test_a_cap_lowered_below_what_was_spent_lets_nothing_more_be_spent_and_others_spend():
    ledger = Ledger()
    ledger.spend(asks("one", 3.0))
    ledger.hold_to(2.0)
    with pytest.raises(BudgetError, match="Nothing is left"):
        ledger.spend(asks("two", 0.1))
    assert ledger.spend(asks("one", 3.0)) == ()
    assert ledger.spend(asks("two", 2.0, rows(100, 200)))


def test_without_a_cap_everything_is_recorded_and_nothing_refused():
    ledger = Ledger()
    for number in range(50):
        ledger.spend(asks(str(number), 64.0))
    assert ledger.largest_spend().epsilon == 3200.0


def test_the_largest_spend_says_on_what():
    ledger = Ledger()
    assert ledger.largest_spend().epsilon == 0.0
    ledger.spend(asks("one", 1.0, rows(0, 10), about="week one"))
    ledger.spend(asks("two", 2.0, rows(9, 20), about="week two"))
    ledger.spend(asks("three", 2.5, Names([4]), about="by name"))
    largest = ledger.largest_spend()
    assert (largest.epsilon, largest.on) == (3.0, (("week one", 1.0), ("week two", 2.0)))
    ledger.spend(asks("four", 1.0, Names([4, 5]), about="again"))
    assert ledger.largest_spend().on == (("by name", 2.5), ("again", 1.0))
    assert ledger.spent_on(rows(15, 16)) == (("week two", 2.0),)


def test_a_ledger_can_be_read():
    ledger = Ledger(cap=4.0)
    ledger.spend([asks("one", 1.0, about="week one"), asks("two", 0.5, Names(range(1000)))])
    assert repr(ledger).splitlines() == [
        "Ledger: 1 spent, at most 4",
        "  1 each of 100 on week one",
        "  0.5 each of 1,000 on two",
    ]


def named_in(question, epsilon, names, who=FILE):
    """What a run charges whose holders a column names: the rows of a file, and the names of who is asked in it."""
    return [asks(question, epsilon, who), asks(question, epsilon, Names(names))]


def test_the_rows_and_the_names_of_one_question_are_one_spend():
    ledger = Ledger(cap=4.0)
    ledger.spend(named_in("one", 2.0, [1, 2]))
    assert (ledger.spent_by(Names([1, 2])), ledger.spent_by(FILE)) == (2.0, 2.0)
    ledger.spend(named_in("two", 2.0, [2, 3]))
    assert [ledger.spent_by(Names([who])) for who in (1, 2, 3)] == [2.0, 4.0, 2.0]
    assert ledger.largest_spend().epsilon == 4.0


def test_two_halves_of_an_epsilon_are_never_more_than_the_whole():
    for epsilon in (25 / 3, 1 / 3, math.pi, *np.random.default_rng(5).uniform(0.05, 64, 200)):
        half = epsilon / 2
        ledger = Ledger(cap=epsilon)
        ledger.spend(asks("round 1", half), room=[asks("after round 1", epsilon - half)])
        ledger.spend(asks("round 2", epsilon - half))
        assert ledger.largest_spend().epsilon == pytest.approx(epsilon, rel=1e-12)
        with pytest.raises(BudgetError):
            ledger.spend(asks("round 3", 1e-9))
        for over in (epsilon - half + 1e-9, epsilon * (1 + 1e-9)):
            again = Ledger(cap=epsilon)
            again.spend(asks("round 1", half))
            with pytest.raises(BudgetError):
                again.spend(asks("round 2", over))


def test_what_rounding_lets_through_stays_below_a_billionth_of_the_cap_and_the_least_is_not_for_nothing():
    ledger = Ledger()
    ledger.spend(asks("one", 5e-324))
    assert ledger.spent_by(FILE) > 0
    ledger = Ledger(cap=1e-6)
    ledger.spend(asks("all of it", 1e-6))
    with pytest.raises(BudgetError, match="Nothing is left"):
        ledger.spend(asks("the smallest", 5e-324))


def in_parts(names):
    """The same people, read three at a time."""
    hashes = np.sort(np.array(names, np.uint64))
    parts = [hashes[start : start + 3] for start in range(0, len(hashes), 3)]
    return Names.in_parts(lambda: iter(parts), len(hashes))


def test_names_that_are_read_in_parts_are_the_same_people():
    whole, parts = Names([7, 1, 3, 9, 2]), in_parts([7, 1, 3, 9, 2])
    assert parts.hashes.tolist() == whole.hashes.tolist() == [1, 2, 3, 7, 9]
    assert (len(parts), [part.tolist() for part in parts.parts()]) == (5, [[1, 2, 3], [7, 9]])
    ledger = Ledger(entries=[asks("one", 1.0, parts)])
    assert ledger.spend(asks("one", 1.0, whole)) == ()
    (added,) = ledger.spend(asks("one", 1.0, Names([2, 4])))
    assert added.who.hashes.tolist() == [4]


def test_a_large_list_is_looked_at_in_parts():
    names = Names(np.arange(PART + 5, dtype=np.uint64))
    assert [len(part) for part in names.parts()] == [PART, 5]
    assert Ledger(entries=[asks("one", 1.0, names)]).spent_by(Names([PART + 3])) == 1.0


@pytest.mark.parametrize("names_of", [Names, in_parts])
def test_the_sums_are_those_of_counting_one_by_one(names_of):
    """Against plain dictionaries, over many random charges; the seed is fixed."""
    rng = np.random.default_rng(3)
    ledger, counted = Ledger(cap=12.0), {}
    costs = {f"q{number}": 1.0 + number % 3 for number in range(15)}

    def total(questions):
        return sum(costs[question] for question in questions)

    n_refused = 0
    for _ in range(300):
        question, source = f"q{rng.integers(15)}", f"f{rng.integers(2)}"
        start, stop = sorted(rng.choice(30, 2, replace=False).tolist())
        names = rng.choice(25, rng.integers(0, 9), replace=False).tolist()
        after = {holder: set(questions) for holder, questions in counted.items()}
        for holder in (*((source, row) for row in range(start, stop)), *names):
            after.setdefault(holder, set()).add(question)
        charges = [asks(question, costs[question], rows(start, stop, source))]
        charges += [asks(question, costs[question], names_of(names))] if names else []
        if any(total(q) > 12.0 and question in q - counted.get(h, set()) for h, q in after.items()):
            n_refused += 1
            with pytest.raises(BudgetError):
                ledger.spend(charges)
            continue
        ledger.spend(charges)
        counted = after
    assert n_refused > 20
    for holder, questions in counted.items():
        is_row = isinstance(holder, tuple)
        who = rows(holder[1], holder[1] + 1, source=holder[0]) if is_row else Names([holder])
        assert ledger.spent_by(who) == total(questions)
        assert len(ledger.spent_on(who)) == len(questions)
    assert ledger.largest_spend().epsilon == max(total(q) for q in counted.values())
    named = Counter(
        total(questions) for holder, questions in counted.items() if not isinstance(holder, tuple)
    )
    assert ledger.count_by_spend()["name"] == named


def test_rows_are_counted_where_nobody_has_a_name():
    ledger = Ledger()
    ledger.spend([asks("one", 1.0, rows(0, 10)), asks("one", 1.0, Names(range(8)))])
    ledger.spend(
        [asks("two", 2.0, rows(5, 10)), asks("two", 2.0, rows(20, 24)), asks("three", 0.5, rows(8, 12))]
    )
    assert ledger.count_by_spend() == {"name": {1.0: 8}, "row": {2.0: 3 + 4, 2.5: 2, 0.5: 2}}
