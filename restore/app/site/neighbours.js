/**
 * Restoring an image as a whole, by a prior that only knows how alike neighbours are: the mean field of
 * `restore denoise`, where its reasons are.
 */

import { logOdds } from "./exchange.js";

/** No pixel changes by more, or so many steps are over; each keeps so much of the means before it. */
const [STILL, STEPS, KEPT] = [1e-6, 60, 0.5];
/** It is solved if pixels change by less than this on average in the last step. */
const SOLVED = 1e-3;

/**
 * @param {import("./solver.js").Prior} prior
 * @param {import("./solver.js").Request} request
 * @param {(share: number) => void} watch
 * @returns {import("./solver.js").Answer} without the time that it took
 */
export function restoreByNeighbours(prior, { width, height, pixels, p, mask }, watch) {
  const white = pixels.map((value) => Number(value > Math.fround(prior.threshold / 255)));
  const field = logOdds(white, p, mask).map((value) => value / 2);
  const { spins, iterations, residual } = meanField(field, width, height, prior.tiling.neighbours);
  watch(1);
  const means = spins.map((spin) => (1 + spin) / 2);
  return {
    means,
    variances: means.map((mean) => mean * (1 - mean)),
    restored: means.map((mean) => Number(mean > 0.5)),
    iterations,
    residual,
    converged: residual < SOLVED,
    windows: null,
    blind: mask.every(Boolean),
  };
}

/** Means of spins -1 and 1, each pulled by the four beside it and by half of its evidence. */
function meanField(field, width, height, coupling) {
  const spins = field.map(Math.tanh);
  let [iterations, residual, most] = [0, Infinity, Infinity];
  while (iterations < STEPS && most > STILL) {
    const before = spins.slice();
    let changed = 0;
    most = 0;
    for (let i = 0; i < spins.length; i++) {
      const column = i % width;
      const above = i >= width ? before[i - width] : 0;
      const below = i < width * (height - 1) ? before[i + width] : 0;
      const left = column ? before[i - 1] : 0;
      const right = column + 1 < width ? before[i + 1] : 0;
      const step = (1 - KEPT) * (Math.tanh(field[i] + coupling * (above + below + left + right)) - before[i]);
      spins[i] += step;
      changed += Math.abs(step);
      most = Math.max(most, Math.abs(step));
    }
    iterations += 1;
    residual = changed / spins.length;
  }
  return { spins, iterations, residual };
}
