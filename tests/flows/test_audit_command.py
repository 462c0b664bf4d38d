"""`ldptree audit`: the table, the JSON object, and what the command exits with."""

import json
import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from flows.command.audit import EVERY, _gone_through
from flows.command.main import main
from ldptree import serialize
from ldptree.client import Client
from ldptree.mechanisms.oracles.grr import Grr


@pytest.fixture
def typed(capsys):
    """What an audit exits with and prints: (code, standard output, standard error)."""

    def type_in(*words):
        with pytest.raises(SystemExit) as end:
            main(["audit", *map(str, words)])
        shown = capsys.readouterr()
        return end.value.code, shown.out, shown.err

    return type_in


def test_every_mechanism_that_holders_may_use_is_audited_together(typed):
    code, out, _ = typed("all", "--epsilon", 1, "--reports", 2000, "--seed", 1, "--json")
    found = json.loads(out)
    assert code == 0
    assert found["stands"]
    assert [one["name"] for one in found["audits"]] == list(EVERY)
    assert {
        "grr",
        "sue",
        "oue",
        "ss",
        "olh",
        "discrete_laplace",
        "randomized_response",
        "signed_subset",
    } <= set(EVERY)
    assert "number_response" in EVERY
    assert not {"laplace", "number_laplace"} & set(EVERY)


def test_a_client_is_judged_by_its_answers_for_one_made_up_row(typed, tmp_path):
    vector = json.loads((Path(__file__).parents[2] / "docs/client/vectors.json").read_text())[0]
    text, answer = serialize.canonical(vector["protocol"]), vector["answers"][0]
    client = Client(text, max_epsilon=64.0, lifetime_epsilon=1000.0, memory={})
    lines = [client.report(answer["row"], answer["label"], holder=f"{i}").to_json() for i in range(1000)]
    (tmp_path / "protocol.json").write_text(text)
    (tmp_path / "answers.jsonl").write_text("\n".join(lines))
    words = (tmp_path / "protocol.json", "--seed", 1, "--reports", tmp_path / "answers.jsonl", "--row")
    row = json.dumps(answer["row"] | {"paid": answer["label"]})
    code, out, _ = typed(*words, row)
    assert code == 0
    assert "1,000 answers" in out
    assert "nothing is wrong. An honest client is blamed once in 10,000 tests" in out
    (tmp_path / "answers.jsonl").write_text("\n".join([*lines, *lines[:2]]))
    code, out, _ = typed(*words, row, "--json")
    verdict = json.loads(out)
    assert (code, verdict["is_honest"]) == (4, False)
    assert verdict["impossible"] == {"under an id that was there before": 2}
    code, out, _ = typed(*words, json.dumps(answer["row"] | {"paid": "card"}))
    assert code == 4
    assert "does not follow the law" in out
    assert not re.search(r"chance 0\b|1 other ways", out)
    for wrong, message in (
        ((*words, "[]"), "--row: give the row and its label as JSON"),
        ((*words, "{}"), "the row has no 'paid'"),
        ((words[0], "--row", row), "--row: name the file of a client's answers too"),
        ((words[0], "--row", row, "--reports", "nowhere"), "--reports nowhere: no such file"),
        (("grr", "--row", row, "--reports", words[4]), "audit grr: no such file"),
        (("grr", "--epsilon", 1, "--reports", "answers.jsonl"), "a file of answers goes with --row"),
        (("grr",), "--epsilon: say what is claimed"),
        (words[:5], f"--reports {words[4]}: a whole number above 0; a file of answers goes with --row"),
        ((*words, row, "--shuffled"), "--shuffled: computed of a mechanism, without reports"),
        ((*words[:5], "--shuffled"), "--shuffled: computed of a mechanism, without reports"),
    ):
        code, _, err = typed(*wrong)
        assert message in err
        assert code in {2, 3}


