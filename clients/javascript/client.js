/** The holder's side in JavaScript, for browsers and Node, without any dependency: as `ldptree.client` in Python.
 *
 *     const text = await (await fetch("protocol.json")).text();
 *     const client = await Client.open(text, { maxEpsilon: 2, lifetimeEpsilon: 4, memory: new BrowserMemory() });
 *     await client.report({ trip_miles: 3.2, company: "Flash Cab" }, "Cash");
 *     await client.send("/reports");
 *
 * Coins are those of WebCrypto. A report is made once for each holder, campaign and round, and kept with its cost before it is
 * given out. Later calls return the same report: a second draw would be a second release.
 */
import { Words } from "./coins.js";
import { BrowserMemory, ForgetfulMemory, isAmount, keep } from "./memory.js";
import { BudgetError, ConfigError, DataError, LdptreeError, ProtocolMismatch, hexOf, readProtocol } from "./protocol.js";

export { BrowserMemory, BudgetError, ConfigError, DataError, ForgetfulMemory, LdptreeError, ProtocolMismatch, Words };

const UNITS = 1e12; // of an epsilon, as the Python client adds them up
const LEEWAY = 1e9; // what rounding explains over a lifetime is at most this fraction of it

/** The report of one holder in one round: its payload is bytes, which travel in base64. */
export class Report {
  constructor(fields) {
    Object.assign(this, fields);
  }

  /** One line of text. */
  toJson() {
    const { protocol, round, id, payload, output, simulation } = this;
    const report = btoa(Array.from(payload, (byte) => String.fromCharCode(byte)).join(""));
    return JSON.stringify({ protocol, round, id, report, output, simulation: simulation || undefined });
  }

  static fromJson(text) {
    const { report, simulation = false, ...fields } = JSON.parse(text);
    return new Report({ ...fields, simulation, payload: Uint8Array.from(atob(report), (c) => c.charCodeAt(0)) });
  }
}

/** Answers a protocol for the holders on this device. */
export class Client {
  #words;
  #memory;
  #unstated;

  /** A client that has checked the protocol.
   * @param {string} text the protocol's JSON as it was published, byte for byte
   * @param {object} settings
   * @param {number} settings.maxEpsilon the most a report may cost; compared with what the protocol's integers really spend
   * @param {{update: function}} settings.memory where reports and their costs are kept
   * @param {number} [settings.lifetimeEpsilon] the most that a holder may spend on all protocols together. The memory keeps
   *   it: the smallest that was ever stated holds
   * @param {Words} [settings.words] coins for a simulation; left out: the operating system's
   * @param {number} [settings.maxProtocolBytes] the longest protocol that is read
   * @throws {BudgetError | ConfigError | DataError | ProtocolMismatch} as in Python
   */
  static async open(text, { maxEpsilon, memory, lifetimeEpsilon, words = new Words(), maxProtocolBytes = 2 ** 22 }) {
    check(typeof memory?.update === "function", ConfigError, "memory: give new BrowserMemory()");
    check(words instanceof Words, ConfigError, "words: give new Words(draw), in a simulation only");
    check(text.length <= maxProtocolBytes, ProtocolMismatch, `protocol: over maxProtocolBytes = ${maxProtocolBytes}`);
    const protocol = await readProtocol(text);
    const { epsilon } = protocol;
    check(!protocol.simulation || words.isSeeded, ConfigError, "this protocol is of a simulation: no real holder answers it");
    check(isAmount(maxEpsilon, Number.MAX_VALUE), ConfigError, "maxEpsilon: must be a positive number");
    check(epsilon <= maxEpsilon, BudgetError, `a report costs epsilon ${epsilon}; at most ${maxEpsilon} is allowed here`);
    if (lifetimeEpsilon !== undefined) {
      check(isAmount(lifetimeEpsilon), ConfigError, "lifetimeEpsilon: must be a positive number, at most 1000");
      await keep(memory, (kept) => ({ ...kept, lifetime: Math.min(kept.lifetime ?? lifetimeEpsilon, lifetimeEpsilon) }));
    }
    const client = new Client();
    client.protocol = protocol;
    client.#words = words;
    client.#memory = memory;
    client.#unstated = Math.min(maxEpsilon, 1000);
    return client;
  }

