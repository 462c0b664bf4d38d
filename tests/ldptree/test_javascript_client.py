"""The client in JavaScript gives what the Python client gives and refuses what it refuses, in Node and in Chromium."""

from __future__ import annotations

import copy
import gzip
import json
import random
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import number_examples
import numpy as np
import pytest
from test_vectors import FILE, ROWS, answers_to, played, protocol_of

from ldptree import serialize
from ldptree.client import Client, Report
from ldptree.errors import LdptreeError
from ldptree.mechanisms import CHOICES, mechanism_for
from ldptree.protocol.protocol import Protocol

FOLDER = Path(__file__).parents[2] / "clients" / "javascript"
MODULES = sorted(FOLDER.glob("*.js"))
VECTORS = json.loads(FILE.read_text())
X, Y = ROWS[0]
NODE = shutil.which("node")
MOST_BYTES = 10 * 1024

Run = Callable[..., Any]
"""Call an async function of JavaScript, `(client, data) => ...`, where client is the module; what it gives."""

SHARED = """
const opened = (text, settings = {}) =>
  client.Client.open(text, {maxEpsilon: 64, memory: new client.ForgetfulMemory(), ...settings});
const nameOfError = async (promise) => { try { await promise; return null; } catch (error) { return error.constructor.name; } };
const played = (words) => new client.Words(n => BigUint64Array.from(words.splice(0, n)));
"""


