"""`ldptree init` proposes as public who plainly consented, and nobody who refused, was only asked, or consented to less."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from test_init_columns import LABEL, NUMBER, RNG, N, first_look

from flows.command.init import init
from schemas.config import load
from tasks.first_look.public_rules import propose_rules
from tasks.first_look.values import look

ANSWERS = {
    # what people answered in a column called consent, and the rule that is proposed
    "Granted Denied Denied Pending": "= 'Granted'",
    "Yes yes No": "lower(trim({})) = 'yes'",
    "ja JA nein": "lower(trim({})) = 'ja'",
    "erteilt verweigert": "= 'erteilt'",
    "Oui Non": "= 'Oui'",
    "Rouge Vert": "",
    "I agree that you publish my answers|I do not agree": "= 'I agree that you publish my answers'",
    "Ich stimme nicht zu|Ich stimme zu": "= 'Ich stimme zu'",
    "I am happy for my answers to be shared|No": "= 'I am happy for my answers to be shared'",
    "Authorized under HIPAA|Declined": "= 'Authorized under HIPAA'",
    "Yes, I consent to treatment only|I do not consent": "",
}
CONSENT = (
    "consenso dati",
    "samtykke",
    "Einwilligung",
    "toestemming",
    "hasConsent",
    "gdpr_ok",
    "May we use your data?",
)
OTHER = ("public transport", "disagree", "open_accounts", "publisher", "according_to_nurse")
REFUSED = (
    *("consent_withdrawn", "no_consent", "noConsent", "nonconsent", "Did not consent", "opt_in_refused"),
    *("withheld_permission", "Einwilligung widerrufen", "consentimiento_denegado", "consentement retiré"),
    *("consent_missing", "consent_to_contact_only", "consent_requested", "opt-in pending", "consent expired"),
    *("agreed (not)", "sem consentimento", "geen toestemming"),
)
GROUPS = ("Panel", "Kohorte", "Sociét\u00e9", "Fuente", "Azienda", "Vestiging")


@pytest.fixture(scope="module")
def seen(tmp_path_factory):
    """A look at one file with a column of each of these."""
    folder = tmp_path_factory.mktemp("public")
    columns = {
        f"consent {i}": RNG.choice(said.split("|" if "|" in said else None), N)
        for i, said in enumerate(ANSWERS)
    }
    columns |= {name: RNG.choice(["ja", "nej"], N) for name in CONSENT}
    columns |= {name: RNG.choice(["yes", "no"], N) for name in (*OTHER, *REFUSED)}
    columns |= {name: np.where(np.arange(N) % 4, "new", "old") for name in GROUPS}
    pl.DataFrame(columns | {"number": NUMBER, "y": LABEL}).write_csv(folder / "rows.csv")
    return look(folder / "rows.csv", target="y", public=None)


def proposed(seen, name):
    """The rules that a column makes for itself."""
    return [one.rule for one in propose_rules([seen.column(name)], seen.texts, "y")]


@pytest.mark.parametrize(("number", "said"), enumerate(ANSWERS))
def test_those_who_plainly_consented_are_proposed_as_public(seen, number, said):
    rule = ANSWERS[said]
    column = f'"consent {number}"'
    assert proposed(seen, f"consent {number}") == [
        rule.format(column) if "{}" in rule else f"{column} {rule}"
    ] * bool(rule)


@pytest.mark.parametrize("name", CONSENT)
def test_consent_is_found_by_its_name_in_other_languages(seen, name):
    (rule,) = proposed(seen, name)
    assert rule.endswith("= 'ja'")


@pytest.mark.parametrize("name", OTHER)
def test_a_name_in_which_a_word_of_consent_stands_for_something_else_is_no_consent(seen, name):
    assert proposed(seen, name) == []


@pytest.mark.parametrize("name", REFUSED)
def test_those_who_refused_or_were_only_asked_are_never_proposed_as_public(seen, name):
    assert proposed(seen, name) == []


@pytest.mark.parametrize("name", GROUPS)
def test_a_group_is_proposed_as_public_in_other_languages(seen, name):
    (rule,) = proposed(seen, name)
    assert rule.endswith(" = 'old'")


def test_of_rows_that_consented_it_is_asked_to_what_and_no_feature_is_made_of_their_column(tmp_path):
    out, said = first_look(
        tmp_path, consent=RNG.choice(["Yes", "yes", "No"], N), Panel=RNG.choice(["a", "b"], N)
    )
    assert load(out).dataset.public == said["public"] == "lower(trim(consent)) = 'yes'"
    assert not load(out).dataset.derive
    assert "read in the clear: did they agree to that?" in out.read_text()
    held = pl.read_csv(tmp_path / "rows.csv")["consent"].str.to_lowercase()
    assert 0 < (held == "yes").sum() < N


def test_a_group_is_a_proposal_that_terminal_and_file_show_and_nobodys_consent(tmp_path, capsys):
    out, said = first_look(tmp_path, source=RNG.choice(["register", "vendor"], N, p=[0.2, 0.8]))
    assert load(out).dataset.public == said["public"] == "random 0.25"
    assert [one["rule"] for one in said["public_proposals"]] == ["source = 'register'"]
    init(tmp_path / "rows.csv", target="y", public=None, out=out, force=True, ask=False, as_json=False)
    assert "or source = 'register'   (one of 2, " in capsys.readouterr().out


def test_what_a_target_is_measured_in_is_written_too(tmp_path):
    prices = [f"£{one:,}" for one in np.random.default_rng(1).integers(900, 900_000, N)]
    out, said = first_look(tmp_path, y=prices)
    assert said["label"] == "number"
    assert load(out).dataset.unit == "£"
