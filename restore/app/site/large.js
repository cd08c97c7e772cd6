/** Restoring an image of another size than the prior's: mostly in windows that overlap, whose answers are blended. */

import { isSound, logOdds, logOddsOf, solveWindows } from "./exchange.js";
import { Cover } from "./tiles.js";

/** An image is solved if all but so many of its windows are. */
const UNSOLVED = 0.01;

/**
 * @param {(windows: Float32Array) => Promise<import("./exchange.js").Answers>} solve
 * @param {import("./solver.js").Prior} prior
 * @param {import("./solver.js").Request} request
 * @param {Float32Array} pixelMeans of the images that the prior was trained on
 * @param {(share: number) => void} watch
 * @returns {Promise<import("./solver.js").Answer>} without the time that it took
 */
export async function restoreLarge(solve, prior, request, pixelMeans, watch) {
  const cover = new Cover(request, prior, prior.tiling.overlap);
  const exchanged = !prior.task && cover.count > 1;
  const tiling = exchanged ? prior.tiling : { ...prior.tiling, rounds: 0 };
  const white = request.pixels.map((value) => Number(value > Math.fround(prior.threshold / 255)));
  const alone = pixelMeans.map(logOddsOf);
  const padded = prior.task
    ? cover.pad(white, "edge")
    : cover.pad(logOdds(white, request.p, request.mask), 0);
  const answers = await solveWindows(solve, cover, padded, tiling, prior.temperature, alone, watch);
  const hidden = cover.pad(request.mask ?? new Uint8Array(white.length), 1);
  return {
    ...blend(cover, answers),
    ...tally(prior, answers),
    blind: !prior.task && blind(cover, hidden),
  };
}

/** Mean and variance of every pixel: of the mixture of what its windows say; NaN where none has an answer. */
function blend(cover, answers) {
  const { means, variances } = answers;
  const sums = Array.from({ length: 3 }, () => new Float64Array(cover.padded));
  const [count, first, second] = sums;
  for (let row = 0; row < cover.count; row++) {
    if (!isSound(answers, row)) continue;
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
function tally(prior, { iterations, residual, converged, solved }) {
  const count = solved.reduce((sum, each) => sum + each, 0);
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
