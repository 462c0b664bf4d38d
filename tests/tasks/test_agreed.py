"""The holders' side answers what it agreed to and nothing else, whatever lies in the curator's zone."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from chain import (
    NEW_PEOPLE,
    Copying,
    agreed_to,
    example_protocol,
    fares,
    fares_config,
    mended,
    perturb_shard,
    publish,
    rides,
    rides_config,
    shards_of,
    shells,
    shells_config,
)
from test_two_questions import written

from flows.pipeline import Pipeline
from ldptree.errors import ArtifactCorrupt, BudgetError, LdptreeError, ProtocolMismatch
from ldptree.families.histoftree import CellsQuestion, LabelQuestion
from ldptree.families.public_features import FeatureBins, LabelBins, ResidualQuestion
from ldptree.mechanisms import mechanism_for, number_mechanism_for
from ldptree.mechanisms.numbers import NUMBERS
from ldptree.mechanisms.oracles.subset import SubsetSelection
from ldptree.models.surface import BINS
from ldptree.protocol.protocol import EVERYBODY, Protocol, _read_parts
from ldptree.serialize import field_types
from schemas.config import RunConfig
from schemas.manifest import Manifest, Record
from storage.digests import Hasher
from storage.formats import stamped
from storage.ledger.accounts import Account
from storage.store import Store
from tasks.artifacts import PROTOCOL, read_published

RELEASE: dict[str, Any] = {"simulation": {"noise_seed": None}, "release": True, "evaluate": False}
ONE_COIN: dict[str, Any] = {"privacy": {"epsilon": 1.0, "mechanism": "grr"}}
FAMILIES: dict[str, Callable[..., RunConfig]] = {
    "lpct": lambda room, **more: rides_config(rides(room / "a.csv", 400, 1), **ONE_COIN | more),
    "lpct, totals": lambda room, **more: rides_config(
        rides(room / "a.csv", 400, 1), **{"privacy": {**ONE_COIN["privacy"], "max_report_bytes": 1}} | more
    ),
    "lpdt": lambda room, **more: fares_config(fares(room / "a.csv", 400, 1), **ONE_COIN | more),
    "correction": lambda room, **more: mended(rides_config, rides(room / "a.csv", 400, 1), **ONE_COIN | more),
    "correction of a number": lambda room, **more: mended(
        fares_config, fares(room / "a.csv", 400, 1), **ONE_COIN | more
    ),
    "histoftree": lambda room, **more: shells_config(
        shells(room / "a.parquet", 400, 1),
        **{
            "model": {"estimator": "histoftree", "t": 2, "p": 1},
            "privacy": {"epsilon": 1.0},
        }
        | more,
    ),
    "public_features": lambda room, **more: shells_config(
        shells(room / "a.parquet", 1500, 1), **{"privacy": {"epsilon": 2.0}} | more
    ),
    "lpct, asked twice": lambda room, **more: rides_config(
        rides(room / "a.csv", 3000, 1),
        **{"model": {"depth": "auto", "prune": "paper"}, "privacy": {"epsilon": 4.0}} | more,
    ),
    "correction, apart": lambda room, **more: rides_config(
        written(room / "a.csv"),
        **{
            "dataset": {"drop": []},
            "model": {"estimator": "correction", "depth": "auto", "base": "forest"},
            "privacy": {"epsilon": 4.0},
        }
        | more,
    ),
}
ROUNDS = [
    ("histoftree", 1),
    ("histoftree", 2),
    ("public_features", 1),
    ("public_features", 2),
    ("public_features", 3),
]
ONE_TREE = [(name, 1) for name in ("lpct", "lpct, totals", "lpdt", "correction", "correction of a number")]
Forge = Callable[[Any], Any]


class Forging(Copying):
    """A curator who publishes another question than its program made, in one round, its record as good as the true one."""

    def __init__(self, store: Store, forge: Forge, number: int) -> None:
        super().__init__(store)
        self.forge, self.number = forge, number
        self.true: Record | None = None

    def step(self, task: Any, inputs: Any, round_number: int = 0) -> Record:
        record = super().step(task, inputs, round_number)
        if task.step.name != "partition" or max(round_number, 1) != self.number:
            return record
        self.true = record
        forged = lay(self.store, self.forge(text_of(self.store, record["question"])))
        return record.model_copy(update={"parts": {**record.parts, "question": forged}})


class StoppedError(Exception):
    """A run came to the question at which it should stop."""


@pytest.fixture(scope="module")
def asked_until(tmp_path_factory):
    """A run of a family, in a folder of its own, that stopped where its curator had made the question of a round."""

    @cache
    def prepared(family: str, number: int, is_release: bool) -> tuple[RunConfig, Path]:
        room = tmp_path_factory.mktemp("asked")
        config = FAMILIES[family](room, **RELEASE if is_release else {})

        def stop(_: Any) -> Any:
            raise StoppedError

        store = Store(room / "work")
        with pytest.raises(StoppedError):
            Pipeline(store=store, config=config, executor=Forging(store, stop, number)).walk()
        return config, store.root

    def asked(work: Path, family: str, number: int, forge: Forge, *, is_release: bool = True) -> Pipeline:
        config, made = prepared(family, number, is_release)
        store = Store(shutil.copytree(made, work))
        return Pipeline(store=store, config=config, executor=Forging(store, forge, number))

    return asked


def text_of(store: Store, question: Manifest) -> dict[str, Any]:
    return json.loads(store.file(question, question.files[0].name).read_bytes())


def lay(store: Store, forged: Any) -> Manifest:
    """A question as an artifact of the curator's, all of whose digests fit."""
    name = PROTOCOL if isinstance(forged, Protocol) else "question.json"
    text = forged.to_json() if isinstance(forged, Protocol) else json.dumps(forged, sort_keys=True)
    with store.draft(store.place("curator", "partition", "x", inputs={}, parameters={"text": text})) as draft:
        (draft.folder("question") / name).write_text(text)
        return draft.finish({}, 0.0)["question"]


