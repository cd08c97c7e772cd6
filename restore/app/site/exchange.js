/**
 * Windows that overlap are restored together: each is told, of pixels that it shares, what the others make of them.
 * The same rounds of messages as in `restore denoise`, where their reasons are.
 */

import { alike } from "./alike.js";

/** Log-odds of a pixel that is known for certain. */
const CERTAIN = 1000;
/** Log-odds beyond which an answer in single precision says nothing more. */
const SURE = 16;
/** A window is done if windows say of each of its pixels on average with this probability what it is. */
const SETTLED = 0.7;

/** Windows to solve at a time: at first, and at most. */
const [FEW, MANY] = [4, 256];
/** Milliseconds that a batch of windows should take, so that progress is seen, and a restoration soon cancelled. */
const PATIENCE = 300;

/**
 * @typedef {Object} Answers what became of windows: their pixels one after the other, other values one a window
 * @property {Float32Array} means
 * @property {Float32Array} variances
 * @property {Int32Array} iterations in all rounds
 * @property {Float32Array} residual in the last round; infinite where there is no answer
 * @property {Uint8Array} converged
 * @property {Uint8Array} [solved] which windows were solved at all
 *
 * @typedef {(windows: Float32Array) => Promise<Answers>} Solve
 */

/**
 * The evidence for white of the pixels of an image, as log-odds.
 * @param {Float32Array} white 1 where a pixel was seen white, else 0
 * @param {number} p probability that it was inverted
 * @param {Uint8Array} mask 1 where nothing was seen
 */
export function logOdds(white, p, mask) {
  const strength = Math.min(CERTAIN, Math.log1p(-p) - Math.log(p));
  return white.map((value, i) => (mask[i] ? 0 : value ? strength : -strength));
}

/** Log-odds of a mean, limited to ±SURE. @param {number} mean */
export function logOddsOf(mean) {
  return Math.min(SURE, Math.max(-SURE, Math.log(mean) - Math.log1p(-mean)));
}

/**
 * What a window says of a pixel beyond what it was told; 0 where the pixel is certain.
 * @param {number} mean its answer
 * @param {number} temperature by which the answer's log-odds have been divided
 * @param {number} given the evidence that it was given
 * @param {number} evidence what was observed
 * @param {number} alone log-odds of the pixel if nothing is seen
 */
export function message(mean, temperature, given, evidence, alone) {
  return Math.abs(evidence) < SURE ? temperature * logOddsOf(mean) - given - alone : 0;
}

/** By how much evidence is strengthened for the first round. @param {Float32Array} evidence @param {number} least */
function strengthening(evidence, least) {
  let [sum, known] = [0, 0];
  for (const each of evidence) {
    sum += Math.abs(each);
    known += Number(each !== 0);
  }
  return known ? Math.max(1, (least * known) / sum) : 1;
}

/**
 * Restore windows of which each is solved by itself.
 * @param {Solve} solve
 * @param {Float32Array} windows
 * @param {number} size of a window
 * @param {number[]} rows the windows to solve
 * @param {Answers} answers where theirs are put
 * @param {(share: number) => void} watch
 */
async function solveRows(solve, windows, size, rows, answers, watch) {
  const groups = alike(windows, size, rows);
  let atOnce = FEW;
  for (let first = 0; first < groups.length; ) {
    const some = groups.slice(first, first + atOnce);
    const batch = new Float32Array(some.length * size);
    some.forEach(([row], k) => batch.set(windows.subarray(row * size, (row + 1) * size), k * size));
    const start = performance.now();
    const found = await solve(batch);
    const taken = performance.now() - start;
    some.forEach((group, k) => {
      for (const row of group) revise(answers, row, found, k, size);
    });
    first += some.length;
    watch(first / groups.length);
    if (taken < PATIENCE / 2) atOnce = Math.min(MANY, 2 * atOnce);
    if (taken > PATIENCE) atOnce = Math.max(1, atOnce >> 1);
  }
}

/** Put the answer of a later round in place of that of a window. */
function revise(answers, row, found, k, size) {
  for (const name of ["means", "variances"]) {
    answers[name].set(found[name].subarray(k * size, (k + 1) * size), row * size);
  }
  answers.iterations[row] += found.iterations[k];
  answers.residual[row] = found.residual[k];
  answers.converged[row] = found.converged[k];
  answers.solved[row] = 1;
}

/**
 * Restore the windows of an image.
 * @param {Solve} solve is given what windows were told, evidence or for a conditional prior grey values
 * @param {import("./tiles.js").Cover} cover
 * @param {Float32Array} padded what is known of the padded image
 * @param {{rounds: number, worth: number, least: number}} tiling without rounds, nothing is exchanged
 * @param {number} temperature by which log-odds of answers have been divided
 * @param {Float32Array} alone log-odds of a window's pixels if nothing is seen
 * @param {(share: number) => void} watch is told which share is done
 * @returns {Promise<Answers>}
 */
export async function solveWindows(solve, cover, padded, { rounds, worth, least }, temperature, alone, watch) {
  const { count, size } = cover;
  const answers = {
    means: new Float32Array(count * size),
    variances: new Float32Array(count * size),
    iterations: new Int32Array(count),
    residual: new Float32Array(count),
    converged: new Uint8Array(count),
    solved: new Uint8Array(count),
  };
  const all = Array.from({ length: count }, (_, row) => row);
  const stronger = rounds ? strengthening(padded, least) : 1;
  const given = cover.cut(padded.map((each) => stronger * each));
  const solved = (round, rows) =>
    solveRows(solve, given, size, rows, answers, (share) => watch((round + share) / (rounds + 1)));
  await solved(0, rounds ? cover.first() : all);
  for (let round = 1; round <= rounds; round++) {
    const rows = tell(cover, padded, given, answers, worth, temperature, alone, stronger > 1);
    await solved(round, rows);
  }
  watch(1);
  return answers;
}

/** Whether a window has an answer. @param {Answers} answers @param {number} row */
export const isSound = ({ solved, residual }, row) => Boolean(solved[row]) && Number.isFinite(residual[row]);

/**
 * Change what windows are given by what the others make of their pixels.
 * @param {boolean} every whether solved windows are told, too, if all of their pixels are settled
 * @returns {number[]} the windows that were told something new
 */
function tell(cover, evidence, given, answers, worth, temperature, alone, every) {
  const { count, size } = cover;
  const said = (row, place, i) =>
    message(answers.means[row * size + i], temperature, given[row * size + i], evidence[place], alone[i]);
  const [messages, means] = [new Float64Array(cover.padded), new Float64Array(cover.padded)];
  const windows = new Uint16Array(cover.padded);
  for (let row = 0; row < count; row++) {
    if (!isSound(answers, row)) continue;
    cover.each(row, (place, i) => {
      messages[place] += said(row, place, i);
      means[place] += answers.means[row * size + i];
      windows[place] += 1;
    });
  }
  const rows = [];
  const told = new Float32Array(size);
  for (let row = 0; row < count; row++) {
    const own = Number(isSound(answers, row));
    const solved = Boolean(answers.solved[row]);
    let doubted = every && solved;
    let fresh = !solved;
    cover.each(row, (place, i) => {
      const others = messages[place] - (own && said(row, place, i));
      told[i] = evidence[place] + (worth * others) / Math.max(1, windows[place] - own);
      fresh ||= told[i] !== given[row * size + i];
      doubted ||= !(Math.abs(means[place] / windows[place] - 0.5) >= SETTLED - 0.5);
    });
    if (!doubted || !fresh) continue;
    given.set(told, row * size);
    rows.push(row);
  }
  return rows;
}
