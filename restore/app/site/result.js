/** A restoration on the page: before, after, and how sure the prior is. */

import { coloured } from "./marks.js";
import { clear, download, grey, heat, paint } from "./panels.js";

/** The colour of pixels to fill: not a grey, so that it stands out. */
const TO_FILL = [59, 111, 181];

/**
 * @typedef {Object} Result
 * @property {Float32Array} restored grey values, of most images 0 and 1
 * @property {Float32Array} soft grey levels: of a page its ink, on white; else the probability of white
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

  /** Show grey levels instead of black and white. */
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

  /**
   * Show marks on a picture, in colours, in place of a result.
   * @param {{pixels: Float32Array, width: number, height: number}} picture
   * @param {import("./marks.js").Found[]} found
   */
  preview(picture, found) {
    this.clear(picture);
    paint(this.#panels.after, picture.width, picture.height, coloured(picture, found, grey));
  }

  #showAfter() {
    const { result, width, height } = this.#shown;
    const values = this.#soft ? result.soft : result.restored;
    paint(this.#panels.after, width, height, (i) => grey(values[i]));
  }

  download() {
    download(this.#panels.after, `${this.#shown.name}.png`);
  }
}
