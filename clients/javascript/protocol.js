/** A published protocol: its text is read strictly, every part checked, the epsilon computed from its integers.
 *
 * Whole numbers become BigInt, as the text tells 1 from 1.0 and plain JSON.parse does not.
 */
import { MECHANISMS } from "./mechanisms.js";

/** Errors by who can do something about them, with the names of the Python client. */
export class LdptreeError extends Error {}
export class BudgetError extends LdptreeError {}
export class ConfigError extends LdptreeError {}
export class DataError extends LdptreeError {}
export class ProtocolMismatch extends LdptreeError {}

const LARGEST = 1e60; // of a public model's sums, so that a residual is a number
const TOKEN = /("(?:[^"\\]|\\.)*")(:?)|-?\d[\d.eE+-]*/g;

function demand(holds, part) {
  if (!holds) throw new ProtocolMismatch(`protocol refused: its ${part} is not valid; fetch it again from its publisher`);
}

/** The values in a canonical JSON text. Any other text is refused, as two readers could understand it differently. */
function parse(text) {
  const mark = (token, string, colon) => {
    if (string) return colon ? token : `"$${token.slice(1)}`;
    return /^-?\d{1,4300}$/.test(token) ? `"#${token}"` : token;
  };
  const unmark = (_, value) => (isText(value) ? (value[0] === "#" ? BigInt : String)(value.slice(1)) : value);
  let data;
  try {
    data = JSON.parse(text.replace(TOKEN, mark), unmark);
    if (canonical(data) !== text) data = null;
  } catch { /* not JSON, or nested too deep */ }
  demand(data, "text");
  return data;
}

/** JSON with sorted keys, no spaces, ASCII only, numbers as Python writes them. */
function canonical(value) {
  if (isWhole(value)) return String(value);
  if (isNumber(value)) return spelled(value);
  if (Array.isArray(value)) return `[${value.map(canonical)}]`;
  if (isObject(value)) return `{${Object.keys(value).sort().map((key) => `${canonical(key)}:${canonical(value[key])}`)}}`;
  demand(!isText(value) || value.isWellFormed(), "text");
  const escaped = (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, 0)}`;
  return JSON.stringify(value).replace(/[\x7f-\uffff]/g, escaped);
}

function spelled(x) {
  const [digits, exponent] = x.toExponential().split("e");
  if (x && (exponent < -4 || exponent > 15)) return `${digits}e${exponent[0]}${exponent.slice(1).padStart(2, 0)}`;
  return (Object.is(x, -0) ? "-0" : x) + (Number.isInteger(x) ? ".0" : "");
}

export const hexOf = (buffer) => Array.from(new Uint8Array(buffer), (byte) => byte.toString(16).padStart(2, 0)).join("");

const LEVELS = ["bigint", "number", "string", "boolean"];
const [isWhole, isNumber, isText, isFlag] = LEVELS.map((kind) => (v) => typeof v === kind);
const isLevel = (v) => LEVELS.includes(typeof v);
const isObject = (v) => v !== null && typeof v === "object" && !Array.isArray(v);
const isList = (is) => (v) => Array.isArray(v) && v.every(is);
const orNull = (is) => (v) => v === null || is(v);
const either = (...values) => (v) => values.includes(v);
const [areWhole, areNumbers, areLevels] = [isWhole, isNumber, isLevel].map(isList);

const FIELDS = {
  version: either(1n), rounds: (v) => areWhole(v) && either("1", "2")(String(v)), encoding: isObject, partition: isObject,
  target: isText, classes: areLevels, positive: orNull(isLevel), mechanism: isText, oracle: orNull(isText), k: isWhole,
  thresholds: isObject, epsilon: isNumber, epsilon_exact: isNumber, outside: either("clip", "drop"), holder: isText,
  campaign: (v) => v !== "" && orNull(isText)(v), digest: isText,
};
const OPTIONAL = { simulation: either(true), numeric: either(true), asked: areWhole, base: isObject };
const FEATURES = {
  numeric: { minimum: isNumber, maximum: isNumber, fill: orNull(isNumber), indicator: isFlag },
  categorical: { levels: areLevels, fill: orNull(isWhole), missing_level: isFlag },
};
const TREE = { feature: areWhole, threshold: areNumbers, left: areWhole, right: areWhole };
const TREES = { ...TREE, value: isList(areNumbers), roots: areWhole, offset: areNumbers, link: isText };
const BASE = { trees: isObject, labels: areLevels, output: (v) => isWhole(v) || v === "drawn" };

function checkFields(data, part, needed, optional = {}) {
  const kinds = { ...needed, ...optional };
  const isKnown = (name) => Object.hasOwn(kinds, name) && kinds[name](data[name]);
  const isThere = (name) => Object.hasOwn(data, name);
  demand(isObject(data) && Object.keys(needed).every(isThere) && Object.keys(data).every(isKnown), part);
}

/** Levels that Python takes for equal have one name: 1, 1.0 and True. */
function nameOf(level) {
  if (isText(level)) return `"${level}`;
  return String(isFlag(level) || Number.isInteger(level) ? BigInt(level) : level);
}
const areDistinct = (levels) => new Set(levels.map(nameOf)).size === levels.length;

