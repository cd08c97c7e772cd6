/** The page's end of the line to the worker. */

/**
 * @typedef {Object} Prior what models.json says of a prior
 * @property {string} name
 * @property {number} width
 * @property {number} height
 * @property {number} hidden
 * @property {number} threshold a pixel is white above this grey level, 0 to 255
 * @property {boolean} conditional it has learnt one kind of damage and needs no description of it
 * @property {string} task that damage, such as "flip:0.1"
 * @property {"light on dark" | "dark on light"} polarity
 * @property {string} method
 * @property {string} data
 * @property {{max_iter: number, tol: number, damping: number}} inference
 * @property {{converged: string, max_iter: string, diverged: string}} outcomes messages about how its solver ended
 * @property {number} inverted nats per pixel of `inversion` above which an image has its polarity wrong
 * @property {string} blind the message about an image with masked areas around which nothing is visible
 * @property {string} example the picture that shows what it does
 * @property {number} bytes
 * @property {{overlap: number, rounds: number, worth: number, least: number, neighbours: number}} tiling how it
 *   restores larger images
 *
 * @typedef {Object} Request
 * @property {number} width
 * @property {number} height
 * @property {Float32Array} pixels grey values in [0, 1], row by row
 * @property {number} [p] probability that a pixel is inverted
 * @property {Uint8Array} [mask] 1 where a pixel is to be filled
 *
 * @typedef {Object} Result
 * @property {Float32Array} restored 0 or 1
 * @property {Float32Array} means probability of white
 * @property {Float32Array} variances
 * @property {number} iterations
 * @property {number} residual
 * @property {boolean} converged
 * @property {number} inversion nats per pixel by which the image is likelier when inverted
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
   * @returns {Promise<Result | null>} null if it was cancelled
   */
  restore(prior, request, watch = () => {}) {
    return this.#ask({ prior, request }, watch);
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
