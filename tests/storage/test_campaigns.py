"""A campaign's protocol and terms are fixed by whoever is first, and nobody is asked twice."""

from __future__ import annotations

import threading
from dataclasses import replace

import numpy as np
import pytest
from chain import join_campaign

from ldptree.errors import ArtifactCorrupt, BudgetError, ProtocolMismatch
from ldptree.protocol.ledger import Charge, Names
from schemas.manifest import FileEntry, MadeBy, Manifest
from storage.ledger.accounts import Account
from storage.ledger.campaigns import AskedSince, Campaign, Joining, check_terms
from storage.ledger.database import Database
from storage.ledger.schema import CAMPAIGNS, CHARGES, FILES, PEOPLE
from storage.store import Store

MADE = MadeBy(step="partition", version="1", parameters={}, inputs={})


def manifest(digest: str) -> Manifest:
    entry = FileEntry(name="protocol.json", digest=digest)
    return Manifest(zone="curator", path=f"curator/x/{digest}", digest=digest, files=(entry,), made_by=MADE)


def test_nothing_is_frozen_before_the_first_run_publishes(store):
    campaign = Campaign(store, "trips")
    assert campaign.frozen() is None
    assert (campaign.reports(), campaign.asked(), campaign.answered(["a"]).size) == ([], {}, 0)


def join(store, digests, answers=(), *, protocol="aa", **other):
    """Join the campaign "trips" as a run does."""
    join_campaign(store, "trips", digests, answers, protocol=manifest(protocol), **other)


def test_what_the_first_run_published_holds_for_all_later_ones(store):
    terms = {"privacy.epsilon": 1.0, "levels": (1, 2)}
    join(store, {}, terms=terms)
    first = Campaign(store, "trips").frozen()
    join(Store(store.root), {}, terms=terms, form="totals")
    with pytest.raises(AskedSince):
        join(store, {"may.csv": "d1"}, protocol="bb", terms=terms)
    assert Campaign(Store(store.root), "trips").frozen() == first
    assert first.form == "reports"
    with pytest.raises(ProtocolMismatch, match=r"another levels, privacy\.epsilon"):
        join(store, {"may.csv": "d1"}, protocol="bb", terms={"privacy.epsilon": 2.0})
    assert first.protocol == manifest("aa")
    assert Campaign(store, "trips").asked() == {}
    assert Campaign(store, "others").frozen() is None