def protocol_of(text: dict[str, Any]) -> Protocol:
    return Protocol.from_json(json.dumps(text))


def at_20(text: dict[str, Any]) -> Any:
    """The same question at epsilon 20, with coins that are as loud as that."""
    if "kind" not in text:
        protocol = protocol_of(text)
        return replace(protocol, epsilon=20.0, mechanism=protocol.mechanism.at_epsilon(20.0))
    if "oracle" in text:
        return text | {"oracle": SubsetSelection.for_values(20.0, BINS).thresholds}
    if text["kind"] == CellsQuestion.kind:
        return text | {"mechanism": text["mechanism"] | {"epsilon": 20.0}}
    return text | {"mechanism": number("optimal_label", 20.0)}


def number(name: str, epsilon: float) -> dict[str, Any]:
    return {"name": name, "thresholds": NUMBERS[name].for_budget(epsilon).thresholds}


def by_another_mechanism(text: dict[str, Any]) -> Any:
    if "kind" in text:
        if text["kind"] == CellsQuestion.kind:
            return text | {"mechanism": text["mechanism"] | {"name": "randomized_response"}}
        return text | {"mechanism": number("duchi", 0.5)}
    protocol = protocol_of(text)
    make = number_mechanism_for if protocol.numeric and protocol.base is None else mechanism_for
    return replace(protocol, mechanism=make("oue", 1.0, protocol.n_cells, protocol.n_classes))


def by_a_leaking_mechanism(text: dict[str, Any]) -> Any:
    return text | {"mechanism": number("laplace", 0.5)}


def marked(text: dict[str, Any]) -> Any:
    return text | {"simulation": True} if "kind" in text else replace(protocol_of(text), simulation=True)


def of_another_campaign(text: dict[str, Any]) -> Any:
    return replace(protocol_of(text), campaign="others")


def of_another_round(text: dict[str, Any]) -> Any:
    return replace(protocol_of(text), round=2)


def of_another_kind(text: dict[str, Any]) -> Any:
    if "kind" in text:
        return example_protocol(epsilon=1.0)
    return LabelQuestion(NUMBERS["duchi"].for_budget(1.0), 0.0, 1.0).to_json()


def of_histoftree(text: dict[str, Any]) -> Any:
    return LabelQuestion(NUMBERS["optimal_label"].for_budget(1.0), 0.0, 1.0).to_json()


def with_all_of_epsilon(text: dict[str, Any]) -> Any:
    protocol = protocol_of(text)
    return replace(protocol, epsilon=4.0, mechanism=protocol.mechanism.at_epsilon(4.0))


def to_everybody(text: dict[str, Any]) -> Any:
    return replace(protocol_of(text), asked=EVERYBODY)


def to_who_answered(text: dict[str, Any]) -> Any:
    return text | {"part": text["part"] | {"start": 100}}


def with_the_mask(text: dict[str, Any]) -> Any:
    return text | {"release": "all"}


