/** A line to a worker: what is asked has a number, under which the answer comes back. */

export class Line {
  #worker;
  #waiting = new Map();
  #count = 0;
  /** @type {Error | null} */
  #broken = null;

  /** @param {URL} script answers {id, ...} with {id, result} or {id, fault}, perhaps after some {id, share} */
  constructor(script) {
    this.#worker = new Worker(script, { type: "module" });
    this.#worker.addEventListener("message", ({ data: { id, share, result, fault } }) => {
      const asked = this.#waiting.get(id);
      if (share !== undefined) {
        asked?.watch(share); // nobody listens any more where it was cancelled
        return;
      }
      this.#waiting.delete(id);
      if (fault === undefined) asked.resolve(result);
      else asked.reject(new Error(fault));
    });
    // A worker that could not start answers nobody, neither now nor later.
    this.#worker.addEventListener("error", (event) => {
      this.#broken = new Error(event.message || "its files could not be read");
      for (const { reject } of this.#waiting.values()) reject(this.#broken);
      this.#waiting.clear();
    });
  }

  /** @param {object} message @param {(share: number) => void} [watch] is told which share is done */
  ask(message, watch = () => {}) {
    if (this.#broken) return Promise.reject(this.#broken);
    const id = this.#count++;
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject, watch });
      this.#worker.postMessage({ id, ...message });
    });
  }

  /** Nobody waits any more for what was asked. */
  cancel() {
    for (const id of this.#waiting.keys()) this.#worker.postMessage({ cancel: id });
  }
}

/**
 * Answer what comes on a line.
 * @param {(message: any, share: (share: number) => void) => Promise<any>} answer
 */
export function onLine(answer) {
  addEventListener("message", async ({ data: { id, ...message } }) => {
    if (id === undefined) return;
    try {
      postMessage({ id, result: await answer({ id, ...message }, (share) => postMessage({ id, share })) });
    } catch (fault) {
      postMessage({ id, fault: fault instanceof Error ? fault.message : String(fault) });
    }
  });
}
