/** Restores by the server that the page comes from, on the path of the command. */

import { sentence, report } from "./outcome.js";
import { decoded, encoded, Refused } from "./picture.js";

export class Server {
  /** @type {AbortController | null} */
  #asked = null;

  /** Nothing is to be made ready. */
  async load() {}

  /**
   * @param {import("./solver.js").Prior} prior
   * @param {import("./solver.js").Request} request
   * @returns {Promise<import("./result.js").Result | null>} null if it was cancelled
   * @throws {Refused} if the picture stays as it is
   */
  async restore(prior, { width, height, pixels, mask, p, invert }) {
    const fill = mask?.includes(1);
    const body = new FormData();
    body.append("image", await encoded(pixels, width, height), "image.png");
    if (fill) body.append("mask", await encoded(mask, width, height), "mask.png");
    const options = new URLSearchParams({ model: prior.name });
    if (invert) options.set("invert", "true"); // else the polarity is found
    if (p !== null) options.set("p", String(p));
    this.#asked = new AbortController();
    const { signal } = this.#asked;
    try {
      const told = await post(`${fill ? "complete" : "denoise"}?${options}`, body, signal);
      if (told.error) throw new Refused(sentence(told.error));
      if (told.outcome === "not sure") {
        const named = prior.name !== "auto" && p !== null;
        const why = `${told.reason}, and the image stays as it is`;
        throw new Refused(sentence(why, named ? "" : "choose a prior and p to restore it"));
      }
      const [restored, means, twice] = await Promise.all([told.image, told.means, told.deviations].map(decoded));
      const deviations = twice.map((value) => value / 2);
      const clean = told.outcome === "clean" && sentence(`as it came, clean: ${told.reason}`);
      return { restored, means, deviations, said: clean || report(told.model, told.notes, told), advice: "" };
    } catch (fault) {
      if (signal.aborted) return null;
      throw fault;
    }
  }

  cancel() {
    this.#asked?.abort();
  }
}

async function post(address, body, signal) {
  const answer = await fetch(address, { method: "POST", headers: { Accept: "application/json" }, body, signal });
  return answer.json();
}