def reports_in(store: Store) -> list[Path]:
    """Every file of reports; beside them lies only the last transaction of the holders' database."""
    return sorted((store.root / "curator" / "reports").rglob("round-*/*"))


def refuses(run: Pipeline, exit_code: int) -> LdptreeError:
    """The error of a run that stopped before anybody answered the forged question."""
    with pytest.raises((ProtocolMismatch, BudgetError)) as stopped:
        run.walk()
    assert stopped.value.exit_code == exit_code
    assert not list((run.store.root / "curator" / "reports").rglob(f"round-{run.executor.number}/*"))
    assert not list((run.store.root / "holders").rglob("faults/*"))
    return stopped.value


FORGERIES = [
    *((name, n, at_20, 4) for name, n in [*ONE_TREE, *ROUNDS]),
    *((name, n, marked, 5) for name, n in [*ONE_TREE, *ROUNDS]),
    *((name, n, of_another_kind, 5) for name, n in [*ONE_TREE, *ROUNDS]),
    *((name, n, by_another_mechanism, 5) for name, n in [*ONE_TREE, ("histoftree", 1), ("histoftree", 2)]),
    *((name, n, of_another_campaign, 5) for name, n in ONE_TREE),
    *((name, n, of_another_round, 5) for name, n in ONE_TREE),
    ("histoftree", 1, by_a_leaking_mechanism, 5),
    ("public_features", 3, by_a_leaking_mechanism, 5),
    ("public_features", 1, of_histoftree, 5),
]


@pytest.mark.parametrize(
    ("family", "number", "forge", "exit_code"),
    FORGERIES,
    ids=[f"{name}, round {n}, {forge.__name__}" for name, n, forge, _ in FORGERIES],
)
def test_a_forged_question_is_answered_by_nobody_and_charged_to_nobody(
    tmp_path, asked_until, family, number, forge, exit_code
):
    run = asked_until(tmp_path / "work", family, number, forge)
    message = str(refuses(run, exit_code))
    assert message.count("\n") == 0
    assert "Nobody answered it." in message
    assert bool(len(Account(run.store, None).read())) == (number > 1)


@pytest.mark.parametrize("forge", [at_20, by_another_mechanism, marked])
@pytest.mark.parametrize("family", ["lpct", "histoftree"])
def test_a_trial_that_charges_nobody_answers_no_forged_question_either(tmp_path, asked_until, family, forge):
    def forged(text: dict[str, Any]) -> Any:
        if forge is not marked:
            return forge(text)
        if "kind" not in text:
            return replace(protocol_of(text), simulation=False)
        return {key: value for key, value in text.items() if key != "simulation"}

    run = asked_until(tmp_path / "work", family, 1, forged, is_release=False)
    assert run.terms.config.is_trial
    refuses(run, 4 if forge is at_20 else 5)


@pytest.mark.parametrize(
    ("family", "number", "forge"),
    [
        ("lpct, asked twice", 2, with_all_of_epsilon),
        ("correction, apart", 2, to_everybody),
        ("public_features", 2, to_who_answered),
    ],
)
def test_over_all_rounds_nobody_spends_more_than_epsilon_whoever_a_question_is_put_to(
    tmp_path, family, number, forge
):
    store = Store(tmp_path / "work")
    config = FAMILIES[family](tmp_path, simulation={"noise_seed": 3}, release=True, evaluate=False)
    run = Pipeline(store=store, config=config, executor=Forging(store, forge, number))
    assert "in earlier rounds" in str(refuses(run, 4))
    assert run.executor.true is not None


def test_a_mask_that_the_configuration_keeps_is_not_sent_because_the_question_asks_for_it(tmp_path):
    store = Store(tmp_path / "work")
    own = {"model": {"estimator": "histoftree", "t": 2, "p": 1, "mask_release": "none"}}
    config = FAMILIES["histoftree"](tmp_path, **RELEASE | own)
    run = Pipeline(store=store, config=config, executor=Forging(store, with_the_mask, 2))
    assert "mask" in str(refuses(run, 5))


def names_the_label(run: Pipeline) -> bytes:
    """The text of an encoding in which "size" is the label, "rings"."""
    content = json.loads((run.store.root / run.scaled["encoding"].names[0]).read_bytes())
    features = [
        each | {key: "rings" for key in ("column", "name") if each.get(key) == "size"}
        for each in content["encoding"]["features"]
    ]
    del content["format"]
    return stamped("encoding", content | {"encoding": content["encoding"] | {"features": features}})


