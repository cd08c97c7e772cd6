/**
 * Restores images, away from the thread of the page, so that the page answers while it happens: {prior, request}, or
 * {prior} to load it. The answer is null if nothing was asked or it was cancelled, by {cancel: id}.
 */
import { Hands } from "./hands.js";
import { onLine } from "./line.js";
import { painted } from "./painting.js";
import { restoreInParts } from "./parts.js";
import { fits } from "./priors.js";
import { stretched, withHolesFilled } from "./sheet.js";

const hands = new Hands();

/** Numbers of the requests that nobody waits for any more. */
const cancelled = new Set();

class Cancelled extends Error {}

/** What is known of an image: of the prior's size, or in parts. */
async function solved(id, prior, picture, watch) {
  if (fits(prior, picture)) {
    const { unsolved, ...answer } = await hands.solve(prior, () => picture);
    return { ...answer, converged: !unsolved };
  }
  let stopped = false; // all that still waits is told, too
  const solve = (take) =>
    hands.solve(prior, () => {
      stopped ||= cancelled.has(id);
      if (stopped) throw new Cancelled();
      return take();
    });
  return restoreInParts(solve, picture, prior, watch);
}

/** A page as its prior has learnt pages. */
function asLearnt(reading, request) {
  const page = withHolesFilled(request);
  return { ...page, pixels: stretched(page, reading.stretch) };
}

addEventListener("message", ({ data: { cancel } }) => {
  if (cancel !== undefined) cancelled.add(cancel);
});

onLine(async ({ id, prior, request }, watch) => {
  await hands.load(prior);
  if (!request) return null;
  const start = performance.now();
  try {
    const answer = await solved(id, prior, prior.page ? asLearnt(prior.page, request) : request, watch);
    return { ...answer, ...painted(prior, request, answer.means), milliseconds: performance.now() - start };
  } catch (fault) {
    if (fault instanceof Cancelled) return null;
    throw fault;
  } finally {
    cancelled.delete(id);
  }
});