function readFeature(feature) {
  const { kind, minimum, maximum, indicator, fill, levels, missing_level: missing } = feature;
  demand(Object.hasOwn(FEATURES, kind), "encoding");
  checkFields(feature, "encoding", { kind: isText, column: isText, ...FEATURES[kind] });
  const isFill = fill === null ? !indicator : !missing && (!levels || (0n <= fill && fill < levels.length));
  demand(isFill && (levels ? levels.length && areDistinct(levels) : minimum <= maximum), `column "${feature.column}"`);
  return { ...feature, size: (levels?.length ?? 1) + (missing || indicator ? 1 : 0) };
}

/** The nodes as plain numbers. Each is a root or the child of one earlier node, so that every walk ends at a leaf. */
function readNodes(data, roots, nColumns, part) {
  const [feature, left, right] = [data.feature, data.left, data.right].map((list) => list.map(Number));
  const [n, isLinked] = [feature.length, []];
  let nLinked = 0;
  const link = (node, after) => {
    demand(node > after && node < n && !isLinked[node], part);
    isLinked[node] = true;
    nLinked++;
  };
  demand([left, right, data.threshold].every((list) => list.length === n), part);
  for (const root of roots) link(root, -1);
  feature.forEach((column, i) => {
    demand(-1 <= column && column < nColumns, part);
    if (column >= 0) [left[i], right[i]].forEach((child) => link(child, i));
    else demand(left[i] === -1 && right[i] === -1 && Object.is(data.threshold[i], 0), part);
  });
  demand(n && nLinked === n, part);
  let [nCells, nInner] = [0, 0];
  const place = feature.map((column) => (column < 0 ? nCells++ : nInner++)); // of a leaf its cell
  return { feature, left, right, threshold: data.threshold, roots, place, nCells };
}

function readBase(data, nColumns) {
  checkFields(data, "base", BASE, { contrasts: (v) => isList(areLevels)(v) && v.length });
  const { labels, output, contrasts = [], trees } = data;
  checkFields(trees, "base", TREES);
  const { feature, value, offset, link } = trees;
  const roots = trees.roots.map(Number);
  const [c, m] = [labels.length, offset.length];
  const isLeaf = feature.map((column) => column === -1n);
  const nInner = isLeaf.filter((leaf) => !leaf).length;
  const spread = (list, filler) => { // from inner nodes to all
    let at = 0;
    demand(list.length === nInner, "base (trees)");
    return isLeaf.map((leaf) => (leaf ? filler : list[at++]));
  };
  const [threshold, left, right] = [spread(trees.threshold, 0), spread(trees.left, -1n), spread(trees.right, -1n)];
  const tree = readNodes({ feature, threshold, left, right }, roots, nColumns, "base");
  const isContrast = (along) => either(2, 4)(along.length) && !(along[0] >= along[2])
    && along.every((v, i) => (i % 2 ? isNumber(v) : isWhole(v) && v >= 0 && v < nColumns));
  const nResiduals = contrasts.length || (c > 2 ? c : 1);
  demand(value.length === tree.nCells && value.every((row) => row.length === m), "base (value)");
  demand(c !== 1 && areDistinct(labels) && (c > 2 ? m === c : m === 1 || (c === 2 && m === 2)), "base (labels)");
  demand(link === "identity" || (c && link === (m === 1 ? "logistic" : "softmax")), "base (link)");
  const areSmall = (numbers, times) => numbers.every((x) => Math.abs(x) * times <= LARGEST);
  demand(areSmall(value.flat(), roots.length) && areSmall(offset, 1), "base (value)");
  demand(contrasts.every(isContrast) && areDistinct(contrasts.map(String)) && (!contrasts.length || c <= 2), "base (contrasts)");
  demand(output === "drawn" ? nResiduals > 1 : output >= 0 && output < nResiduals, "base (output)");
  return { tree, value, offset, link, labels, contrasts, nResiduals, output: Number(output) }; // NaN: drawn
}