  /** The one report of a holder; asked again it is the same, whatever row and label are by then.
   * @param {object | null} row raw values by column, null or NaN where one is missing; null for who has no row: that report is
   *   "outside", and nobody can tell it from others
   * @param {*} label one that is not declared, or is missing, is answered with "outside" too
   * @param {{holder?: string}} who it is about, where several use this device; stays here
   */
  async report(row, label, { holder = "" } = {}) {
    const question = this.#question(holder);
    const { answers } = await keep(this.#memory, (kept) => {
      if (kept.answers[question.key]) return kept;
      this.#checkLifetime(kept, question.holder);
      const report = this.#draw(row, label, this.#words).report.toJson();
      const answer = { holder: question.holder, epsilon: this.protocol.epsilon, report, isReceived: false };
      return { ...kept, answers: { ...kept.answers, [question.key]: answer } };
    });
    const report = Report.fromJson(answers[question.key].report);
    check(report.simulation === this.#words.isSeeded, ConfigError, "memory: keep simulated reports in a memory of their own");
    const isSame = report.protocol === this.protocol.digest;
    check(isSame, ProtocolMismatch, "this round is answered, under another protocol: a second report would spend epsilon twice");
    return report;
  }

  /** A report of a made-up row, which is marked as a simulation and never counted, and the value that it hides. */
  simulate(row, label) {
    return this.#draw(row, label, new Words(this.#words.block));
  }

