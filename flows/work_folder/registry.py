"""A run as a draft for the registry of differential privacy deployments (opendp/deployments-registry-data, its schema of 2026).

What the run knows is filled in. What only its owner knows is left empty, each with a comment that says what belongs there. Below
it they answer what NIST SP 800-226 ("Guidelines for Evaluating Differential Privacy Guarantees", 2025) says to evaluate.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from ldptree.errors import ConfigError, DataError
from schemas.named_files import MOST_DOCUMENT, read_fault, shown_path
from storage.formats import unstamped
from tasks.page.captions import ACTORS

OWNER = "'' # owner: "
_TEMPLATE = """\
url_slug: {slug}
deployment:
  basic:
    name: {name}
    data_curators:
      - data_curator_name: {owner}who publishes the model
        data_curator_type: {owner}Government, Industry or Nonprofit
    description: {description}
    intended_use: {owner}what the model is for
    data_product_type: Machine learning model
    data_product_region: {owner}which region the data describe, or whose law applies
    data_product_sector: {owner}Technology, Healthcare, Education, Government, Energy or Finance
    publication_date: {date}
  dp_variant:
    variant_name: Pure DP
    data_domain: {domain}
    unprotected_quantities: {unprotected}
  privacy_loss:
    privacy_unit: Person
    privacy_unit_details: {unit}
    number_of_privacy_units: {people}
    privacy_parameters:
      epsilon: {epsilon}
    privacy_parameters_details: {parameters}
  deployment_model:
    model_name: Local
    model_name_details: Each person's report is randomised before it leaves their side.
    trust_assumptions: {trust}
    actors: {actors}
    release_type: {release}
    release_type_details: {releases}
    data_source_type: {source}
    data_source_type_details: {sources}
    access_type: Non-interactive
    access_type_details: The model is published as it is. Nobody queries the data.
  implementation:
    preprocessing_and_hyperparameter_tuning: {tuning}
    mechanisms: {mechanisms}
    composition: {composition}
    post_processing: {after}
    justification: {owner}why this epsilon, and who decided
    utility: {utility}
    additional_information: {owner}papers, pages, code
  administrative:
    evidence_sources: {{}} # owner: what the statements above rest on, such as the run's page
    status: Draft
    registry_authors:
      - {owner}who fills in this entry
    tier: 3
"""
_NIST = """\
# What NIST SP 800-226 says to evaluate, from the run:
# - epsilon, delta: {epsilon} for all that a person sent, 0. {parameters}
# - unit of privacy: one person. {unit} {composition}
# - algorithms and correctness: {mechanisms} Each side recomputes epsilon, and refuses more than it agreed to; `ldptree audit`
#   tests the law of reports. Not protected: the time, memory and power that drawing them takes.
# - utility and bias: {utility} {tuning} A group with few public rows is predicted worse; the page shows each group.
# - trust: {trust}{shuffled}
# - exposure of collected data: rows stay with their people; reports are kept, and may be: each is within epsilon. {unprotected}
# - security and access control: owner: who may read the work folder, and how reports travel
"""


def draft_entry(run: Path) -> str:
    """Return the YAML of a run in a folder, by its `run.json`, `card.json` and `actors.json`.

    Raises:
        DataError: they are not there.
        ConfigError: the run was a trial, which protects nobody, or nobody has reported.
    """
    facts, card = (
        unstamped(
            _read(run / f"{kind}.json"), shown_path(run / f"{kind}.json"), kind, "Name another run's folder."
        )
        for kind in ("run", "card")
    )
    if facts["trial"] or not facts["n_private"]:
        why = "a trial protects nobody" if facts["trial"] else "nobody has reported yet"
        raise ConfigError(
            f"{shown_path(run)}: {why}, so there is nothing to register. Name the folder of a release."
        )
    fields = _fields(facts, json.loads(_read(run / "actors.json")), is_campaign=bool(card.get("campaign")))
    entry = {key: json.dumps(value, ensure_ascii=False) for key, value in fields.items()}
    return _TEMPLATE.format(owner=OWNER, **entry) + _NIST.format_map(fields)


def _read(path: Path) -> bytes:
    if (fault := read_fault(path, MOST_DOCUMENT)) is not None:
        raise DataError(
            f"{shown_path(path)}: {fault}. Name the folder of a run that learned a model, as work/runs/RUN; one that nobody had "
            "answered, or that stopped, has none."
        )
    return path.read_bytes()


def _fields(facts: dict[str, Any], actors: dict[str, Any], *, is_campaign: bool) -> dict[str, Any]:
    year, month, day = re.findall(r"-(\d{4})(\d\d)(\d\d)-\d{6}", facts["run"])[-1]
    is_of_devices = ACTORS["device"][0] in {each["who"] for each in actors["actors"]}
    kept = "on their device" if is_of_devices else "in a ledger"
    by = actors.get("shuffler")
    scores = ", ".join(f"{name} {value:.4g}" for name, value in facts["metrics"].items())
    return {
        "slug": re.sub(r"[^a-z0-9]+", "-", facts["name"].lower()).strip("-"),
        "name": facts["name"],
        "description": f"A model that predicts {facts['row_format']['target']}. {facts['finding']}",
        "date": f"{year}-{month}-{day}",
        "domain": f"One row a person, with {facts['n_features']} encoded columns and a label.",
        "unprotected": "Public rows, the number of reports, and who takes part.",
        "unit": "Any two rows that one person could have, label included.",
        "people": facts["n_private"],
        "epsilon": facts["epsilon_spent"],
        "parameters": f"Recomputed from the integers of the protocol: {facts['epsilon_exact']:.6g} for one report.",
        "trust": "None in the curator. People trust the software and the random bits of their own side.",
        "actors": "\n".join(
            f"{each['who']} sees: {each['sees']}; and keeps it: {each['keeps']}." for each in actors["actors"]
        ),
        "release": "Many releases" if is_campaign else "One release",
        "releases": "A person answers once. To learn again from the same reports costs no further privacy.",
        "source": "Dynamic" if is_campaign else "Static",
        "sources": "Each run asks people who were not asked before."
        if is_campaign
        else "People are asked once.",
        "tuning": "Partition, ranges and settings come from public rows alone.",
        "mechanisms": f"{facts['mechanism']}, by ldptree: exact integer coins of the operating system, no floating-point noise.",
        "composition": f"Sequential: the epsilons of a person's reports add up, {kept}.",
        "shuffled": f" {by} is trusted for the shuffled epsilon of the page alone." if by else "",
        "after": "Unbiased totals become a model, weighed against public rows. It costs no further privacy.",
        "utility": f"On rows kept aside: {scores}." if scores else "Not measured: nobody's row is known.",
    }
