"""`ldptree audit`: the table, the picture, the JSON object, and what the command exits with."""

import json
import xml.etree.ElementTree as ET

import pytest

from flows.audit import EVERY
from flows.cli import main


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
    assert {"grr", "sue", "oue", "ss", "olh", "discrete_laplace", "randomized_response"} <= set(EVERY)
    assert "laplace" not in EVERY


def test_a_claim_that_is_beaten_has_an_exit_code_of_its_own(typed, tmp_path):
    picture = tmp_path / "audit.svg"
    words = ("laplace", "--epsilon", 1, "--reports", 20_000, "--seed", 1, "--picture", picture)
    code, out, _ = typed(*words)
    assert code == 4
    assert "laplace: the claim is beaten" in out
    assert "without bound" in out
    text = "".join(ET.parse(picture).getroot().itertext())
    assert "laplace BEATEN" in text
    assert "floating-point grid" in text
    code, out, _ = typed(*words, "--json")
    assert code == 4
    assert json.loads(out)["audits"][0]["influence"]["one"] is None  # infinity, which JSON has not


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
    assert "positive" in err