def test_a_label_may_be_a_number(typed):
    words = ("--epsilon", 1, "--cells", 1, "--reports", 2000, "--seed", 1, "--json")
    for mechanism, label, name, k in (
        ("randomized_response", "class", "randomized_response", 3),
        ("randomized_response", "number", "number_response", 257 + 1),
        ("number_response", "class", "number_response", 257 + 1),
        ("oue", "number", "oue", 5 + 1),
        ("discrete_laplace", "number", "discrete_laplace", 3),
        ("signed_subset", "number", "signed_subset", 3),
    ):
        classes = 5 if mechanism == "oue" else 2
        code, out, _ = typed(mechanism, "--label", label, "--classes", classes, *words)
        (one,) = json.loads(out)["audits"]
        assert (code, one["name"], one["k"]) == (0, name, k)
    code, out, _ = typed("laplace", "--label", "number", "--epsilon", 1, "--reports", 20_000, "--seed", 1)
    assert code == 4
    assert "number_laplace: the claim is beaten" in out
    code, _, err = typed("oue", "--label", "text", "--epsilon", 1)
    assert code == 2
    assert "--label text: must be class or number" in err


def test_signed_subsets_are_audited_where_there_are_two_classes(typed):
    words = ("--epsilon", 1, "--cells", 1, "--reports", 1000, "--seed", 1, "--json")
    code, _, err = typed("signed_subset", "--classes", 3, *words)
    assert code == 2
    assert 'signed_subset: 3 classes; it is for two. Use mechanism = "auto"' in err
    code, out, _ = typed("all", "--classes", 3, *words)
    assert code == 0
    assert [one["name"] for one in json.loads(out)["audits"]] == [
        name for name in EVERY if name != "signed_subset"
    ]


@pytest.mark.parametrize(("mechanism", "is_gone_through"), [("grr", True), ("laplace", False)])
def test_the_footnote_says_of_what_every_output_was_gone_through(typed, mechanism, is_gone_through):
    _, out, _ = typed(mechanism, "--epsilon", 1, "--reports", 2000, "--seed", 1)
    table, _, footnote = " ".join(out.split()).partition("Claim, exact and at least")
    assert ("every output was gone through" in footnote.lower()) == is_gone_through
    assert ("no output was gone through" in footnote.lower()) == ("not gone through" in table)


def test_a_footnote_of_some_gone_through_and_some_not_speaks_of_both():
    told = _gone_through([SimpleNamespace(exact=object()), SimpleNamespace(exact=None)])
    assert told.startswith("Where cells are stated, every output was gone through")
    assert "Elsewhere no output was gone through" in told


def test_a_claim_that_is_beaten_has_an_exit_code_of_its_own(typed):
    words = ("laplace", "--epsilon", 1, "--reports", 20_000, "--seed", 1)
    code, out, _ = typed(*words)
    assert code == 4
    assert "laplace: the claim is beaten" in out
    assert "without bound" in out
    code, out, _ = typed(*words, "--json")
    assert code == 4
    (one,) = json.loads(out)["audits"]
    assert one["bounds"][0]["kind"] == "floating-point grid"
    assert one["influence"]["one"] is None  # infinity, which JSON has not


