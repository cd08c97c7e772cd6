/** A restoration on the page: before, after, and how sure the prior is. */

import { clear, download, grey, heat, paint } from "./panels.js";

/** The colour of pixels to fill: not a grey, so that it stands out. */
const TO_FILL = [59, 111, 181];

/**
 * @typedef {Object} Result
 * @property {Float32Array} restored grey values, of most images 0 and 1
 * @property {Float32Array} means probability of white
 * @property {Float32Array} deviations
 * @property {string} said what became of the image
 * @property {string} advice
 *
 * @typedef {Object} Shown
 * @property {string} name of the file to download
 * @property {Result} result
 * @property {number} width
 * @property {number} height
 * @property {Float32Array} pixels as the user has them
 * @property {Uint8Array} mask
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
    const { result, mask, pixels, width, height } = shown;
    paint(this.#panels.before, width, height, (i) => (mask[i] ? TO_FILL : grey(pixels[i])));
    paint(this.#panels.uncertainty, width, height, (i) => heat(result.deviations[i]));
    this.#showAfter();
  }

  #showAfter() {
    const { result, width, height } = this.#shown;
    const values = this.#soft ? result.means : result.restored;
    paint(this.#panels.after, width, height, (i) => grey(values[i]));
  }

  download() {
    download(this.#panels.after, `${this.#shown.name}.png`);
  }
}
