/** A restoration on the page: before, after, and how sure the prior is. */

import { clear, download, grey, heat, paint } from "./panels.js";

/** The colour of pixels to fill: not a grey, so that it stands out. */
const TO_FILL = [59, 111, 181];

/**
 * @typedef {Object} Shown
 * @property {import("./solver.js").Prior} prior
 * @property {import("./solver.js").Result} result
 * @property {number} width
 * @property {number} height
 * @property {Float32Array} pixels as the user has them
 * @property {Uint8Array | undefined} mask
 * @property {boolean} inverted the prior saw the image inverted
 */

export class ResultView {
  /** @type {Shown | null} */
  #shown = null;
  #soft = false;
  #panels;

  /** @param {Record<"before" | "after" | "uncertainty", HTMLCanvasElement>} panels */
  constructor(panels) {
    this.#panels = panels;
  }

  /** Show the probability of white instead of black and white. */
  set soft(soft) {
    this.#soft = soft;
    if (this.#shown) this.#showAfter();
  }

  get empty() {
    return this.#shown === null;
  }

  /** @param {{width: number, height: number}} size */
  clear({ width, height }) {
    this.#shown = null;
    for (const panel of Object.values(this.#panels)) clear(panel, width, height);
  }

  /** @param {Shown} shown */
  show(shown) {
    this.#shown = shown;
    const { result, mask } = shown;
    const size = [shown.width, shown.height];
    paint(this.#panels.before, ...size, (i) => (mask?.[i] ? TO_FILL : grey(seen(shown, i))));
    paint(this.#panels.uncertainty, ...size, (i) => heat(Math.sqrt(result.variances[i])));
    this.#showAfter();
  }

  #showAfter() {
    const { result, width, height, inverted } = this.#shown;
    const values = this.#soft ? result.means : result.restored;
    paint(this.#panels.after, width, height, (i) => grey(inverted ? 1 - values[i] : values[i]));
  }

  download() {
    download(this.#panels.after, `${this.#shown.prior.name}.png`);
  }
}

/** A pixel in black and white, cut where the graph cuts it. */
function seen({ prior, pixels, inverted }, i) {
  const threshold = Math.fround(prior.threshold / 255);
  return inverted ? Number(!(Math.fround(1 - pixels[i]) > threshold)) : Number(pixels[i] > threshold);
}

/**
 * How many visible pixels the prior changed, and how many it filled, as a text.
 * @param {Shown} shown
 */
export function changes(shown) {
  const { result, mask, inverted } = shown;
  let [changed, filled] = [0, 0];
  result.restored.forEach((value, i) => {
    if (mask?.[i]) filled += 1;
    else if ((inverted ? 1 - value : value) !== seen(shown, i)) changed += 1;
  });
  const plural = (count) => `${count} pixel${count === 1 ? "" : "s"}`;
  return filled ? `${plural(filled)} filled, ${changed} changed` : `${plural(changed)} changed`;
}
