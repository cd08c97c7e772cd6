/** Runs the graphs on images and on parts of them, beside others that do the same: {prior, picture}, or {prior} to load it. */

import { opened, run } from "./graph.js";
import { onLine } from "./line.js";

onLine(async ({ prior, picture }) => {
  const graph = await opened(prior);
  return picture ? run(graph, picture) : null;
});