def test_the_table_says_claim_bound_size_and_what_dishonest_holders_move(typed, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    code, out, _ = typed(
        "oue", "--epsilon", 1, "--cells", 40, "--reports", 5000, "--seed", 2, "--holders", 2000
    )
    assert code == 0
    assert "5 of 5 cells" in out
    assert "81 totals by 4.3" in out
    assert "20 of 2,000" in out
    assert max(map(len, out.splitlines())) <= 80
    assert "beaten" not in out


def test_too_few_reports_to_beat_a_claim_are_told(typed):
    code, out, _ = typed("grr", "--epsilon", 8, "--reports", 1000, "--seed", 3)
    assert code == 0
    assert "ask for more" in " ".join(out.split())


def test_the_same_seed_audits_the_same_reports(typed):
    words = ("ss", "--epsilon", 1, "--reports", 1000, "--json", "--seed")
    assert typed(*words, 4) == typed(*words, 4)
    assert typed(*words, 4) != typed(*words, 5)


def test_a_mechanism_that_nobody_knows_is_answered_with_the_nearest_name(typed):
    code, _, err = typed("laplas", "--epsilon", 1)
    assert code == 2
    assert 'did you mean "laplace"?' in err
    code, _, err = typed("oue", "--epsilon", -1)
    assert code == 2
    assert "must be from" in err


@pytest.mark.parametrize("epsilon", [65, "inf", "nan", 0, -1, 9e-7])
def test_an_epsilon_outside_the_limits_is_refused(typed, epsilon):
    code, out, err = typed("grr", "--epsilon", epsilon)
    assert (code, out) == (2, "")
    assert f"--epsilon {epsilon}: must be from 1e-06 to 64" in err


@pytest.mark.parametrize("epsilon", [1e-6, 64])
def test_the_limits_of_epsilon_are_audited(typed, epsilon):
    assert typed("all", "--epsilon", epsilon, "--cells", 1, "--reports", 2000, "--seed", 6)[0] == 0


def test_a_mechanism_made_for_more_than_was_asked_for_is_beaten(typed, monkeypatch):
    original = Grr.for_budget.__func__
    monkeypatch.setattr(Grr, "for_budget", classmethod(lambda cls, e, L, C: original(cls, 2 * e, L, C)))
    words = ("grr", "--epsilon", 1, "--reports", 1000, "--seed", 1)
    code, out, _ = typed(*words)
    assert code == 4
    assert "it states epsilon 2, the claim is 1" in " ".join(out.split())
    code, out, _ = typed(*words, "--json")
    (one,) = json.loads(out)["audits"]
    assert (code, one["claim"], one["stated"], one["is_beaten"]) == (4, 1, 2, True)


@pytest.mark.parametrize(("epsilon", "by_reports"), [(1, True), (8, False)])
def test_a_value_that_is_never_randomised_is_beaten_by_its_law_and_by_its_reports(
    typed, monkeypatch, epsilon, by_reports
):
    original = Grr.randomize

    def leaking(self, values, source):
        reports = original(self, values, source)
        reports[np.asarray(values) == 6] = 6
        return reports

    monkeypatch.setattr(Grr, "randomize", leaking)
    code, out, _ = typed(
        "grr", "--epsilon", epsilon, "--cells", 8, "--reports", 100_000, "--seed", 1, "--json"
    )
    (one,) = json.loads(out)["audits"]
    assert code == 4
    assert one["exact"]["misfit"]["value"] == 6
    assert "its reports of value 6 do not follow its law" in one["faults"]
    assert (one["empirical"] > epsilon) == by_reports


def test_more_values_than_can_be_audited_are_refused_with_both_numbers(typed):
    code, _, err = typed("oue", "--epsilon", 1, "--cells", 99_999_999)
    assert code == 2
    assert "99,999,999 cells x 2 classes are 199,999,998 values; at most 4,096 are audited" in err
    code, _, err = typed("oue", "--epsilon", 1, "--reports", 10**12)
    assert code == 2
    assert "at most 10,000,000" in err


def test_shuffled_reports_have_a_smaller_epsilon_with_its_conditions(typed):
    words = ("--epsilon", 2, "--cells", 8, "--shuffled", "--holders", 100_000, "--delta", 1e-8)
    code, out, _ = typed("signed_subset", *words, "--json")
    shown = json.loads(out)["shuffled"]
    assert code == 0
    assert 0.9 * shown["epsilon"] < shown["at_least"] < shown["epsilon"] < 0.05
    code, out, _ = typed("signed_subset", *words)
    assert f"{shown['epsilon']:.3g} among 100,000 shuffled ones, at delta 1e-08" in out
    assert "removes who sent them and when" in out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("all", "--epsilon", 1), 'mechanism "all" is none of'),
        (("discrete_laplace", "--epsilon", 1), "take grr, oue, sue or ss"),
        (("grr",), "--epsilon: say what is claimed"),
        (("grr", "--epsilon", 1, "--delta", 2), "a delta between 0 and 1"),
        (("grr", "--epsilon", 1, "--holders", 1), "2 holders or more"),
    ],
)
def test_what_cannot_be_shuffled_is_refused(typed, words, message):
    code, out, error = typed(*words, "--shuffled")
    assert (code, out) == (2, "")
    assert message in error
