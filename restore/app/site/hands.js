/** Several workers that run the graphs, each on a processor of its own: parts of an image are shared among them. */

import { Line } from "./line.js";

/** At most so many: each holds a runtime, a prior and a part of an image. */
const MOST = 4;

export class Hands {
  #hands = Array.from({ length: Math.max(1, Math.min(MOST, navigator.hardwareConcurrency)) }, () => null);
  #idle = [...this.#hands.keys()];
  #waiting = [];

  /** Make a prior ready; one that takes images as a whole needs one hand. @param {import("./solver.js").Prior} prior */
  load(prior) {
    const needed = prior.whole ? this.#hands.length : 1;
    return Promise.all(Array.from({ length: needed }, (_, number) => this.#hand(number).ask({ prior })));
  }

  /**
   * What is known of a picture.
   * @param {import("./solver.js").Prior} prior
   * @param {() => import("./parts.js").Picture} take gives it as soon as somebody is idle
   * @returns {Promise<import("./parts.js").Part>}
   */
  async solve(prior, take) {
    const number = this.#idle.length ? this.#idle.shift() : await new Promise((resolve) => this.#waiting.push(resolve));
    try {
      return await this.#hand(number).ask({ prior, picture: take() });
    } finally {
      const next = this.#waiting.shift();
      if (next) next(number);
      else this.#idle.unshift(number); // so that the first is asked first, which has every prior
    }
  }

  #hand(number) {
    this.#hands[number] ??= new Line(new URL("hand.js", import.meta.url));
    return this.#hands[number];
  }
}
