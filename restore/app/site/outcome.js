/** Messages about a restoration: those of the command line, which come with the prior. */

/**
 * Whether a result may be shown: every value a number, and the solver not diverged.
 * @param {import("./solver.js").Result} result
 */
export function usable({ restored, means, variances, residual }) {
  return Number.isFinite(residual) && [restored, means, variances].every((values) => values.every(Number.isFinite));
}

/**
 * How the solver ended.
 * @param {import("./solver.js").Prior} prior
 * @param {import("./solver.js").Result} result
 */
export function sentence(prior, result) {
  const { converged, max_iter, diverged } = prior.outcomes;
  if (!usable(result)) return diverged;
  return result.converged ? converged : max_iter;
}

/**
 * The line below a result.
 * @param {import("./solver.js").Prior} prior
 * @param {import("./solver.js").Result} result
 */
export function report(prior, result) {
  const said = sentence(prior, result);
  const facts = [`${result.iterations} iterations`];
  if (result.windows) {
    const { count, unsolved } = result.windows;
    facts.unshift(`${count.toLocaleString("en")} windows of ${prior.width}×${prior.height}`);
    if (unsolved) facts.push(`${unsolved.toLocaleString("en")} windows unsolved`);
  }
  if (Number.isFinite(result.residual)) facts.push(`residual ${Number(result.residual.toPrecision(2))}`);
  const { milliseconds } = result;
  facts.push(milliseconds < 1e4 ? `${milliseconds.toFixed(1)} ms` : `${(milliseconds / 1e3).toFixed(1)} s`);
  return `${said[0].toUpperCase()}${said.slice(1)}: ${facts.join(", ")}.`;
}

/**
 * Advice about the image; empty where there is none.
 * @param {import("./solver.js").Prior} prior
 * @param {import("./solver.js").Result} result
 * @param {boolean} inverted whether it was inverted already
 * @param {string} label of the control that inverts
 */
export function advice(prior, result, inverted, label) {
  const blind = result.blind ? `The image ${prior.blind}.` : "";
  return [polarityHint(prior, result, inverted, label), blind].filter(Boolean).join(" ");
}

/**
 * Advice where the image seems to have its polarity wrong; empty otherwise.
 * @param {import("./solver.js").Prior} prior
 * @param {import("./solver.js").Result} result
 * @param {boolean} inverted whether it was inverted already
 * @param {string} label of the control that inverts
 */
function polarityHint(prior, result, inverted, label) {
  if (!(result.inversion > prior.inverted)) return "";
  const expected = prior.polarity === "light on dark" ? "light strokes on dark" : "dark on light";
  const remedy = inverted ? `untick “${label}”` : `try “${label}”`;
  return `The image looks inverted: ${prior.name} expects ${expected}; ${remedy}.`;
}
