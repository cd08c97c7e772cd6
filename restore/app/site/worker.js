/**
 * Restores images, away from the thread of the page, so that the page answers while it happens.
 *
 * Messages in: {id, prior, request}, where a missing request only loads the prior; {cancel: id}.
 * Messages out: {id, share} while a large image is restored; then {id, result}, null where nothing was asked or it was
 * cancelled; or {id, fault}.
 */
import { opened, run } from "./graph.js";
import { painted } from "./painting.js";
import { restoreInParts } from "./parts.js";
import { fits } from "./priors.js";
import { withHolesFilled } from "./sheet.js";

/** Numbers of the requests that nobody waits for any more. */
const cancelled = new Set();

class Cancelled extends Error {}

/** Let the messages in that have come while a part was solved. */
function breath() {
  return new Promise((resolve) => setTimeout(resolve));
}

/** What is known of an image: of the prior's size, or in parts. */
async function solved(id, graph, picture) {
  if (fits(graph.prior, picture)) {
    const { unsolved, ...answer } = await run(graph, picture);
    return { ...answer, converged: !unsolved };
  }
  const solve = async (part) => {
    await breath();
    if (cancelled.has(id)) throw new Cancelled();
    return run(graph, part);
  };
  return restoreInParts(solve, picture, graph.prior, (share) => postMessage({ id, share }));
}

/** @returns {Promise<import("./solver.js").Answer>} */
async function restore(id, prior, request) {
  const graph = await opened(prior);
  const start = performance.now();
  const answer = await solved(id, graph, prior.page ? withHolesFilled(request) : request);
  return { ...answer, ...painted(prior, request, answer.means), milliseconds: performance.now() - start };
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
