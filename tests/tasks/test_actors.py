"""Who sees what: no report moves a belief further than the table says, and devices are told apart from a file of rows."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from page_truth.reading import read

from ldptree.mechanisms.oracles import ORACLES
from tasks.page.data import Privacy
from tasks.page.privacy import BEFORE, list_actors, most_believed
from tasks.page.render import write_actors

ON_DEVICES = Privacy(epsilon=2.0, on_devices=True)


def test_at_epsilon_2_a_belief_of_1_percent_becomes_at_most_6_95_and_is_said_to_become_7() -> None:
    told = {actor.who: actor.believes for actor in list_actors(ON_DEVICES, is_scored=False)}
    assert list(told) == [
        "The device",
        "A relay, proxy or network",
        "The intake",
        "The curator",
        "A reader of the model",
    ]
    assert told["The device"] is None
    assert {round(100 * belief, 4) for belief in told.values() if belief is not None} == {6.9453}


@pytest.mark.parametrize("name", ["grr", "oue", "ss"])
def test_no_report_of_any_two_values_moves_a_belief_further(name: str) -> None:
    """By the exact law of every report; one report of randomised response moves it as far as is said."""
    oracle = ORACLES[name].for_values(2.0, 5)
    laws = [oracle.law(value) for value in range(oracle.k)]
    beliefs = [
        float(BEFORE * own[sent] / (BEFORE * own[sent] + (1 - BEFORE) * other[sent]))
        for own in laws
        for other in laws
        for sent in own
    ]
    stated = most_believed(Privacy(epsilon=2.0, epsilon_exact=oracle.epsilon))
    assert max(beliefs) <= stated
    assert max(beliefs) == pytest.approx(stated, rel=1e-9 if name == "grr" else 0.2)


def test_whoever_can_know_the_truth_is_listed_with_it() -> None:
    seeded = replace(ON_DEVICES, on_devices=False, seeded=True)
    known = [actor.who for actor in list_actors(seeded, is_scored=True) if actor.believes == 1.0]
    assert known == ["Anyone with the seed", "The scoring"]
    totals = list_actors(replace(seeded, form="totals"), is_scored=False)
    assert next(actor for actor in totals if actor.who == "The curator").believes == 1.0


def test_the_table_is_a_page_and_json_that_say_the_same() -> None:
    files = write_actors(ON_DEVICES, "weekly", is_scored=False)
    assert set(files) == {"actors.html", "actors.json"}
    content, page = json.loads(files["actors.json"]), read(files["actors.html"].decode())
    rows = [[cell.text for cell in row.children] for row in page.first("tbody").every("tr")]
    assert [row[:3] for row in rows] == [
        [actor["who"], actor["sees"], actor["keeps"]] for actor in content["actors"]
    ]
    assert [row[3] for row in rows] == ["–"] + ["7.0 %"] * 4
    assert content["belief_before"] == 0.01
    assert [set(actor) for actor in content["actors"]] == [{"who", "sees", "keeps", "believes"}] * 5
