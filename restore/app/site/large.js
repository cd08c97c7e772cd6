/** Restoring an image of another size than the prior's in windows that overlap, whose answers are blended. */

import { alike } from "./alike.js";
import { Cover } from "./tiles.js";

/** An image is solved if all but so many of its windows are. */
const UNSOLVED = 0.01;
/** What stands in windows for a pixel of which nothing is seen, among 0 and 1. */
export const HIDDEN = 0.5;

/** Windows to solve at a time: at first, and at most. */
const [FEW, MANY] = [4, 256];
/** Milliseconds that a batch of windows should take, so that progress is seen, and a restoration soon cancelled. */
const PATIENCE = 300;

/**
 * @typedef {Object} Answers what became of windows: their pixels one after the other, other values one a window
 * @property {Float32Array} means
 * @property {Float32Array} variances
 * @property {Int32Array} iterations
 * @property {Float32Array} residual infinite where there is no answer
 * @property {Uint8Array} converged
 *
 * @typedef {(windows: Float32Array) => Promise<Answers>} Solve
 */

/**
 * @param {Solve} solve is given 0, 1 and HIDDEN
 * @param {import("./solver.js").Prior} prior
 * @param {import("./solver.js").Request} request
 * @param {(share: number) => void} watch
 * @returns {Promise<import("./solver.js").Answer>} without the time that it took
 */
export async function restoreLarge(solve, prior, request, watch) {
  const cover = new Cover(request, prior, prior.overlap);
  const white = request.pixels.map((value) => Number(value > Math.fround(prior.threshold / 255)));
  const seen = prior.task ? white : white.map((value, i) => (request.mask[i] ? HIDDEN : value));
  const windows = cover.cut(cover.pad(seen, prior.task ? "edge" : HIDDEN));
  const answers = await solveWindows(solve, windows, cover, watch);
  const hidden = cover.pad(request.mask ?? new Uint8Array(white.length), 1);
  return {
    ...blend(cover, answers),
    ...tally(prior, answers),
    blind: !prior.task && blind(cover, hidden),
  };
}

/**
 * Restore windows, each by itself, and those that hold the same once.
 * @param {Solve} solve
 * @param {Float32Array} windows
 * @param {Cover} cover
 * @param {(share: number) => void} watch is told which share is done
 * @returns {Promise<Answers>}
 */
async function solveWindows(solve, windows, { count, size }, watch) {
  const answers = {
    means: new Float32Array(count * size),
    variances: new Float32Array(count * size),
    iterations: new Int32Array(count),
    residual: new Float32Array(count),
    converged: new Uint8Array(count),
  };
  const groups = alike(windows, size, [...Array(count).keys()]);
  let atOnce = FEW;
  for (let first = 0; first < groups.length; ) {
    const some = groups.slice(first, first + atOnce);
    const batch = new Float32Array(some.length * size);
    some.forEach(([row], k) => batch.set(windows.subarray(row * size, (row + 1) * size), k * size));
    const start = performance.now();
    const found = await solve(batch);
    const taken = performance.now() - start;
    some.forEach((group, k) => {
      for (const row of group) {
        for (const [name, values] of Object.entries(answers)) {
          const each = values.length / count;
          values.set(found[name].subarray(k * each, (k + 1) * each), row * each);
        }
      }
    });
    first += some.length;
    watch(first / groups.length);
    if (taken < PATIENCE / 2) atOnce = Math.min(MANY, 2 * atOnce);
    if (taken > PATIENCE) atOnce = Math.max(1, atOnce >> 1);
  }
  return answers;
}

/** Mean and variance of every pixel: of the mixture of what its windows say; NaN where none has an answer. */
function blend(cover, { means, variances, residual }) {
  const sums = Array.from({ length: 3 }, () => new Float64Array(cover.padded));
  const [count, first, second] = sums;
  for (let row = 0; row < cover.count; row++) {
    if (!Number.isFinite(residual[row])) continue;
    cover.each(row, (place, i) => {
      const [mean, variance] = [means[row * cover.size + i], variances[row * cover.size + i]];
      count[place] += 1;
      first[place] += mean;
      second[place] += variance + mean * mean;
    });
  }
  const [number, mean, square] = sums.map((sum) => cover.crop(sum));
  const blended = Float32Array.from(mean, (sum, i) => sum / number[i]);
  return {
    means: blended,
    variances: Float32Array.from(square, (sum, i) => Math.max(0, sum / number[i] - (mean[i] / number[i]) ** 2)),
    restored: blended.map((value) => Number(value > 0.5)),
  };
}

/** How the windows fared, as for one image. */
function tally(prior, { iterations, residual, converged }) {
  const count = converged.length;
  const unsolved = count - converged.reduce((sum, each) => sum + each, 0);
  return {
    iterations: iterations.reduce((most, each) => Math.max(most, each), 0),
    residual: residual.reduce((most, each) => (Number.isFinite(each) ? Math.max(most, each) : most), 0),
    converged: unsolved <= UNSOLVED * count,
    windows: { count, unsolved: prior.task ? 0 : unsolved },
  };
}

/** Whether a pixel lies in no window of which anything is visible. */
function blind(cover, hidden) {
  const told = new Uint8Array(cover.padded);
  for (let row = 0; row < cover.count; row++) {
    let visible = false;
    cover.each(row, (place) => (visible ||= !hidden[place]));
    if (visible) cover.each(row, (place) => (told[place] = 1));
  }
  return cover.crop(told).includes(0);
}
