/** Mechanisms: what a holder sends about a value, by integers alone. One entry each, by the name that a protocol gives it.
 *
 * A question is {cells, classes, k} and its thresholds, all BigInt. `isPossible` says which integers are allowed, `epsilon`
 * what they spend, `draw` gives the bytes of a report. Words are taken in the order of the Python client, so that the same
 * words give the same bytes.
 */
import { RATE_UNIT, WORD, drawLaplace, furthestLaplace, logUp, roundedUp, sumUp } from "./coins.js";

const PRIME = 2n ** 31n - 1n;
const COMMON_DIGITS = 7; // as in the Python client, which draws the first digits of all lanes together
const isCoin = (threshold) => 1n <= threshold && threshold < WORD;
const isRate = (rate) => 90n <= rate && rate <= 2n ** 40n; // below, noise does not fit into 32 bits

/** Whole numbers as 32 bits each, the lowest byte first. */
function packNumbers(numbers) {
  const view = new DataView(new ArrayBuffer(4 * numbers.length));
  numbers.forEach((number, i) => view.setInt32(4 * i, Number(BigInt.asIntN(32, number)), true));
  return new Uint8Array(view.buffer);
}
const emptyBits = (k) => new Uint8Array(Math.ceil(Number(k) / 8));
const setBit = (bytes, place) => { bytes[place >> 3] |= 1 << (place & 7); };
const hasBit = (bytes, place) => (bytes[place >> 3] >> (place & 7)) & 1;
const clip = (x, low, high) => (x < low ? low : x > high ? high : x);

/** Generalised randomised response: the value, or with the coin `lie` a uniform one. */
function respond(value, k, lie, words) {
  return words.isHeads(lie) ? words.below([k])[0] : value;
}
const grrEpsilon = (k, lie) => logUp(lie + k * (WORD - lie), lie);

/** k bits, the value's by the coin `own`, each other by `other`. A coin is decided digit by digit, 64 coins side by side. */
function drawBits(value, k, own, other, words) {
  const nLanes = Math.ceil(Number(k) / 64);
  const size = Math.min(Math.trunc(1.1 * (1 + nLanes * 8)), 2 ** 16) + 1 + 64 * nLanes; // of Python's block
  const block = words.block(size);
  let at = 0;
  const isOwn = block[at++] < own;
  const bits = new BigUint64Array(nLanes);
  const undecided = new BigUint64Array(nLanes).fill(WORD - 1n);
  const compare = (lane, digit) => {
    const word = block[at++];
    const isOne = (other >> BigInt(63 - digit)) & 1n;
    if (isOne) bits[lane] |= undecided[lane] & ~word;
    undecided[lane] &= isOne ? word : ~word;
  };
  for (let digit = 0; digit < COMMON_DIGITS; digit++) for (let lane = 0; lane < nLanes; lane++) compare(lane, digit);
  for (let lane = 0; lane < nLanes; lane++) {
    for (let digit = COMMON_DIGITS; digit < 64 && undecided[lane]; digit++) compare(lane, digit);
  }
  const report = emptyBits(k);
  for (let i = 0; i < k; i++) if (BigInt(i) === value ? isOwn : (bits[i >> 6] >> BigInt(i & 63)) & 1n) setBit(report, i);
  return report;
}
const bitsEpsilon = (own, other) => logUp(own * (WORD - other), other * (WORD - own));
const areBits = (own, other) => 1n <= other && other < own && own < WORD;

/** Add to a set the places that make it full, the own one left out, by Floyd's algorithm. */
function fill(own, n, drawn, from, isTaken, add) {
  const beside = (place) => place + Number(place >= own); // the others from the own one on stand one place higher
  for (let i = from; i < drawn.length; i++) {
    const place = beside(drawn[i]);
    add(isTaken(place) ? beside(n - 1 - drawn.length + i) : place, i);
  }
}
function drawPlaces(n, size, words) {
  return words.below(Array.from({ length: Number(size) }, (_, i) => n - size + BigInt(i))).map(Number);
}
const isSubset = (k, size, own) => 1n <= size && size < k && size * WORD < own * k && own < WORD;
const subsetEpsilon = (k, size, own) => logUp(own * (k - size), (WORD - own) * size);

/** The cell's bits, one more for "outside", each flipped apart. */
const drawCell = (cell, q, words) => drawBits(cell, q.cells + 1n, WORD - q.bit_other, q.bit_other, words);
const isCell = (q) => areBits(WORD - q.bit_other, q.bit_other);
const cellEpsilon = (q) => bitsEpsilon(WORD - q.bit_other, q.bit_other);

const unary = {
  thresholds: ["own", "other"],
  isJoint: true,
  isPossible: (q) => areBits(q.own, q.other),
  epsilon: (q) => bitsEpsilon(q.own, q.other),
  draw: (value, q, words) => drawBits(value, q.k, q.own, q.other, words),
};