  /** Send what `report` has kept, again after a restart, until it was received.
   * @returns {Promise<boolean>} true once the intake has acknowledged it (204); false: try again later
   */
  async send(url, { holder = "", fetch = globalThis.fetch } = {}) {
    const { key } = this.#question(holder);
    const { answers } = await keep(this.#memory, (kept) => kept);
    check(answers[key]?.report.includes(this.protocol.digest), DataError, "nothing is kept: call report first");
    if (answers[key].isReceived) return true;
    const options = { method: "POST", body: `${answers[key].report}\n`, credentials: "omit", referrerPolicy: "no-referrer" };
    const answered = await fetch(url, options).catch(() => null);
    if (answered?.status !== 204) return false;
    const received = (answer) => ({ ...answer, isReceived: true });
    await keep(this.#memory, (kept) => ({ ...kept, answers: { ...kept.answers, [key]: received(kept.answers[key]) } }));
    return true;
  }

  #question(name) {
    check(typeof name === "string", DataError, "holder: give a text");
    const holder = name.normalize("NFKC").replace(/\p{Default_Ignorable_Code_Point}/gu, "").trim();
    return { holder, key: JSON.stringify([holder, this.protocol.campaign ?? this.protocol.digest, this.protocol.round]) };
  }

  #checkLifetime({ lifetime, answers }, holder) {
    const own = Object.values(answers).filter((answer) => answer.holder === holder);
    const [asked, cap] = [unitsOf(this.protocol.epsilon), unitsOf(lifetime ?? this.#unstated)];
    const spent = own.reduce((sum, answer) => sum + unitsOf(answer.epsilon), 0);
    const rounding = Math.min(Math.floor((own.length + 2) / 2), Math.floor(cap / LEEWAY));
    const amounts = `a report costs epsilon ${asked / UNITS}; ${spent / UNITS} of a lifetime's ${cap / UNITS} is spent`;
    check(spent + asked - cap <= rounding, BudgetError, amounts);
  }

  /** In the order of the Python client: the output, the rounding, the mechanism, the id. */
  #draw(row, label, words) {
    const { base, mechanism, question, digest, round } = this.protocol;
    const [raw, target] = row === null ? [null, NaN] : [readRow(this.protocol, row), readLabel(this.protocol, label)];
    const output = Number.isNaN(base?.output) ? Number(words.below([BigInt(base.nResiduals)])[0]) : undefined;
    const value = valueOf(this.protocol, raw, target, output ?? base?.output, words);
    const payload = mechanism.draw(value, question, words);
    const id = hexOf(BigUint64Array.from(words.block(2)).buffer);
    return { value, report: new Report({ protocol: digest, round, id, payload, output, simulation: words.isSeeded }) };
  }
}

function check(holds, kind, message) {
  if (!holds) throw new kind(message);
}
const unitsOf = (epsilon) => Math.max(Math.round(epsilon * UNITS), 1);
const kindOf = (v) => (typeof v === "bigint" ? "number" : typeof v);

/** Numbers as they are, levels by their index, -1 where one is not listed; NaN is missing. */
function readRow({ features, columns }, row) {
  const names = Object.keys(row ?? {});
  const isWhole = names.length === columns.length && names.every((name) => columns.includes(name));
  check(isWhole, DataError, `a row is an object with the columns ${columns.join(", ")}; give null where a value is missing`);
  return features.map(({ column, levels }) => {
    const value = row[column];
    if (value === null || Number.isNaN(value)) return NaN;
    const kinds = levels?.map(kindOf) ?? ["number"];
    check(kinds.includes(kindOf(value)), DataError, `column "${column}": a ${typeof value} where a ${kinds[0]} is needed`);
    // as Python compares: 1, 1.0 and true are equal, a text equals texts only
    const isValue = (level) => level == value && (typeof level === "string") === (typeof value === "string");
    return levels ? levels.findIndex(isValue) : Number(value);
  });
}

/** The index of a label, NaN where it is not declared; or the number itself, NaN where it is missing. */
function readLabel({ labels }, label) {
  if (!labels.length) {
    check(label === null || kindOf(label) === "number", DataError, `label: a ${typeof label} where a number is needed`);
    return label === null ? NaN : Number(label);
  }
  const index = labels.findIndex((level) => kindOf(level) === kindOf(label) && level == label);
  return index < 0 ? NaN : index;
}

/** The value to randomise; the last one is "outside". Still private. */
function valueOf(protocol, raw, target, output, words) {
  const { base, question, numeric, classes, outside } = protocol;
  const x = raw && encode(protocol.features, raw);
  const isBeyond = (feature, i) => !feature.levels && (raw[i] < feature.minimum || raw[i] > feature.maximum);
  const hasCell = x && !(outside === "drop" && protocol.features.some(isBeyond));
  let label = base && x ? residualOf(base, x, target, output) : target;
  if (numeric) label = roundAtRandom(label, classes[0], classes.at(-1), Number(question.levels), words);
  if (!hasCell || Number.isNaN(label)) return question.cells * question.levels;
  const { partition } = protocol;
  return BigInt(partition.place[leafOf(partition, 0, x)]) * question.levels + BigInt(label);
}

/** The encoded columns; null where a value is missing and no rule fills it. */
function encode(features, raw) {
  const x = [];
  for (const [i, feature] of features.entries()) {
    const isMissing = Number.isNaN(raw[i]);
    if (isMissing && feature.fill === null && !feature.missing_level) return null;
    const value = isMissing && feature.fill !== null ? Number(feature.fill) : raw[i];
    if (feature.kind === "numeric") {
      x.push(scale(value, feature), ...(feature.indicator ? [Number(isMissing)] : []));
      continue;
    }
    const own = Number.isNaN(value) ? feature.levels.length : value;
    for (let level = 0; level < feature.size; level++) x.push(Number(level === own));
  }
  return x;
}

function scale(x, { minimum, maximum }) {
  if (minimum === maximum) return 0;
  const by = Number.isFinite(maximum - minimum) ? 1 : 2; // the distance of two doubles may be none
  const share = (x / by - minimum / by) / (maximum / by - minimum / by);
  return Math.fround(Math.min(Math.max(share, 0), 1));
}

function leafOf({ feature, threshold, left, right }, root, x) {
  let node = root;
  while (feature[node] >= 0) node = x[feature[node]] <= threshold[node] ? left[node] : right[node];
  return node;
}

/** The label less the public model's answer, along a contrast where there are any. */
function residualOf({ tree, value, offset, link, labels, contrasts }, x, target, output) {
  const sums = [...offset];
  for (const root of tree.roots) value[tree.place[leafOf(tree, root, x)]].forEach((v, i) => { sums[i] += v; });
  const of = contrasts.length ? 0 : output;
  const answer = linked(sums, link)[labels.length === 2 && sums.length === 2 ? 1 : of];
  const wanted = !labels.length || Number.isNaN(target) ? target : Number(target === (labels.length === 2 ? 1 : of));
  const along = contrasts[output] ?? []; // each column with its threshold
  return along.filter((v, i) => i % 2 && !(x[along[i - 1]] > v)).length === 1 ? answer - wanted : wanted - answer;
}

function linked(sums, link) {
  if (link === "logistic") return [1 / (1 + Math.exp(-Math.min(Math.max(sums[0], -700), 700)))];
  if (link === "identity") return sums;
  const odds = sums.map((sum) => Math.exp(sum - Math.max(...sums)));
  return odds.map((each) => each / odds.reduce((total, odd) => total + odd, 0));
}

/** One of two neighbours among equally spaced levels, the upper as often as it is near. Privacy holds whatever it is rounded
 * to, as the mechanism comes after: this coin alone may be a double.
 */
function roundAtRandom(label, low, high, nLevels, words) {
  const place = ((Math.min(Math.max(label, low), high) - low) / (high - low)) * (nLevels - 1);
  const below = Math.min(Math.floor(place), nLevels - 2);
  const uniform = Number(words.block(1)[0] >> 11n) * 2 ** -53;
  return below + Number(uniform < place - below);
}