@pytest.mark.parametrize("is_whole", [False, True], ids=["swapped", "with its record"])
def test_an_encoding_that_names_the_label_shows_it_to_nobody(tmp_path, is_whole):
    store = Store(tmp_path / "work")
    config = FAMILIES["public_features"](tmp_path, **RELEASE)
    run = Pipeline(store=store, config=config, executor=Copying(store))
    text, encoding = names_the_label(run), run.scaled["encoding"]
    (store.root / encoding.names[0]).write_bytes(text)
    if is_whole:
        digest = Hasher().of_value([["encoding.json", Hasher().of_bytes(text)]])
        forged = {**run.scaled.parts, "encoding": encoding.model_copy(update={"digest": digest})}
        run.__dict__["scaled"] = run.scaled.model_copy(update={"parts": forged})
    said = "show rings, by the configuration no feature" if is_whole else "changed since it was written"
    with pytest.raises((ProtocolMismatch, ArtifactCorrupt), match=said) as stopped:
        _ = run.shown
    assert stopped.value.exit_code == 5
    assert not list((store.root / "public").rglob("shown.parquet"))


@pytest.mark.parametrize("family", ["histoftree", "public_features"])
def test_an_encoding_swapped_after_holders_showed_their_features_is_answered_by_nobody(tmp_path, family):
    """Else the label would count among what is shown, and each report would tell it."""
    store = Store(tmp_path / "work")
    run = Pipeline(store=store, config=FAMILIES[family](tmp_path, **RELEASE), executor=Copying(store))
    text = names_the_label(run)
    assert run.shown
    asked = run.ask([])
    (store.root / run.scaled["encoding"].names[0]).write_bytes(text)
    with pytest.raises(ArtifactCorrupt, match="changed since it was written") as stopped:
        run.respondents.answer(asked)
    assert stopped.value.exit_code == 5
    assert reports_in(store) == []


@pytest.mark.parametrize("family", ["lpct", "histoftree"])
@pytest.mark.parametrize(
    "spoil", [Path.unlink, lambda path: path.write_bytes(b"spoiled")], ids=["gone", "spoiled"]
)
def test_holders_whose_reports_are_taken_away_before_they_noted_them_draw_no_others(
    tmp_path, monkeypatch, family, spoil
):
    store, drawn = Store(tmp_path / "work"), []
    config = FAMILIES[family](tmp_path, **RELEASE)

    def take(store: Store, target: str, *_: Any) -> Manifest:
        path = store.root / target
        drawn.append(path.read_bytes())
        spoil(path)
        raise OSError("the owner of the curator's zone is at it")

    for _ in range(3):
        run = Pipeline(store=store, config=config, executor=Copying(store))
        with monkeypatch.context() as patch:
            patch.setattr("tasks.perturb.manifest_of", take)
            with pytest.raises(LdptreeError):
                run.walk()
        for path in reports_in(store):
            path.unlink()
    run = Pipeline(store=store, config=config, executor=Copying(store))
    assert run.conversation
    assert {path.read_bytes() for path in reports_in(store)} >= set(drawn)
    assert len(set(drawn)) == 1
    assert not list((store.root / "holders" / "drafts").glob(".draft-*"))


def another_tree(text: dict[str, Any]) -> Any:
    """As cheap, by the same mechanism."""
    return replace(protocol_of(text), outside="drop")


def true(text: dict[str, Any]) -> Any:
    return text if "kind" in text else protocol_of(text)


@pytest.mark.parametrize(
    "family", ["lpct", "lpct, totals", "lpdt", "correction", "histoftree", "public_features"]
)
@pytest.mark.parametrize("noise_seed", [None, 11])
def test_a_question_swapped_between_the_charge_and_the_draw_is_answered_by_nobody(
    tmp_path, family, noise_seed
):
    """Another tree, or another range of the label: as cheap, and answered by the same mechanism."""
    store = Store(tmp_path / "work")
    config = FAMILIES[family](tmp_path, **RELEASE | {"simulation": {"noise_seed": noise_seed}})
    run = Pipeline(store=store, config=config, executor=Forging(store, true, 1))
    asked = run.ask([])
    assert run.respondents.charge(asked, None)
    path = store.root / asked.question().names[0]
    text = json.loads(path.read_bytes())
    if "kind" in text:
        path.write_text(json.dumps(text | {"high": 31.0}, sort_keys=True))
    else:
        tree = text["partition"] | {"threshold": [t * 0.9 for t in text["partition"]["threshold"]]}
        del text["digest"], text["epsilon_exact"]
        protocol = protocol_of_fields(text | {"partition": tree})
        assert protocol.digest != json.loads(path.read_bytes())["digest"]
        path.write_text(protocol.to_json())
    with pytest.raises(ProtocolMismatch, match="not the question that its holders agreed to") as stopped:
        run.respondents.answer(asked)
    assert stopped.value.exit_code == 5
    assert reports_in(store) == []