export const MECHANISMS = {
  grr: {
    thresholds: ["lie"],
    isJoint: true,
    isPossible: (q) => isCoin(q.lie),
    epsilon: (q) => grrEpsilon(q.k, q.lie),
    draw: (value, q, words) => packNumbers([respond(value, q.k, q.lie, words)]),
  },
  oue: unary,
  sue: unary,
  ss: {
    thresholds: ["size", "own"],
    isJoint: true,
    isPossible: (q) => isSubset(q.k, q.size, q.own),
    epsilon: (q) => subsetEpsilon(q.k, q.size, q.own),
    draw(value, q, words) {
      const [own, report, hasOwn] = [Number(value), emptyBits(q.k), words.isHeads(q.own)];
      const drawn = drawPlaces(q.k, q.size, words);
      fill(own, Number(q.k), drawn, Number(hasOwn), (place) => hasBit(report, place), (place) => setBit(report, place));
      if (hasOwn) setBit(report, own);
      return report;
    },
  },
  olh: {
    thresholds: ["buckets", "lie"],
    isJoint: true,
    isPossible: (q) => q.k <= PRIME && 2n <= q.buckets && q.buckets <= 2n ** 15n && isCoin(q.lie),
    epsilon: (q) => grrEpsilon(q.buckets, q.lie),
    draw(value, q, words) {
      const hash = words.below([PRIME, PRIME, PRIME]);
      return packNumbers([...hash, respond(bucketOf(value, hash, q.buckets), q.buckets, q.lie, words)]);
    },
  },
  signed_subset: {
    thresholds: ["size", "own"],
    isOfResiduals: true,
    isPossible: (q) => q.classes === 2n && isSubset(2n * (q.cells + 1n), q.size, q.own) && q.size <= q.cells,
    epsilon: (q) => subsetEpsilon(2n * (q.cells + 1n), q.size, q.own),
    draw(value, q, words) {
      const [m, own] = [q.cells + 1n, Number(value / 2n)];
      const label = value / 2n === q.cells ? words.below([2n])[0] : value % 2n;
      const hasOwn = words.isHeads(q.own);
      const hasOther = words.below([2n * m - q.size])[0] < q.size;
      const drawn = drawPlaces(m, q.size, words);
      const coins = words.block(Math.ceil(drawn.length / 64));
      const report = emptyBits(2n * m);
      const isTaken = (cell) => hasBit(report, 2 * cell) || hasBit(report, 2 * cell + 1);
      const add = (cell, i) => setBit(report, 2 * cell + Number((coins[i >> 6] >> BigInt(i & 63)) & 1n));
      fill(own, Number(m), drawn, Number(hasOwn || hasOther), isTaken, add);
      if (hasOwn || hasOther) setBit(report, 2 * own + Number(hasOwn ? label : 1n - label));
      return report;
    },
  },
  discrete_laplace: {
    thresholds: ["rate"],
    isPossible: (q) => isRate(q.rate),
    epsilon: (q) => roundedUp(4n * q.rate, RATE_UNIT),
    draw(value, q, words) {
      const numbers = drawLaplace(q.rate, Number(q.k) - 1, words);
      const [cell, label, bound] = [value / q.classes, value % q.classes, furthestLaplace(q.rate)];
      if (value < q.k - 1n) numbers[cell] += 1n;
      if (value < q.k - 1n && label) numbers[label * q.cells + cell] += 1n;
      return packNumbers(numbers.map((x) => clip(x, -bound, bound + 1n)));
    },
  },
  number_response: {
    thresholds: ["bit_other", "rate", "steps"],
    isOfNumber: true,
    isPossible: (q) => q.classes === 2n && isRate(q.rate) && 1n <= q.steps && q.steps <= 2n ** 16n && isCell(q),
    epsilon: (q) => sumUp([cellEpsilon(q)], q.steps * q.rate),
    draw(value, q, words) {
      const [cell, bound] = [value / (q.steps + 1n), furthestLaplace(q.rate)];
      const level = cell === q.cells ? q.steps / 2n : value % (q.steps + 1n);
      const [noise] = drawLaplace(q.rate, 1, words);
      const sent = packNumbers([clip(level + noise, -bound, q.steps + bound)]);
      return Uint8Array.from([...sent, ...drawCell(cell, q, words)]);
    },
  },
  randomized_response: {
    thresholds: ["bit_other", "label_lie"],
    isPossible: (q) => isCoin(q.label_lie) && isCell(q),
    epsilon: (q) => sumUp([cellEpsilon(q), grrEpsilon(q.classes, q.label_lie)]),
    draw(value, q, words) {
      const cell = value / q.classes;
      const label = cell === q.cells ? words.below([q.classes])[0] : value % q.classes;
      const sent = packNumbers([respond(label, q.classes, q.label_lie, words)]);
      return Uint8Array.from([...sent, ...drawCell(cell, q, words)]);
    },
  },
};

function bucketOf(x, [a, b, c], buckets) {
  return (((a * x * x + b * x + c) % PRIME) * buckets) / PRIME;
}
