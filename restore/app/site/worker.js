/**
 * Restores images, away from the thread of the page, so that the page answers while it happens.
 *
 * Messages in: {id, prior, request}, where a missing request only loads the prior; {cancel: id}.
 * Messages out: {id, share} while a large image is restored; then {id, result}, null where nothing was asked or it was
 * cancelled; or {id, fault}.
 */
import { opened, run } from "./graph.js";
import { HIDDEN, restoreLarge } from "./large.js";
import { restoreInParts } from "./parts.js";
import { fits } from "./priors.js";

/** Numbers of the requests that nobody waits for any more. */
const cancelled = new Set();

class Cancelled extends Error {}

/**
 * What is seen in windows, for the graph.
 * @param {import("./solver.js").Prior} prior
 * @param {Float32Array} windows of 0, 1 and HIDDEN
 * @param {number | null} p
 * @returns {import("./graph.js").Observed}
 */
function observed(prior, windows, p) {
  if (prior.task) return { image: windows };
  const image = windows.map((value) => Number(value > HIDDEN));
  return { image, p: Float32Array.of(p), mask: Uint8Array.from(windows, (value) => Number(value === HIDDEN)) };
}

/** Let the messages in that have come while a batch was run. */
function breath() {
  return new Promise((resolve) => setTimeout(resolve));
}

async function inWindows(id, graph, request) {
  const solve = async (seen, size) => {
    await breath();
    if (cancelled.has(id)) throw new Cancelled();
    return run(graph, seen, size);
  };
  const { prior } = graph;
  const watch = (share) => postMessage({ id, share });
  if (prior.whole) return restoreInParts(solve, request, prior.layers.map(([, , stride]) => stride), watch);
  return restoreLarge((windows) => solve(observed(prior, windows, request.p)), prior, request, watch);
}

async function whole(graph, { pixels, p, mask }) {
  const told = graph.prior.task ? {} : { p: Float32Array.of(p), mask };
  const found = await run(graph, { image: pixels, ...told });
  const single = (name) => found[name][0];
  const { restored, means, variances } = found;
  return {
    restored,
    means,
    variances,
    iterations: single("iterations"),
    residual: single("residual"),
    converged: Boolean(single("converged")),
    windows: null,
  };
}

/** @returns {Promise<import("./solver.js").Answer>} */
async function restore(id, prior, request) {
  const graph = await opened(prior);
  const start = performance.now();
  const result = await (fits(prior, request) ? whole(graph, request) : inWindows(id, graph, request));
  return { ...result, milliseconds: performance.now() - start };
}

addEventListener("message", async ({ data: { cancel, id, prior, request } }) => {
  if (cancel !== undefined) {
    cancelled.add(cancel);
    return;
  }
  try {
    const result = request ? await restore(id, prior, request) : await opened(prior).then(() => null);
    postMessage({ id, result });
  } catch (fault) {
    if (fault instanceof Cancelled) postMessage({ id, result: null });
    else postMessage({ id, fault: fault instanceof Error ? fault.message : String(fault) });
  } finally {
    cancelled.delete(id);
  }
});
