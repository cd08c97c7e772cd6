/** Restores by the server of `restore app`, on the path of the command. */

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
    const png = (values) => encoded(values, width, height);
    const fill = mask?.includes(1);
    const body = { model: prior.name, invert, image: await png(pixels) };
    if (fill) body.mask = await png(mask);
    if (p !== null) body.p = p;
    this.#asked = new AbortController();
    const { signal } = this.#asked;
    try {
      const told = await post(fill ? "complete" : "denoise", body, signal);
      if (told.error) throw new Refused(sentence(told.error));
      if (told.refused) {
        const named = prior.name !== "auto" && p !== null;
        throw new Refused(
          sentence(`${told.refused}, and the image stays as it is`, named ? "" : "choose a prior and p to restore it"),
        );
      }
      const [restored, means, twice] = await Promise.all([told.image, told.means, told.deviations].map(decoded));
      const deviations = twice.map((value) => value / 2);
      return { restored, means, deviations, said: report(told.model, told.notes, told), advice: "" };
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
  const headers = { "Content-Type": "application/json" };
  const answer = await fetch(address, { method: "POST", headers, body: JSON.stringify(body), signal });
  return answer.json();
}