def run_in_node(function: str, data: object = None) -> Any:
    if NODE is None:
        pytest.skip("no Node on this machine (Debian: apt-get install nodejs)")
    script = f"""
import * as client from {json.dumps((FOLDER / "client.js").as_uri())};
import fs from "node:fs";
{SHARED}
const data = JSON.parse(fs.readFileSync(0));
console.log(JSON.stringify((await ({function})(data)) ?? null));
"""
    command = [NODE, "--input-type=module", "--no-warnings", "-e", script]
    done = subprocess.run(
        command, input=json.dumps(data), capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def run_in_page(page: Any, function: str, data: object = None) -> Any:
    return page.evaluate(
        f"async (data) => {{ const client = await import('/client.js'); {SHARED} return ({function})(data); }}",
        data,
    )


@pytest.fixture(
    params=["node", pytest.param("chromium", marks=[pytest.mark.browser, pytest.mark.slow])],
)
def run(request: pytest.FixtureRequest) -> Iterator[Run]:
    if request.param == "node":
        yield run_in_node
        return
    url, _, _ = request.getfixturevalue("intake")
    page = request.getfixturevalue("browser").new_page()
    page.goto(f"{url}/package.json")
    yield partial(run_in_page, page)
    page.close()


def test_every_known_answer_is_given_to_the_byte(run: Run) -> None:
    """All words that Python took are taken, and none more."""
    cases = [(serialize.canonical(v["protocol"]), a) for v in VECTORS for a in v["answers"]]
    given = run(
        """async (cases) => { const given = []; for (const [text, answer] of cases) {
          const words = answer.words.map(word => BigInt("0x" + word));
          const report = await (await opened(text, {words: played(words)})).report(answer.row, answer.label);
          given.push([report.toJson(), words.length]); } return given; }""",
        cases,
    )
    assert len(given) == sum(len(vector["answers"]) for vector in VECTORS) > 100
    for (_, answer), (line, words_left) in zip(cases, given, strict=True):
        report = Report.from_json(line)
        assert (report.payload.hex(), report.id) == (answer["report"], answer["id"])
        assert (report.output, report.simulation, words_left) == (answer.get("output"), True, 0)


def extreme_words(protocol: Protocol, chance: random.Random) -> list[int]:
    """Words of which some are drawn again, and some lie on a coin's edge."""
    edges = [
        edge for threshold in protocol.mechanism.thresholds.values() for edge in (threshold - 1, threshold)
    ]
    extremes = [0, 2**63, 2**64 - 2, *[2**64 - 1] * 3, *edges]
    return [chance.choice(extremes) if chance.random() < 0.3 else chance.getrandbits(64) for _ in range(3000)]


def test_words_that_are_drawn_again_and_rows_at_an_edge_give_the_bytes_of_python(run: Run) -> None:
    chance, cases, expected = random.Random(2), [], []
    for vector in VECTORS:
        protocol = Protocol.from_json(serialize.canonical(vector["protocol"]))
        for answer in vector["answers"] * 3:
            miles = chance.choice([4.0, 8.0, 16.0, 0.0]) + chance.choice([0.0, 1e-8, 2e-7, -1e-8])
            row = {
                "company": answer["row"]["company"],
                "miles": chance.choice([miles, answer["row"]["miles"]]),
            }
            words = extreme_words(protocol, chance)
            cases.append([protocol.to_json(), row, answer["label"], [f"{word:x}" for word in words]])
            client = Client(protocol, max_epsilon=64.0, memory={}, words=played(words))
            expected.append(client.report(row, answer["label"]))
    lines = run(
        """async (cases) => { const lines = []; for (const [text, row, label, words] of cases) {
          const of = await opened(text, {words: played(words.map(word => BigInt("0x" + word)))});
          lines.push((await of.report(row, label)).toJson()); } return lines; }""",
        cases,
    )
    assert [Report.from_json(line) for line in lines] == expected


def test_epsilon_is_pythons_to_the_last_bit(run: Run) -> None:
    protocols = [Protocol.from_json(serialize.canonical(vector["protocol"])) for vector in VECTORS]
    protocols += [
        replace(protocol_of("grr"), mechanism=mechanism_for(choice, epsilon, 3, 2), epsilon=64.0)
        for choice in CHOICES[1:]
        if choice != "laplace"
        for epsilon in (1e-6, 0.01, 0.3, 1.7, np.pi, 9.0, 43.0)
        if (choice, epsilon) != ("randomized_response", 1e-6)
    ]
    stated = run(
        "async (texts) => Promise.all(texts.map(async text => (await opened(text, {words: played([])})).protocol.epsilon))",
        [protocol.to_json() for protocol in protocols],
    )
    assert stated == [protocol.epsilon_exact for protocol in protocols]


VALUES = [
    *(None, True, False, 0, 1, -1, 2, 3, 7, 0.0, -0.0, 1.0, 0.5, -0.5, 1e60, 1e61, 5e-324, 1e16, 1.5e-5),
    *(2**31, 2**64, 10**30, "", "a", "é\x7f", [], {}, [0], [1], [2], [0.5], ["a", "b"]),
    *("drawn", "clip", "drop", "logistic", "softmax", "identity", "joint", *CHOICES),
    *("9223372036854775808", "18446744073709551615", "18446744073709551616", "07", "89", "90", "4294967296"),
]


def places_in(data: Any) -> Iterator[tuple[Any, Any]]:
    """Every value in a protocol, as its owner and its key."""
    keys = data if isinstance(data, dict) else range(len(data)) if isinstance(data, list) else ()
    for key in keys:
        yield data, key
        yield from places_in(data[key])


def signed(data: dict[str, Any]) -> str:
    """The canonical text with a digest that fits."""
    content = {key: value for key, value in data.items() if key != "digest"}
    return serialize.canonical(content | {"digest": serialize.digest_of(content)})


def forged(protocol: dict[str, Any], chance: random.Random) -> str:
    """A protocol with one value deleted, repeated, moved a little or replaced, or one too many, and a digest that fits."""
    data = copy.deepcopy(protocol)
    del data["digest"]
    owner, key = chance.choice(list(places_in(data)))
    value, how = owner[key], chance.random()
    if how < 0.15:
        del owner[key]
    elif how < 0.3:
        if isinstance(owner, list):
            owner.insert(key, value)
        else:
            owner[chance.choice(["extra", "base", "numeric", "asked", "contrasts", "lie"])] = chance.choice(
                VALUES
            )
    elif how < 0.5 and type(value) in (int, float):
        owner[key] = value + chance.choice([1, -1, 0.5, 1e-10])
    else:
        owner[key] = chance.choice(VALUES)
    return signed(data)


def is_read_in_python(text: str) -> bool:
    try:
        Client(text, max_epsilon=1e300, memory={}, words=np.random.default_rng(1))
    except LdptreeError:
        return False
    return True


def test_what_python_refuses_of_a_protocol_this_refuses_and_what_it_reads_this_reads(run: Run) -> None:
    chance = random.Random(1)
    texts = [forged(chance.choice(VECTORS)["protocol"], chance) for _ in range(1500)]
    default = {"asked": [0, 1000], "simulation": False, "numeric": False, "base": None}
    texts += [signed(VECTORS[0]["protocol"] | {field: value}) for field, value in default.items()]
    errors = run(
        """async (texts) => { const errors = []; for (const text of texts) {
          errors.push(await nameOfError(opened(text, {maxEpsilon: 1e300, words: played([])}))); } return errors; }""",
        texts,
    )
    expected = [is_read_in_python(text) for text in texts]
    assert 50 < sum(expected) < 500
    assert [error is None for error in errors] == expected
    assert set(errors) == {None, "ProtocolMismatch"}


def test_any_other_text_than_the_published_one_is_refused(run: Run) -> None:
    text = protocol_of("grr").to_json()
    others = [
        *("", "null", "[]", "{}", "NaN", "[" * 100_000, '{"a":' * 100_000, text[:-1], text + "}", " " + text),
        *(json.dumps(json.loads(text)), '{"k":7,' + text[1:], text.replace('"k":7', '"k":7,"k":7')),
        *(text.replace("0.25", "0.250"), text.replace("0.25", "0.26"), text.replace("16.0", "1e999")),
        *(text.replace("16.0", "16"), text.replace("Sun", "S\\u0075n"), text.replace("Sun", "\\ud800")),
        *(text.replace('"vectors"', '"vektors"'), text.replace('{"', '{"__proto__":1,"', 1)),
    ]
    errors = run(
        "async (texts) => Promise.all(texts.map(text => nameOfError(opened(text))))", [text, *others]
    )
    assert errors == [None] + ["ProtocolMismatch"] * len(others)


def test_what_nobody_should_answer_is_refused_by_the_error_of_the_python_client(run: Run) -> None:
    leaking = replace(protocol_of("grr"), mechanism=mechanism_for("laplace", 1.0, 3, 2), simulation=True)
    grr, simulated = protocol_of("grr").to_json(), answers_to("oue, of a simulation")[0].to_json()
    cases = [
        (grr, {"maxEpsilon": 0.999}, "BudgetError"),
        (grr, {"maxEpsilon": 1.0, "lifetimeEpsilon": 1.0}, None),
        *((grr, {"maxEpsilon": wrong}, "ConfigError") for wrong in (0, -1, None, "2", True)),
        *((grr, {"lifetimeEpsilon": wrong}, "ConfigError") for wrong in (0, -1, 1001, "2", True)),
        *((grr, {"memory": wrong}, "ConfigError") for wrong in (None, {}, "answered.json")),
        *((grr, {"words": wrong}, "ConfigError") for wrong in (1, {})),
        (grr, {"maxProtocolBytes": len(grr) - 1}, "ProtocolMismatch"),
        (simulated, {}, "ConfigError"),
        (leaking.to_json(), {}, "ConfigError"),
        (number_examples.protocol_of("laplace").to_json(), {}, "ConfigError"),
        (json.loads(grr), {}, "ProtocolMismatch"),
    ]
    errors = run(
        "async (cases) => Promise.all(cases.map(([text, settings]) => nameOfError(opened(text, settings))))",
        cases,
    )
    assert errors == [expected for *_, expected in cases]


def test_a_row_that_does_not_fit_is_refused_and_nothing_is_kept(run: Run) -> None:
    rows = [
        *({}, [1.5, "Sun"], "row", 3, {"miles": 1.5}, X | {"fare": 3}, X | {"miles": "1.0"}),
        *(X | {"miles": True}, X | {"company": 3}, X | {"company": ["Sun"]}, X | {"constructor": 1}),
    ]
    number = number_examples.protocol_of("randomized_response").to_json()
    kept = run(
        """async ({text, number, rows}) => {
          const memory = new client.ForgetfulMemory();
          const [of, ofNumber] = [await opened(text, {memory}), await opened(number, {memory})];
          const errors = [];
          for (const row of rows) errors.push(await nameOfError(of.report(row, "cash")));
          const whole = Object.fromEntries(ofNumber.protocol.columns.map(column => [column, null]));
          for (const label of ["1", true, [1]]) errors.push(await nameOfError(ofNumber.report(whole, label)));
          return [errors, await memory.update(kept => kept) ?? null]; }""",
        {"text": protocol_of("grr").to_json(), "number": number, "rows": rows},
    )
    assert kept == [["DataError"] * (len(rows) + 3), None]


@pytest.mark.parametrize("name", ["grr", "sue", "ss", "olh", "signed_subset", "discrete_laplace"])
def test_coins_of_webcrypto_have_the_mechanisms_law(run: Run, name: str) -> None:
    """Totals of 3,000 answers for a row and 3,000 of nothing are within 5 standard deviations: a false alarm in 10^5 runs."""
    protocol, n = protocol_of(name), 3_000
    drawn = run(
        """async ({text, row, label, n}) => {
          const of = await opened(text);
          const line = (each) => { const {report, value} = of.simulate(...each); return [report.toJson(), Number(value)]; };
          return [[row, label], [null, null]].map(each => Array.from({length: n}, () => line(each))); }""",
        {"text": protocol.to_json(), "row": X, "label": Y, "n": n},
    )
    values = [1, protocol.k - 1]
    assert [{value for _, value in lines} for lines in drawn] == [{value} for value in values]
    reports = [Report.from_json(line) for lines in drawn for line, _ in lines]
    assert len({report.id for report in reports}) == 2 * n
    mechanism = protocol.mechanism
    packed = np.array([np.frombuffer(report.payload, np.uint8) for report in reports])
    totals = mechanism.unbias(mechanism.aggregate(mechanism.unpack(packed)), 2 * n)
    truth = np.bincount(values, minlength=protocol.k) * n
    for value in range(protocol.k):
        variance = mechanism.linear_variance(np.eye(protocol.k)[value], truth)
        assert abs(totals[value] - truth[value]) < 5 * np.sqrt(variance)


def test_who_has_nothing_sends_what_others_send_in_form(run: Run) -> None:
    texts = [protocol.to_json() for protocol in map(protocol_of, ("grr", "oue", "randomized_response"))]
    texts.append(answers_to("base, three classes, drawn")[0].to_json())
    lines = run(
        """async (texts) => Promise.all(texts.map(async text => {
          const row = {miles: 1.5, company: "Sun"};
          const of = await opened(text);
          return [(await of.report(row, "cash", {holder: "a"})).toJson(), (await of.report(null, null, {holder: "b"})).toJson()];
        }))""",
        texts,
    )
    for pair in lines:
        some, nothing = map(json.loads, pair)
        assert some.keys() == nothing.keys()
        assert len(some["report"]) == len(nothing["report"])
        assert "simulation" not in some


def test_no_coin_is_a_double_and_none_is_the_languages_own() -> None:
    sources = "".join(path.read_text() for path in [*MODULES, FOLDER / "consent.html"])
    assert "Math.random" not in sources
    assert sources.count("2 ** -53") == 1  # rounding a label, before the mechanism sees it


ASKED_TWICE = """async ({texts, row}) => {
  const memory = new client.ForgetfulMemory();
  const settings = {memory, maxEpsilon: 1, lifetimeEpsilon: 2};
  const [first, other, next, last] = await Promise.all(texts.map(text => opened(text, settings)));
  const zeros = new client.Words(n => new BigUint64Array(n));
  const errorWith = async (changed, text = texts[0], settings = {memory}) =>
    nameOfError((await opened(text, {...settings, ...changed})).report(row, "cash"));
  const given = await Promise.all(Array.from({length: 8}, (_, i) => first.report(i % 2 ? row : null, "cash")));
  const again = await opened(texts[0], {memory, maxEpsilon: 9, lifetimeEpsilon: 9});
  given.push(await again.report(row, "card", {holder: " \\u200b"}));
  const unstated = {memory: new client.ForgetfulMemory(), maxEpsilon: 1};
  await (await opened(texts[0], unstated)).report(row, "cash");
  return {
    over: await errorWith({}, texts[2], unstated),
    lines: given.map(report => report.toJson()),
    other: await nameOfError(other.report(row, "cash")),
    next: (await next.report(row, "cash")).protocol,
    last: await nameOfError(last.report(row, "cash")),
    somebody: (await last.report(row, "cash", {holder: "somebody"})).protocol,
    simulated: await errorWith({words: zeros}),
    unkept: await errorWith({memory: {update: async () => { throw Error(); }}}),
    damaged: await Promise.all([{}, {version: 1, lifetime: 0, answers: {}}, {version: 1, lifetime: null, answers: {a: {}}}]
      .map(content => errorWith({memory: {update: async (change) => change(content)}}))),
  }; }"""


def test_a_round_is_answered_once_within_a_lifetime(run: Run) -> None:
    protocols = [
        protocol_of("oue"),
        protocol_of("grr"),
        replace(protocol_of("oue"), campaign="another"),
        replace(protocol_of("oue"), campaign=None),
    ]
    kept = run(ASKED_TWICE, {"texts": [protocol.to_json() for protocol in protocols], "row": X})
    assert len(set(kept["lines"])) == 1
    assert kept["other"] == "ProtocolMismatch"
    assert kept["next"] == protocols[2].digest
    assert kept["over"] == "BudgetError"
    assert (kept["last"], kept["somebody"]) == ("BudgetError", protocols[3].digest)
    assert (kept["simulated"], kept["unkept"], kept["damaged"]) == ("ConfigError", "Error", ["DataError"] * 3)


def test_a_report_is_sent_until_it_is_received_and_then_no_more(run: Run) -> None:
    sent = run(
        """async ({text, row}) => {
          const of = await opened(text);
          const [bodies, statuses] = [[], [500, 0, 200, 204, 204]];
          const fetch = async (url, options) => {
            const status = statuses.shift();
            bodies.push([url, options.body, options.credentials]);
            if (!status) throw new TypeError("no network");
            return {status}; };
          const early = await nameOfError(of.send("/reports", {fetch}));
          const line = (await of.report(row, "cash")).toJson();
          const ends = [];
          for (let i = 0; i < 6; i++) ends.push(await of.send("/reports", {fetch}));
          return {early, line, ends, bodies}; }""",
        {"text": protocol_of("oue").to_json(), "row": X},
    )
    assert sent["early"] == "DataError"
    assert sent["ends"] == [False, False, False, True, True, True]
    assert sent["bodies"] == [["/reports", sent["line"] + "\n", "omit"]] * 4


def test_the_package_needs_nothing_and_is_small() -> None:
    """Without comments and blanks, as every bundler takes them out before it renames anything."""
    package = json.loads((FOLDER / "package.json").read_text())
    assert not {key for key in package if "ependencies" in key}
    sources = "".join(path.read_text() for path in MODULES)
    imported = set(re.findall(r'from "([^"]+)"', sources))
    assert imported <= {f"./{path.name}" for path in MODULES}
    bare = re.sub(r"/\*\*.*?\*/|(?<=[\s;{,])// [^\n]*", "", sources, flags=re.DOTALL)
    bare = re.sub(r"\s*([{}()\[\],;:=<>?&|+*/!-]|\n)\s*", r"\1", bare)
    assert len(gzip.compress(bare.encode())) <= MOST_BYTES


@pytest.mark.slow
@pytest.mark.browser
def test_a_browser_remembers_over_a_reload_and_two_tabs_give_one_report(browser: Any, intake: Any) -> None:
    url, _, _ = intake
    context = browser.new_context()
    tabs = [context.new_page(), context.new_page()]
    for tab in tabs:
        tab.goto(f"{url}/package.json")
    ask = """async (texts) => {
      const memory = new client.BrowserMemory();
      const reports = await Promise.all(Array.from({length: 5}, async () =>
        (await (await opened(texts[0], {memory, lifetimeEpsilon: 1})).report(null, null)).toJson()));
      return [...new Set(reports), await nameOfError((await opened(texts[1], {memory, lifetimeEpsilon: 5})).report(null, null))];
    }"""
    texts = [protocol_of("oue").to_json(), replace(protocol_of("oue"), campaign="another").to_json()]
    first = run_in_page(tabs[0], ask, texts)
    assert first[1:] == ["BudgetError"]
    tabs[0].reload()
    assert [run_in_page(tab, ask, texts) for tab in tabs] == [first, first]
    context.close()
    fresh = browser.new_context().new_page()
    fresh.goto(f"{url}/package.json")
    assert run_in_page(fresh, ask, texts) != first
    fresh.context.close()


@pytest.mark.slow
@pytest.mark.browser
def test_nothing_is_given_out_that_the_browser_could_not_keep(browser: Any, intake: Any) -> None:
    url, _, _ = intake
    page = browser.new_page()
    page.goto(f"{url}/package.json")
    kept = run_in_page(
        page,
        """async (text) => {
          const memory = new client.BrowserMemory();
          const of = await opened(text, {memory});
          const put = IDBObjectStore.prototype.put;
          IDBObjectStore.prototype.put = function (...args) { put.apply(this, args); this.transaction.abort(); };
          const error = await nameOfError(of.report(null, null));
          IDBObjectStore.prototype.put = put;
          return [error, await memory.update(kept => kept) ?? null]; }""",
        protocol_of("oue").to_json(),
    )
    page.close()
    assert kept == ["DataError", None]
