/** Exact randomness: coins as integers, Laplace noise on the integers, and the epsilon of integers, rounded up.
 *
 * A coin of threshold t shows heads where a uniform 64-bit word is below t. Words and thresholds are BigInt: a double has
 * 53 bits, and what it rounds away would tell holders apart.
 */
export const WORD = 2n ** 64n;
export const RATE_UNIT = 2n ** 32n;
const AT_ONCE = 8192; // getRandomValues gives 65,536 bytes at most
const PRECISION = 256n; // bits after the point of logarithms; a double needs 53
const SLACK = (1n << PRECISION) / 10n ** 45n; // for what the series leaves out; as the Python client adds it

/** A source of uniform 64-bit words: the operating system's, by WebCrypto, or a simulation's own. */
export class Words {
  /** @param {(n: number) => BigUint64Array} [draw] the words of a simulation, which protect nobody. */
  constructor(draw) {
    this.isSeeded = draw !== undefined;
    this.block = draw ?? systemWords;
  }

  /** A uniform number below each of these, in this order. */
  below(ranges) {
    const drawn = [...this.block(ranges.length)];
    // words of the last, incomplete run would favour small numbers: they are drawn again
    const isRejected = (i) => drawn[i] >= WORD - (WORD % ranges[i]);
    let open = upTo(ranges.length).filter(isRejected);
    while (open.length) {
      this.block(open.length).forEach((word, i) => { drawn[open[i]] = word; });
      open = open.filter(isRejected);
    }
    return drawn.map((word, i) => word % ranges[i]);
  }

  isHeads(threshold) {
    return this.block(1)[0] < threshold;
  }
}

function systemWords(n) {
  const words = new BigUint64Array(n);
  for (let i = 0; i < n; i += AT_ONCE) crypto.getRandomValues(words.subarray(i, i + AT_ONCE));
  return words;
}

const upTo = (n) => [...Array(n).keys()];

/** n noises with P(x) ~ exp(-rate / 2^32 |x|) (Canonne, Kamath and Steinke 2020, algorithm 2). */
export function drawLaplace(rate, n, words) {
  const noise = new Array(n);
  let open = upTo(n);
  while (open.length) {
    const magnitudes = drawGeometric(open.length, words).map((x) => x / rate);
    const isNegative = Array.from(words.block(open.length), (word) => word >> 63n === 1n);
    open.forEach((place, i) => { noise[place] = isNegative[i] ? -magnitudes[i] : magnitudes[i]; });
    open = open.filter((_, i) => isNegative[i] && magnitudes[i] === 0n); // zero has one sign only
  }
  return noise;
}

/** n numbers with P(x) ~ e^(-x / 2^32): a fraction kept with probability e^-fraction, then whole units. */
function drawGeometric(n, words) {
  const numbers = new Array(n);
  let open = upTo(n);
  while (open.length) {
    const drawn = Array.from(words.block(open.length), (word) => word >> 32n);
    const isKept = exponentialCoins(drawn, words);
    open.forEach((place, i) => { numbers[place] = drawn[i]; });
    open = open.filter((_, i) => !isKept[i]);
  }
  for (open = upTo(n); open.length;) {
    const isOn = exponentialCoins(open.map(() => RATE_UNIT), words);
    open = open.filter((_, i) => isOn[i]);
    for (const place of open) numbers[place] += RATE_UNIT;
  }
  return numbers;
}

/** Heads with probability e^(-x / 2^32) for each x (algorithm 1): the first tails come in an odd round. */
function exponentialCoins(xs, words) {
  const isOdd = xs.map(() => false);
  let open = upTo(xs.length);
  for (let k = 1n; open.length; k += 1n) {
    const drawn = words.below(open.map(() => k * RATE_UNIT));
    const isHeads = open.map((place, i) => drawn[i] < xs[place]);
    open.forEach((place, i) => { isOdd[place] = !isHeads[i] && k % 2n === 1n; });
    open = open.filter((_, i) => isHeads[i]);
  }
  return isOdd;
}

/** Beyond 64 ln 2 / r lies one noise in 2^64: numbers are cut off there. */
export function furthestLaplace(rate) {
  const divisor = rate << PRECISION;
  return (64n * LN2 * RATE_UNIT + divisor - 1n) / divisor;
}

/** The smallest double that is surely at least ln(numerator / denominator), for a ratio above 1. */
export function logUp(numerator, denominator) {
  let [top, halvings] = [numerator, 0n];
  while (top > 2n * denominator) [denominator, halvings] = [2n * denominator, halvings + 1n];
  return roundedUp(halvings * LN2 + logNearOne(top, denominator) + SLACK, 1n << PRECISION);
}

/** ln(a / b) in units of 2^-PRECISION, for a / b from 1 to 2: 2 artanh((a - b) / (a + b)). */
function logNearOne(a, b) {
  const z = ((a - b) << PRECISION) / (a + b);
  const square = (z * z) >> PRECISION;
  let sum = 0n;
  for (let power = z, n = 1n; power; power = (power * square) >> PRECISION, n += 2n) sum += power / n;
  return 2n * sum;
}
const LN2 = logNearOne(2n, 1n);

/** The smallest double that is at least this positive fraction. */
export function roundedUp(numerator, denominator) {
  const shift = BigInt(numerator.toString(2).length - denominator.toString(2).length - 53);
  for (let exponent = shift; ; exponent += 1n) {
    const [top, bottom] = exponent < 0n ? [numerator << -exponent, denominator] : [numerator, denominator << exponent];
    const digits = (top + bottom - 1n) / bottom;
    if (digits <= 2n ** 53n) return Number(digits) * 2 ** Number(exponent);
  }
}

/** A sum of doubles and of a fraction of 2^32, exactly, and rounded up. */
export function sumUp(doubles, parts = 0n) {
  const exact = doubles.reduce((sum, double) => sum + BigInt(double * 2 ** 200), parts << 168n);
  return roundedUp(exact, 2n ** 200n);
}
