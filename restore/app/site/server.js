/** Restores by the server that the page comes from, on the path of the command. */

import { sentence, report } from "./outcome.js";
import { decoded, encoded, Refused } from "./picture.js";
import { advice, noted } from "./words.js";

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
  async restore(prior, request) {
    const { mask, damage, marks } = request;
    const told = await this.#answer(mask?.includes(1) ? "complete" : "denoise", prior, request, { ...damage, ...marks });
    if (!told) return null;
    if (told.outcome === "not sure") {
      const why = `as it came, not sure: ${told.reason}`;
      const named = prior.name !== "auto" && Number.isFinite(damage.p);
      throw new Refused(sentence(why, named ? "" : advice(told.remedy)));
    }
    const notes = told.notes.map(noted);
    const [restored, soft, twice] = await Promise.all([told.image, told.soft, told.deviations].map(decoded));
    const deviations = twice.map((value) => value / 2);
    const clean = told.outcome === "clean" && sentence(`as it came, clean: ${told.reason}`, ...notes);
    return { restored, soft, deviations, said: clean || report(told.model, notes, told), advice: "" };
  }

  /**
   * Find marks, and change nothing.
   * @param {import("./solver.js").Prior} prior
   * @param {import("./solver.js").Request} request its marks are the options that say what to look for
   * @returns {Promise<import("./marks.js").Found[] | null>} null if it was cancelled
   */
  async find(prior, request) {
    const told = await this.#answer("marks", prior, { ...request, mask: null }, request.marks);
    if (!told) return null;
    const kinds = Object.entries(told.marks);
    return Promise.all(kinds.map(async ([kind, { words }]) => ({ kind, words, mask: await decoded(told[kind]) })));
  }

  /** What the server answers to a task; null if it was cancelled. */
  async #answer(task, prior, { width, height, pixels, mask, invert }, told) {
    const body = new FormData();
    body.append("image", await encoded(pixels, width, height), "image.png");
    if (mask?.includes(1)) body.append("mask", await encoded(mask, width, height), "mask.png");
    const known = Object.entries({ ...told, invert }).filter(([, value]) => value !== null && value !== "");
    const options = new URLSearchParams([["model", prior.name], ...known]);
    this.#asked = new AbortController();
    const { signal } = this.#asked;
    try {
      const answer = await post(`${task}?${options}`, body, signal);
      if (answer.error) throw new Refused(sentence(answer.error));
      return answer;
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
