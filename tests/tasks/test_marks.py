"""What leaves a seeded run says that it is of a simulation, and is never counted beside what real holders sent."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pyarrow.parquet as pq
import pytest
from chain import (
    Chain,
    RoundsChain,
    example_protocol,
    perturb_shard,
    publish,
    published,
    rides,
    rides_config,
    shards_of,
    shells,
    shells_config,
)

from ldptree.client import Client, Report
from ldptree.coins import Words
from ldptree.errors import ConfigError, DataError, ProtocolMismatch
from ldptree.families.histoftree import LabelQuestion
from ldptree.families.questions import question_from_json
from ldptree.protocol.protocol import Protocol
from storage.store import Store
from tasks.answers.receive import NOT_SIMULATED, SIMULATED, receive_folder
from tasks.artifacts import read_text

X = {"x": 1.0, "y": 0.5}


def seeded(number=1):
    return Words.seeded(np.random.SeedSequence(number))


def simulated():
    return replace(example_protocol(), simulation=True)


def metadata_of(store, record):
    (path,) = store.files(record["reports"])
    return pq.read_schema(path).metadata


def received(tmp_path, protocol, *reports):
    folder = tmp_path / "inbox"
    folder.mkdir()
    (folder / "reports.jsonl").write_text("".join(report.to_json() + "\n" for report in reports))
    (tmp_path / "protocol.json").write_text(protocol.to_json())
    return receive_folder(tmp_path / "protocol.json", folder)


@pytest.mark.parametrize("noise_seed", [None, 11])
def test_the_protocol_and_the_reports_of_a_seeded_run_alone_are_marked(tmp_path, noise_seed):
    config = rides_config(
        rides(tmp_path / "rides.csv", 300, 1), simulation={"noise_seed": noise_seed}, release=True
    )
    chain = Chain(Store(tmp_path / "work"), config)
    assert chain.model
    protocol = published(chain)
    assert protocol.simulation is (noise_seed is not None)
    assert ("simulation" in json.loads(protocol.to_json())) is (noise_seed is not None)
    for record in chain.reports:
        assert (b"simulation" in metadata_of(chain.store, record)) is (noise_seed is not None)


@pytest.mark.parametrize("noise_seed", [None, 11])
def test_the_questions_and_the_answers_of_a_seeded_run_in_rounds_alone_are_marked(tmp_path, noise_seed):
    paths = shells(tmp_path / "shells.parquet", 400, 1)
    config = shells_config(paths, simulation={"noise_seed": noise_seed}, release=True)
    chain = RoundsChain(Store(tmp_path / "work"), config)
    chain.converse()
    assert chain.asked
    for asked, answered in zip(chain.asked, chain.answered, strict=True):
        question = asked["question"]
        text = json.loads(chain.store.file(question, "question.json").read_bytes())
        assert ("simulation" in text) is (noise_seed is not None)
        read = read_text(chain.store, question)
        assert read.digest == question.digest
        assert (read.unmarked == question.digest) is (noise_seed is None)
        assert read.question.to_json().items() <= text.items()
        for record in answered:
            assert (b"simulation" in metadata_of(chain.store, record)) is (noise_seed is not None)


def test_a_simulation_has_another_digest_and_the_noise_of_the_question_without_the_mark(tmp_path):
    rows = {"x": np.linspace(0, 8, 200), "y": np.zeros(200), "label": ["yes", "no"] * 100}
    drawn = []
    for protocol in (example_protocol(), simulated()):
        store = Store(tmp_path / protocol.digest[:8])
        record = perturb_shard(store, publish(store, protocol), shards_of(store, rows)[0])
        drawn.append(pq.read_table(store.files(record["reports"])[0]).to_pydict())
    assert drawn[0] == drawn[1]
    assert simulated().digest != example_protocol().digest == simulated().digest_unmarked
    assert Protocol.from_json(simulated().to_json()).digest == simulated().digest


@pytest.mark.parametrize(
    ("words", "is_marked"),
    [(None, False), (Words.system(), False), (seeded(), True), (np.random.default_rng(1), True)],
)
def test_a_client_with_coins_of_a_seed_marks_its_reports(words, is_marked):
    report = Client(example_protocol(), max_epsilon=64.0, memory={}, words=words).report(X, "no")
    assert report.simulation is is_marked
    assert ("simulation" in json.loads(report.to_json())) is is_marked
    assert Report.from_json(report.to_json()) == report


def test_a_mark_is_true_or_not_there():
    report = json.loads(
        Client(example_protocol(), max_epsilon=64.0, memory={}, words=seeded()).report(X, "no").to_json()
    )
    for value in (False, 1, "true", None):
        with pytest.raises(DataError, match="simulation"):
            Report.from_json(json.dumps(report | {"simulation": value}))


@pytest.mark.parametrize("words", [None, Words.system()])
def test_no_real_holder_answers_the_protocol_of_a_simulation(words):
    with pytest.raises(ConfigError, match="seeded simulation: no real holder answers it"):
        Client(simulated(), max_epsilon=64.0, memory={}, words=words)
    assert Client(simulated(), max_epsilon=64.0, memory={}, words=seeded()).report(X, "no").simulation


def test_a_memory_gives_a_simulated_report_to_no_real_client_nor_the_reverse():
    for first, then in ((seeded(), None), (None, seeded())):
        memory = {}
        Client(example_protocol(), max_epsilon=64.0, words=first, memory=memory).report(X, "no")
        with pytest.raises(ConfigError, match="memory of their own"):
            Client(example_protocol(), max_epsilon=64.0, words=then, memory=memory).report(X, "no")


def test_simulated_reports_are_never_counted_beside_real_ones(tmp_path):
    real = Client(example_protocol(), max_epsilon=64.0, memory={}).report(X, "no")
    made_up = Client(example_protocol(), max_epsilon=64.0, memory={}, words=seeded()).report(X, "no")
    found = received(tmp_path, example_protocol(), real, made_up)
    assert (found.accepted, found.rejected[SIMULATED]) == (1, 1)
    assert f"1 {SIMULATED}" in found.in_words()


def test_simulated_reports_alone_are_refused_under_a_real_protocol(tmp_path):
    made_up = Client(example_protocol(), max_epsilon=64.0, memory={}, words=seeded()).report(X, "no")
    with pytest.raises(DataError, match=f"no report was accepted.*1 {SIMULATED}") as fault:
        received(tmp_path, example_protocol(), made_up).totals()
    assert fault.value.exit_code == 3


def test_real_reports_are_refused_under_the_protocol_of_a_simulation(tmp_path):
    made_up = Client(simulated(), max_epsilon=64.0, memory={}, words=seeded()).report(X, "no")
    found = received(tmp_path, simulated(), made_up, replace(made_up, id="0" * 32, simulation=False))
    assert (found.accepted, found.rejected[NOT_SIMULATED]) == (1, 1)


def test_shards_of_a_seeded_run_are_refused_under_a_real_protocol(tmp_path):
    store = Store(tmp_path / "work")
    rows = {"x": np.linspace(0, 8, 50), "y": np.zeros(50), "label": ["no"] * 50}
    asked, (shard,) = publish(store, example_protocol()), shards_of(store, rows)
    for seed in (None, 11):
        perturb_shard(store, asked, shard, noise_seed=seed)
    (tmp_path / "protocol.json").write_text(example_protocol().to_json())
    found = receive_folder(tmp_path / "protocol.json", store.root / "curator" / "reports")
    assert (found.accepted, found.rejected[SIMULATED]) == (50, 50)


def test_a_question_whose_mark_is_not_true_is_refused():
    with pytest.raises(ProtocolMismatch, match="simulation"):
        question_from_json(json.dumps({"kind": LabelQuestion.kind, "simulation": False}))
