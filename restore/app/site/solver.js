/** Restores by the page's own graphs, where no server of ours does: the page's end of the line to the worker. */

import { Line } from "./line.js";
import { report, sentence, usable } from "./outcome.js";
import { Refused } from "./picture.js";
import { inverted, misfit } from "./priors.js";
import { hasLightInk } from "./sheet.js";

/**
 * @typedef {Object} Prior what models.json says of a prior
 * @property {string} name
 * @property {number} width
 * @property {number} height
 * @property {number} hidden
 * @property {number} threshold a pixel is white above this grey level, 0 to 255
 * @property {boolean} whole it restores an image of any size as a whole, and not in tiles
 * @property {import("./parts.js").Cutting[]} cutting how larger images are cut into blocks, and blocks into parts
 * @property {import("./sheet.js").Reading & {beyond: number, step: number} | null} page how it reads grey pages, if it does
 * @property {string} task the damage that it has learnt, such as "flip:0.1"; empty if it is told the damage
 * @property {"light on dark" | "dark on light"} polarity
 * @property {string} method
 * @property {string} data
 * @property {{max_iter: number, tol: number, damping: number}} inference
 * @property {{converged: string, max_iter: string, diverged: string}} outcomes messages about how its solver ended
 * @property {string} unchanged the reason of an answer that changes nothing
 * @property {string} blind the message about an image with masked areas around which nothing is visible
 * @property {string} example the picture that shows what it does, to be damaged first
 * @property {string[]} [scans] damaged pictures that show it as they are
 * @property {number} bytes
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
 * @property {Float32Array} restored 0 or 1; where holes of a page are filled, grey levels
 * @property {Float32Array} soft grey levels
 * @property {number} changed share of the pixels
 * @property {Float32Array} means probability of white
 * @property {Float32Array} variances
 * @property {number} iterations
 * @property {number} residual
 * @property {boolean} converged
 * @property {boolean} blind it has masked areas around which nothing is visible
 * @property {number} milliseconds
 */

/** Values differ if they are further apart than rounding to 16 bits. */
const UNEQUAL = 1e-5;

export class Solver {
  #line = new Line(new URL("worker.js", import.meta.url));

  /**
   * Fetch a prior and make it ready.
   * @param {Prior} prior
   */
  load(prior) {
    return this.#line.ask({ prior });
  }

  /**
   * @param {Prior} prior
   * @param {Request} request
   * @param {(share: number) => void} [watch] is told which share of a large image is done
   * @returns {Promise<Answer | null>} null if it was cancelled
   */
  solve(prior, request, watch = () => {}) {
    return this.#line.ask({ prior, request }, watch);
  }

  /**
   * As `solve`, in the colours of the image.
   * @returns {Promise<import("./result.js").Result | null>}
   * @throws {Refused} if the prior takes no such image, or the solver diverged
   */
  async restore(prior, request, watch = () => {}) {
    const unfit = misfit(prior, request);
    if (unfit) throw new Refused(unfit);
    const invert = request.invert ?? (prior.page ? hasLightInk(request, prior.page) : inverted(prior, request.pixels));
    const own = (values) => (invert ? values.map((value) => 1 - value) : values);
    const pixels = own(request.pixels);
    const answer = await this.solve(prior, { ...request, pixels, p: request.damage.p }, watch);
    if (!answer) return null;
    if (!usable(answer)) {
      throw new Refused(sentence(`as it came, not sure: ${prior.outcomes.diverged}`, "choose another prior"));
    }
    const { iterations, milliseconds, changed } = answer;
    const same = answer.restored.every((value, i) => Math.abs(value - pixels[i]) < UNEQUAL);
    const numbers = { iterations, seconds: milliseconds / 1000, changed };
    const facts = [answer.converged ? prior.outcomes.converged : prior.outcomes.max_iter];
    return {
      restored: own(answer.restored),
      soft: own(answer.soft),
      deviations: answer.variances.map(Math.sqrt),
      said: same ? sentence(`as it came, clean: ${prior.unchanged}`) : report(prior.name, facts, numbers),
      advice: answer.blind ? `The image ${prior.blind}.` : "",
    };
  }

  /** Stop restoring large images as soon as the parts at hand are done. */
  cancel() {
    this.#line.cancel();
  }
}