def test_of_many_that_publish_at_once_all_follow_one(store):
    found, gate = [], threading.Barrier(6)

    def publish(number):
        gate.wait()
        try:
            join(store, {f"{number}.csv": "d"}, protocol=f"{number:02d}", known={})
        except AskedSince:
            found.append(number)

    threads = [threading.Thread(target=publish, args=(i,)) for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (first,) = {*range(6)} - {*found}
    campaign = Campaign(store, "trips")
    assert campaign.frozen().protocol == manifest(f"{first:02d}")
    assert campaign.asked() == {f"{first}.csv": "d"}


def test_what_a_campaign_keeps_is_committed_with_the_charge_or_not_at_all(store, tmp_path):
    """A charge that is refused, and one that ends in the middle, leave no terms and no file behind."""
    campaign, account = Campaign(store, "trips"), Account(store, None)
    asked = Charge(question="one", epsilon=2.0, who=Names([5]))
    joining = Joining(
        campaign="trips",
        protocol=manifest("aa"),
        terms={},
        form="reports",
        digests={"may.csv": "d1"},
        answers=answers(tmp_path / "a", d1=[5]),
        known={},
    )
    with pytest.raises(BudgetError):
        account.charge([asked], 1.0, joining=joining)
    bad = replace(
        joining, answers=[tmp_path / "a" / "d1.npy"], digests={"may.csv": "d1", "june.csv": "d2"}, form=None
    )
    with pytest.raises(ArtifactCorrupt):
        Account(store, 5).charge([asked], None, joining=bad)
    assert (campaign.frozen(), campaign.asked(), len(account.read())) == (None, {}, 0)
    Account(store, 5).charge([asked], None, joining=joining)
    assert campaign.asked() == {"may.csv": "d1"}
    with Database(store.objects).reading() as kept:
        numbers = {
            row.transaction for table in (CAMPAIGNS, FILES, CHARGES, PEOPLE) for row in kept.rows(table)
        }
    assert len(numbers) == 1


def test_a_run_on_other_terms_is_refused_with_the_names_of_what_changed(store):
    join(store, {}, terms={"privacy.epsilon": 1.0, "seed": 7, "dataset.drop": ("a",)})
    published = Campaign(store, "trips").frozen().terms
    check_terms("trips", published, {"dataset.drop": ["a"], "seed": 7, "privacy.epsilon": 1.0})
    with pytest.raises(
        ProtocolMismatch, match=r"another privacy\.epsilon, seed\. Its terms are fixed"
    ) as fault:
        check_terms("trips", published, {"privacy.epsilon": 2.0, "seed": 8, "dataset.drop": ("a",)})
    assert fault.value.exit_code == 5
    with pytest.raises(ProtocolMismatch, match=r"another dataset\.drop, extra"):
        check_terms(
            "trips", published, {"privacy.epsilon": 1.0, "seed": 7, "extra": 3, "dataset.drop": ["b"]}
        )


def test_a_file_that_changed_after_it_was_asked_is_refused_before_anyone_is_asked_again(store):
    campaign = Campaign(store, "trips")
    join(store, {"may.csv": "d1"})
    campaign.check_files({"may.csv": "d1", "june.csv": "d2"})
    with pytest.raises(BudgetError, match=r"may\.csv: changed since") as fault:
        campaign.check_files({"may.csv": "d9"})
    assert fault.value.exit_code == 4


def test_a_file_beside_those_of_the_first_run_is_refused_where_a_campaign_takes_no_more(store):
    campaign = Campaign(store, "trips")
    campaign.check_files({"may.csv": "d1", "june.csv": "d2"}, takes_more=False)
    join(store, {"may.csv": "d1"})
    campaign.check_files({"may.csv": "d1", "copy.csv": "d1"}, takes_more=False)
    campaign.check_files({"june.csv": "d2"})
    with pytest.raises(BudgetError, match=r"june\.csv: campaign 'trips' asked another file before"):
        campaign.check_files({"may.csv": "d1", "june.csv": "d2"}, takes_more=False)


def test_files_asked_before_come_first_in_the_order_they_were_asked(store):
    campaign = Campaign(store, "trips")
    join(store, {"may.csv": "d1"})
    join(store, {"may.csv": "d1", "april.csv": "d2"})
    assert campaign.asked() == {"may.csv": "d1", "april.csv": "d2"}
    assert campaign.in_order({"april.csv": "d2", "june.csv": "d3", "may.csv": "d1"}) == [
        "may.csv",
        "april.csv",
        "june.csv",
    ]


def answers(folder, **holders):
    folder.mkdir(exist_ok=True)
    for digest, values in holders.items():
        np.save(folder / f"{digest}.npy", np.array(values, np.uint64))
    return [folder / f"{digest}.npy" for digest in holders]


def test_who_answered_is_kept_once_a_file(store, tmp_path):
    campaign = Campaign(store, "trips")
    join(store, {"may.csv": "d1"}, answers(tmp_path / "a", d1=[5, 1]))
    join(store, {"may.csv": "d1", "june.csv": "d2"}, answers(tmp_path / "b", d1=[9], d2=[5, 7]))
    assert campaign.answered(["d1"]).tolist() == [1, 5]
    assert campaign.answered(["d1", "d2", "unknown"]).tolist() == [1, 5, 7]


def test_a_run_that_did_not_know_of_files_asked_since_keeps_nothing(store, tmp_path):
    campaign = Campaign(store, "trips")
    known = campaign.asked()
    join(store, {"may.csv": "d1"}, answers(tmp_path / "a", d1=[5]), known=known)
    for digests in ({"june.csv": "d2"}, {"june.csv": "d2", "may.csv": "d1"}):
        with pytest.raises(AskedSince):
            join(store, digests, answers(tmp_path / "b", d2=[5]), known=known)
    assert campaign.asked() == {"may.csv": "d1"}
    assert campaign.answered(["d2"]).size == 0


def test_reports_received_are_kept_once_each(store):
    campaign = Campaign(store, "trips")
    twin = manifest("aa").model_copy(update={"path": "curator/x/twin"})
    campaign.add_reports([manifest("bb"), manifest("aa"), manifest("bb")])
    campaign.add_reports([twin, manifest("aa")])
    found = Campaign(Store(store.root), "trips").reports()
    assert sorted((report.path, report.digest) for report in found) == [
        ("curator/x/aa", "aa"),
        ("curator/x/bb", "bb"),
        ("curator/x/twin", "aa"),
    ]


def test_who_answered_and_which_files_were_asked_stays_with_the_holders(store, tmp_path):
    campaign = Campaign(store, "trips")
    join(store, {"may.csv": "digest-of-may"}, answers(tmp_path / "a", **{"digest-of-may": [5]}))
    campaign.add_reports([manifest("cc")])
    curator = b"".join(p.read_bytes() for p in (store.root / "curator").rglob("*") if p.is_file())
    assert b"may.csv" not in curator
    assert b"digest-of-may" not in curator