/** The levels of a number: equally spaced, the lowest first. */
function areEven(classes) {
  const [low, high, n] = [classes[0], classes.at(-1), classes.length - 1];
  return areNumbers(classes) && low < high && high - low < Infinity
    && classes.every((x, i) => Math.abs(x - low - (i * (high - low)) / n) <= 1e-9 * (high - low));
}

function readMechanism({ mechanism: name, oracle, classes, k, thresholds, numeric, base }, nCells) {
  const isJoint = name === "joint";
  const chosen = isJoint ? oracle : name;
  const mechanism = Object.hasOwn(MECHANISMS, chosen) && MECHANISMS[chosen];
  demand(mechanism && (isJoint || oracle === null) && isJoint === !!mechanism.isJoint, "mechanism");
  const isThreshold = (v) => isText(v) && /^(0|[1-9]\d{0,19})$/.test(v);
  checkFields(thresholds, "thresholds", Object.fromEntries(mechanism.thresholds.map((each) => [each, isThreshold])));
  const question = { cells: BigInt(nCells), classes: BigInt(classes.length), k };
  for (const each of mechanism.thresholds) question[each] = BigInt(thresholds[each]);
  question.levels = question.steps ? question.steps + 1n : question.classes;
  demand(k === question.cells * question.classes + 1n && question.cells * question.levels < 2n ** 31n, "alphabet");
  demand(nCells * (3000 + 700 * classes.length) <= 3 * 2 ** 30, "alphabet"); // more than a curator can add up
  demand(mechanism.isPossible(question) && (!mechanism.isOfNumber || numeric), "thresholds");
  demand(!base || (numeric && (isJoint || mechanism.isOfResiduals)), "base");
  return { name: chosen, mechanism, question };
}

/** The protocol in its published text, byte for byte.
 * @throws {ProtocolMismatch} it is none, or not whole, or its coins spend more than it claims
 */
export async function readProtocol(text) {
  const data = parse(text);
  checkFields(data, "content", FIELDS, OPTIONAL);
  const { digest, ...content } = data;
  const { classes, positive, asked = [0n, 999n], rounds, numeric, base } = data;
  const bytes = new TextEncoder().encode(canonical(content));
  demand(digest === hexOf(await crypto.subtle.digest("SHA-256", bytes)), "digest");
  checkFields(data.encoding, "encoding", { features: isList(isObject) });
  const features = data.encoding.features.map(readFeature);
  const columns = features.map((feature) => feature.column);
  demand(columns.length && areDistinct([...columns, data.target]), "columns");
  const nColumns = features.reduce((sum, feature) => sum + feature.size, 0);
  checkFields(data.partition, "partition", TREE);
  const partition = readNodes(data.partition, [0], nColumns, "partition");
  if (either("laplace", "number_laplace")(data.mechanism)) {
    throw new ConfigError("this protocol is of a simulation, and its noise gives holders away: no client answers it");
  }
  const { name, mechanism, question } = readMechanism(data, partition.nCells);
  demand(classes.length > 1 && areDistinct(classes) && (!numeric || areEven(classes)), "classes");
  demand(positive === null || (!numeric && !areDistinct([positive, ...classes])), "positive class");
  const [from, to] = asked;
  demand(asked.length === 2 && from >= 0n && from < to && to <= 1000n && to - from < 1000n, "asked");
  const epsilon = mechanism.epsilon(question);
  demand(data.epsilon_exact === epsilon && epsilon <= data.epsilon, `epsilon (its coins spend ${epsilon})`);
  const labels = base ? base.labels : numeric ? [] : classes;
  const read = { round: Number(rounds[0]), features, columns, labels, partition, base: base && readBase(base, nColumns) };
  return { ...data, ...read, name, mechanism, question, epsilon };
}
