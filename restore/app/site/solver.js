/** Restores by the page's own graphs, where no server of ours does: the page's end of the line to the worker. */

import { report, sentence, usable } from "./outcome.js";
import { Refused } from "./picture.js";
import { inverted } from "./priors.js";

/**
 * @typedef {Object} Prior what models.json says of a prior
 * @property {string} name
 * @property {number} width
 * @property {number} height
 * @property {number} hidden
 * @property {number} threshold a pixel is white above this grey level, 0 to 255
 * @property {boolean} whole it restores an image of any size as a whole, and not in tiles
 * @property {[number, number, number, string][]} layers of a convolutional prior: features, side, stride, units
 * @property {string} task the damage that it has learnt, such as "flip:0.1"; empty if it is told the damage
 * @property {"light on dark" | "dark on light"} polarity
 * @property {string} method
 * @property {string} data
 * @property {{max_iter: number, tol: number, damping: number}} inference
 * @property {{converged: string, max_iter: string, diverged: string}} outcomes messages about how its solver ended
 * @property {string} blind the message about an image with masked areas around which nothing is visible
 * @property {string} example the picture that shows what it does, to be damaged first
 * @property {string[]} [scans] damaged pictures that show it as they are
 * @property {number} bytes
 * @property {number} overlap how many windows of a larger image begin within the length of one
 *
 * @typedef {Object} Request
 * @property {number} width
 * @property {number} height
 * @property {Float32Array} pixels grey values in [0, 1], row by row
 * @property {{p?: number | string | null, sigma?: string}} damage p: the probability that a pixel is inverted; null for a
 *   conditional prior, or to find it; a word for another kind of damage that the server knows
 * @property {Uint8Array} mask 1 where a pixel is to be filled
 * @property {boolean | null} invert invert the image for the prior, and the result back; null to find whether to
 * @property {{remove: string, specks: string} | null} [marks] kinds of marks, and the largest speck in pixels
 *
 * @typedef {Object} Answer of a graph
 * @property {Float32Array} restored 0 or 1
 * @property {Float32Array} means probability of white
 * @property {Float32Array} variances
 * @property {number} iterations
 * @property {number} residual
 * @property {boolean} converged
 * @property {{count: number, unsolved: number} | null} windows of an image of another size than the prior's
 * @property {boolean} [blind] it has masked areas around which nothing is visible
 * @property {number} milliseconds
 */

export class Solver {
  #worker = new Worker(new URL("worker.js", import.meta.url), { type: "module" });
  #waiting = new Map();
  #count = 0;
  /** @type {Error | null} */
  #broken = null;

  constructor() {
    this.#worker.addEventListener("message", ({ data: { id, share, result, fault } }) => {
      const { resolve, reject, watch } = this.#waiting.get(id);
      if (share !== undefined) {
        watch(share);
        return;
      }
      this.#waiting.delete(id);
      if (fault === undefined) resolve(result);
      else reject(new Error(fault));
    });
    // A worker that could not start answers nobody, neither now nor later.
    this.#worker.addEventListener("error", (event) => {
      this.#broken = new Error(event.message || "its files could not be read");
      for (const { reject } of this.#waiting.values()) reject(this.#broken);
      this.#waiting.clear();
    });
  }

  /**
   * Fetch a prior and make it ready.
   * @param {Prior} prior
   */
  load(prior) {
    return this.#ask({ prior });
  }

  /**
   * @param {Prior} prior
   * @param {Request} request
   * @param {(share: number) => void} [watch] is told which share of a large image is done
   * @returns {Promise<Answer | null>} null if it was cancelled
   */
  solve(prior, request, watch = () => {}) {
    return this.#ask({ prior, request }, watch);
  }

  /**
   * As `solve`, in the colours of the image.
   * @returns {Promise<import("./result.js").Result | null>}
   * @throws {Refused} if the solver diverged
   */
  async restore(prior, request, watch = () => {}) {
    const invert = request.invert ?? inverted(prior, request.pixels);
    const own = (values) => (invert ? values.map((value) => 1 - value) : values);
    const pixels = own(request.pixels);
    const answer = await this.solve(prior, { ...request, pixels, p: request.damage.p }, watch);
    if (!answer) return null;
    if (!usable(answer)) throw new Refused(sentence(prior.outcomes.diverged, "choose another prior"));
    const threshold = Math.fround(prior.threshold / 255);
    const changed = answer.restored.filter((value, i) => value !== Number(pixels[i] > threshold)).length / pixels.length;
    const { windows, iterations, milliseconds } = answer;
    const facts = [answer.converged ? prior.outcomes.converged : prior.outcomes.max_iter];
    if (windows) facts.push(`${windows.count.toLocaleString("en")} windows of ${prior.width}×${prior.height}`);
    if (windows?.unsolved) facts.push(`${windows.unsolved.toLocaleString("en")} of them unsolved`);
    return {
      restored: own(answer.restored),
      soft: own(answer.means),
      deviations: answer.variances.map(Math.sqrt),
      said: report(prior.name, facts, { iterations, seconds: milliseconds / 1000, changed }),
      advice: answer.blind ? `The image ${prior.blind}.` : "",
    };
  }

  /** Stop restoring large images as soon as the windows at hand are done. */
  cancel() {
    for (const id of this.#waiting.keys()) this.#worker.postMessage({ cancel: id });
  }

  #ask(message, watch = () => {}) {
    if (this.#broken) return Promise.reject(this.#broken);
    const id = this.#count++;
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject, watch });
      this.#worker.postMessage({ id, ...message });
    });
  }
}
