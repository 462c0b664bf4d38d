"""The terms of a run. A campaign keeps to those that its first run published (see `storage.ledger.campaigns`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

from schemas.config import RunConfig
from schemas.dataset import DatasetSpec
from schemas.manifest import Manifest, Record
from storage.holders.holder_names import check_name_type
from storage.ledger.campaigns import Campaign, Joining, check_known, check_terms, file_of
from storage.ledger.lost_parts import check_state
from storage.store import Store
from tasks.artifacts import check_whole
from tasks.data import source
from tasks.perturb import Form, form

NOT_TERMS = {
    "path",
    "rows",
    "title",
    "question",
    "noun",
    "nouns",
    "names",
    "unit",
    "units",
    "label",
    "on_bad_rows",
    "expect",
    "release_checks",
    "types",
    "new_people",
}
"""Settings of a data set that later runs of a campaign may change, on where rows come from and how faults are met."""


@dataclass(frozen=True)
class Terms:
    """The terms of one run. Without a campaign nothing is fixed before it, and nothing is kept after.

    known       the files that the campaign had asked when this run began to look, by name.
    written     the configuration before a campaign's first run told what it leaves open; None where that is `config`.
    why_chosen  why this family learns, where the configuration names none.
    """

    config: RunConfig
    dataset: DatasetSpec
    protocol: Manifest | None
    campaign: Campaign | None
    known: Mapping[str, str] = field(default_factory=dict)
    written: RunConfig | None = None
    why_chosen: str = ""

    @classmethod
    def of(cls, store: Store, config: RunConfig) -> Terms:
        """The terms of a run.

        Raises:
            ArtifactCorrupt: what is kept of who was asked was lost, or is older than another part of it.
            ProtocolMismatch: the campaign was published on other terms.
        """
        check_state(store)
        if config.campaign.name is None:
            return cls(config, config.dataset, None, None)
        campaign = Campaign(store, config.campaign.name)
        known = campaign.asked()  # before anything else is looked at
        frozen = campaign.frozen()
        if frozen is None:
            return cls(config, config.dataset, None, campaign, known)
        campaign.reports()  # readable, before anybody is charged
        types, written = frozen.terms["types"], config
        config = config.as_published(frozen.terms)
        check_terms(campaign.name, frozen.terms, _terms(config, types, frozen.terms.get("holder_type")))
        if "holder_type" in frozen.terms:
            # What names are is told from each file anew, so that another type is seen (`check_names`).
            types = {name: kind for name, kind in types.items() if name != config.dataset.holder}
            types |= {n: k for n, k in config.dataset.types.items() if n == config.dataset.holder}
        data = config.dataset.model_copy(update={"types": types})
        why = "" if config.model == written.model else "the campaign's first run chose it"
        return cls(config, data, frozen.protocol, campaign, known, written, why)

    def with_inferred(self, ingested: Record) -> Terms:
        """The same with what ingest tells from public rows where it is not said."""
        label = self.config.label or ingested.facts["label"]
        config, why = self.config.with_inferred(label, ingested["public"].rows)
        data = self.dataset.model_copy(update={"label": config.dataset.label})
        return replace(self, config=config, dataset=data, why_chosen=why or self.why_chosen)

    def check_names(self, ingested: Record) -> None:
        """Raises ProtocolMismatch where holders have names of another type than when the campaign was published."""
        frozen = self.campaign.frozen() if self.campaign else None
        if frozen is None or self.campaign is None or "holder_type" not in frozen.terms:
            return
        holder, known = self.dataset.holder, frozen.terms["holder_type"]
        check_name_type(holder, ingested.facts["holder_type"], known, f"campaign {self.campaign.name!r}")

    def in_order(self, raw: Manifest) -> Manifest:
        """The raw files, those asked before first. Raises BudgetError where one of them changed, or may hold the same people."""
        if self.campaign is None:
            return raw
        digests = {entry.name: entry.digest for entry in raw.files}
        self.campaign.check_files(digests, takes_more=self.dataset.holder != "row" or self.dataset.new_people)
        order = self.campaign.in_order(digests)
        return source.in_order(self.campaign.store, raw, order)

    def count_earlier(self, raw: Manifest) -> int:
        """Return the reports that the campaign had received before a run of these files asked anybody."""
        return self.campaign.count_earlier(entry.digest for entry in raw.files) if self.campaign else 0

    def asked_before(self, raw: Manifest) -> Sequence[str]:
        """Keyed digests of files that earlier runs asked and this one does not name."""
        if self.campaign is None:
            return []
        now = {entry.digest for entry in raw.files}
        return [digest for digest in self.known.values() if digest not in now]

    def joining(self, raw: Manifest, ingested: Record, held: Record, published: Record) -> Joining | None:
        """Return what is kept with the charge of a run in a campaign: the terms if it is the first, and its files."""
        if self.campaign is None:
            return None
        before = self.campaign.frozen()
        names = ingested.facts.get("holder_type") if before is None else before.terms.get("holder_type")
        files = self.campaign.store.files(held["answers"])
        return Joining(
            campaign=self.campaign.name,
            protocol=self.protocol or published["question"],
            terms=_terms(self.config, ingested.facts["types"], names),
            form=self.form(held, published),
            digests={entry.name: entry.digest for entry in raw.files},
            answers=[path for path in files if path.suffixes == [".npy"]],
            known=self.known,
        )

    def check_known(self) -> None:
        """Raises AskedSince where another run of the campaign has published, or asked files, since these terms were read."""
        if self.campaign is not None:
            check_known(self.campaign.asked(), self.known)

    def form(self, held: Record, published: Record) -> Form:
        """Return whether reports are written, or totals alone drawn; in a campaign as in its first run, however many holders
        come.
        """
        frozen = self.campaign.frozen() if self.campaign else None
        if frozen is not None:
            return cast("Form", frozen.form)
        return form(
            held.facts["n_private"], published.facts["report_bytes"], self.config.privacy.max_report_bytes
        )

    def received(self, reports: Sequence[Record]) -> list[Manifest]:
        """Return every file of reports to aggregate. A campaign adds those of its earlier runs to this run's.

        Raises ArtifactCorrupt where an earlier one is no longer what was received.
        """
        by_file = {file_of(record["reports"]): record["reports"] for record in reports}
        if self.campaign is not None:
            # This run's own were looked at when they were drawn or found.
            earlier = {file_of(m): m for m in self.campaign.reports() if file_of(m) not in by_file}
            check_whole(self.campaign.store, list(earlier.values()))
            by_file |= earlier
        return sorted(by_file.values(), key=lambda report: (report.digest, file_of(report)))


def _terms(config: RunConfig, types: dict[str, Any], names: str | None) -> dict[str, Any]:
    """Return the terms of a configuration. `names` is the type of holders' names, or None if rows are holders."""
    dataset = config.dataset.model_dump(mode="json", exclude=NOT_TERMS)
    # The ledger keeps the lifetime cap: it binds whoever is asked, whatever they are asked, and may be lowered.
    privacy = config.privacy.model_dump(mode="json", exclude={"lifetime_epsilon", "max_released_checks"})
    return {
        **{f"dataset.{key}": value for key, value in dataset.items()},
        **{f"privacy.{key}": value for key, value in privacy.items()},
        "model.estimator": config.model.estimator,
        **config.campaign_terms(),
        "seed": config.seed,
        "evaluate": config.evaluate,
        "simulation.noise_seed": config.simulation.noise_seed,
        "types": types,
        **({} if names is None else {"holder_type": names}),
    }
