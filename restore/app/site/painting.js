/** What of an answer goes into the picture, as `restore.inference.painting`. */

import { levels, lightened, withHolesFilled } from "./sheet.js";

/** @typedef {{restored: Float32Array, soft: Float32Array, changed: number}} Painted changed: share of pixels */

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

/** A page of which ink is black and paper white, or whose holes are filled by the levels around them. */
function onPaper(reading, picture, means) {
  const page = withHolesFilled(picture);
  const { black, white } = levels(page, means, reading);
  const soft = lightened(picture, means, white, reading);
  const ink = means.map(isWhite);
  const hole = picture.mask.includes(1) ? picture.mask : null;
  const turned = (value, i) => value !== Number(2 * page.pixels[i] > black[i] + white[i]);
  const changed = share(ink, (value, i) => (!hole || hole[i]) && turned(value, i));
  if (!hole) return { restored: ink, soft, changed };
  const filled = (values) => values.map((value, i) => (hole[i] ? value : picture.pixels[i]));
  return { restored: filled(ink.map((value, i) => (value ? white : black)[i])), soft: filled(soft), changed };
}

function share(values, counts) {
  return values.reduce((sum, value, i) => sum + Number(counts(value, i)), 0) / values.length;
}
