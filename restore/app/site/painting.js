/** What of an answer goes into the picture, as `restore.inference.painting`. */

import { judged, levels, lightened, withHolesFilled } from "./sheet.js";

/**
 * @typedef {Object} Painted
 * @property {Float32Array} restored
 * @property {Float32Array} soft
 * @property {number} changed share of the pixels
 * @property {Float32Array} [means] where they are not those of the graph, as the variances
 * @property {Float32Array} [variances]
 */

const isWhite = (mean) => Number(mean > 0.5);

/**
 * @param {import("./solver.js").Prior} prior
 * @param {import("./parts.js").Picture} picture
 * @param {Float32Array} means probability of white
 * @returns {Painted}
 */
export function painted(prior, picture, means) {
  if (prior.page) return onPaper(prior.page, picture, means);
  const threshold = Math.fround(prior.threshold / 255);
  const restored = means.map(isWhite);
  return { restored, soft: means, changed: share(restored, (value, i) => value !== Number(picture.pixels[i] > threshold)) };
}

/**
 * A page of which ink is black and paper white, or whose holes are filled by the levels around them.
 * @param {Float32Array} said probability of paper, by a prior
 */
function onPaper(reading, picture, said) {
  const page = withHolesFilled(picture);
  const { black, white } = levels(page, said, reading);
  const means = judged(page, said, { black, white }, reading);
  const variances = means.map((mean) => mean * (1 - mean));
  const soft = lightened(picture, means, white, reading);
  const ink = means.map(isWhite);
  const hole = picture.mask.includes(1) ? picture.mask : null;
  const turned = (value, i) => value !== Number(2 * page.pixels[i] > black[i] + white[i]);
  const changed = share(ink, (value, i) => (!hole || hole[i]) && turned(value, i));
  if (!hole) return { restored: ink, soft, changed, means, variances };
  const filled = (values) => values.map((value, i) => (hole[i] ? value : picture.pixels[i]));
  return { restored: filled(ink.map((value, i) => (value ? white : black)[i])), soft: filled(soft), changed, means, variances };
}

function share(values, counts) {
  return values.reduce((sum, value, i) => sum + Number(counts(value, i)), 0) / values.length;
}
