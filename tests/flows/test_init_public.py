"""`ldptree init` proposes as public who plainly consented, and nobody who refused, was only asked, or consented to less."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from first_fast import first_fast
from test_init_columns import RNG, N, first_look

from flows.command.init import init
from schemas.config import load

CONSENTED = {
    "Granted Denied Denied Pending": "consent = 'Granted'",
    "Yes yes No": "lower(trim(consent)) = 'yes'",
    "ja JA nein": "lower(trim(consent)) = 'ja'",
    "erteilt verweigert": "consent = 'erteilt'",
    "Oui Non": "consent = 'Oui'",
    "Rouge Vert": "random 0.25",
    "I agree that you publish my answers|I do not agree": "consent = 'I agree that you publish my answers'",
    "Ich stimme nicht zu|Ich stimme zu": "consent = 'Ich stimme zu'",
    "I am happy for my answers to be shared|No": "consent = 'I am happy for my answers to be shared'",
    "Authorized under HIPAA|Declined": "consent = 'Authorized under HIPAA'",
    "Yes, I consent to treatment only|I do not consent": "random 0.25",
}


@pytest.mark.parametrize("answers", CONSENTED)
def test_those_who_plainly_consented_are_proposed_as_public(tmp_path, capsys, answers):
    out, said = first_look(
        tmp_path, capsys, consent=RNG.choice(answers.split("|" if "|" in answers else None), N)
    )
    rule = CONSENTED[answers]
    assert load(out).dataset.public == rule == said["public"]
    if "consent" in rule:
        assert not load(out).dataset.derive  # of a column that tells who is public no feature is made
        held = pl.read_csv(tmp_path / "rows.csv")["consent"]
        held = held.str.to_lowercase() if "lower" in rule else held
        assert 0 < (held == rule.split("'")[1]).sum() < N


@pytest.mark.parametrize(
    "name",
    first_fast(
        "consenso dati",
        "samtykke",
        "Einwilligung",
        "toestemming",
        "hasConsent",
        "gdpr_ok",
        "May we use your data?",
    ),
)
def test_consent_is_found_by_its_name_in_other_languages(tmp_path, capsys, name):
    out, _ = first_look(tmp_path, capsys, **{name: RNG.choice(["ja", "nej"], N)})
    assert load(out).dataset.public.endswith("= 'ja'")


@pytest.mark.parametrize(
    "name", first_fast("public transport", "disagree", "open_accounts", "publisher", "according_to_nurse")
)
def test_a_name_in_which_a_word_of_consent_stands_for_something_else_is_no_consent(tmp_path, capsys, name):
    out, _ = first_look(tmp_path, capsys, **{name: RNG.choice(["yes", "no"], N)})
    assert load(out).dataset.public == "random 0.25"


REFUSED = (
    *(
        "consent_withdrawn",
        "no_consent",
        "noConsent",
        "nonconsent",
        "Did not consent",
        "opt_in_refused",
        "withheld_permission",
    ),
    *(
        "Einwilligung widerrufen",
        "consentimiento_denegado",
        "consentement retiré",
        "consent_missing",
        "consent_to_contact_only",
    ),
    *(
        "consent_requested",
        "opt-in pending",
        "consent expired",
        "agreed (not)",
        "sem consentimento",
        "geen toestemming",
    ),
)


@pytest.mark.parametrize("name", first_fast(*REFUSED))
def test_those_who_refused_or_were_only_asked_are_never_proposed_as_public(tmp_path, capsys, name):
    out, _ = first_look(tmp_path, capsys, **{name: RNG.choice(["yes", "no"], N)})
    assert load(out).dataset.public == "random 0.25"
    assert not any(name in line for line in out.read_text().splitlines() if "public =" in line)


def test_of_rows_that_consented_it_is_asked_to_what(tmp_path, capsys):
    first_look(tmp_path, capsys, consent=RNG.choice(["yes", "no"], N))
    assert "read in the clear: did they agree to that?" in (tmp_path / "rows.toml").read_text()


def test_the_terminal_shows_every_proposal_of_who_is_public(tmp_path, capsys):
    first_look(tmp_path, capsys, source=RNG.choice(["register", "vendor"], N, p=[0.2, 0.8]))
    data, out = tmp_path / "rows.csv", tmp_path / "rows.toml"
    init(data, target="y", public=None, out=out, force=True, ask=False, as_json=False)
    assert "or source = 'register'   (one of 2, " in capsys.readouterr().out


def test_what_a_target_is_measured_in_is_written_too(tmp_path, capsys):
    prices = [f"£{one:,}" for one in np.random.default_rng(1).integers(900, 900_000, N)]
    out, said = first_look(tmp_path, capsys, y=prices)
    assert said["label"] == "number"
    assert load(out).dataset.unit == "£"