def protocol_of_fields(fields: dict[str, Any]) -> Protocol:
    """The protocol with these fields, whatever its digest was."""
    return Protocol(
        **_read_parts(
            fields | {"simulation": False, "numeric": False, "asked": [0, 1000], "base": None} | fields
        )
    )


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda path: os.truncate(path, 65 << 20), "65 MiB are more than such a file has"),
        (lambda path: (path.unlink(), os.mkfifo(path)), "pipe"),
    ],
)
def test_what_is_no_question_is_refused_before_it_is_read(store, make, says):
    question = publish(store, example_protocol())
    make(store.file(question, PROTOCOL))
    with pytest.raises(ProtocolMismatch, match=says):
        read_published(store, question)


def test_what_a_question_is_checked_by_is_what_is_answered(store, monkeypatch):
    """The bytes are read once: another file under the same name, a moment later, is never seen."""
    protocol = example_protocol()
    question, (shard,) = publish(store, protocol), shards_of(store, {"x": [1.0], "y": [0.0], "label": ["no"]})
    path, reads = store.root / question.names[0], []

    def read_bytes(self: Path) -> bytes:
        reads.append(self)
        content = read(self)
        if self == path:
            self.write_text(
                replace(protocol, epsilon=20.0, mechanism=protocol.mechanism.at_epsilon(20.0)).to_json()
            )
        return content

    read, agreed = Path.read_bytes, agreed_to(store, question)
    monkeypatch.setattr(Path, "read_bytes", read_bytes)
    record = perturb_shard(store, question, shard, noise_seed=None, agreed=agreed)
    assert reads.count(path) == 1
    assert protocol.digest[:16] in record["reports"].path


CAMPAIGN = RELEASE | ONE_COIN | {"campaign": {"name": "weekly"}, "dataset": NEW_PEOPLE}


@pytest.mark.parametrize(
    "forge", [at_20, by_another_mechanism, marked, of_another_campaign, of_another_round, another_tree]
)
def test_a_campaign_that_answered_answers_no_other_question_later(tmp_path, forge):
    """The holders' database names its protocol: nobody is asked where something else lies there in the curator's zone."""
    store, paths = (
        Store(tmp_path / "work"),
        [rides(tmp_path / "1.csv", 400, 1), rides(tmp_path / "2.csv", 400, 2)],
    )
    first = Pipeline(store=store, config=rides_config(paths[0], **CAMPAIGN), executor=Copying(store))
    assert first.conversation
    (published,) = store.files(first.protocol)
    before, charged = reports_in(store), len(Account(store, None).read())
    whole = published.read_bytes()
    published.write_text(forge(text_of(store, first.protocol)).to_json())
    for files in ([paths[0]], paths):  # the first one's reports stand already
        later = Pipeline(store=store, config=rides_config(*files, **CAMPAIGN), executor=Copying(store))
        with pytest.raises(ArtifactCorrupt, match=r"protocol\.json: damaged"):
            _ = later.conversation
        assert (reports_in(store), len(Account(store, None).read())) == (before, charged)
    published.write_bytes(whole)
    later = Pipeline(store=store, config=rides_config(*paths, **CAMPAIGN), executor=Copying(store))
    assert later.conversation


def test_a_shard_is_refused_by_itself_where_the_question_costs_more_than_what_is_left(store):
    question, (shard,) = (
        publish(store, example_protocol()),
        shards_of(store, {"x": [1.0], "y": [0.0], "label": ["no"]}),
    )
    half = agreed_to(store, question, spent=Fraction(1, 2))
    with pytest.raises(
        BudgetError, match=r"would spend epsilon 1\.5, computed from the integers .*0\.5 of it in earlier"
    ):
        perturb_shard(store, question, shard, agreed=half)
    assert reports_in(store) == []


@pytest.mark.parametrize("kind", [LabelQuestion, CellsQuestion, LabelBins, FeatureBins, ResidualQuestion])
def test_what_a_question_costs_is_computed_and_cannot_be_stated(kind):
    """Of what a question says of itself no field is its epsilon, but one that its coins are made of."""
    fields = set(field_types(kind))
    assert not {"epsilon", "epsilon_exact"} & fields
    assert isinstance(kind.epsilon, property)
