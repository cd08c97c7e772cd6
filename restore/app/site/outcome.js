/** What is said of a restoration, in the words of the command line. */

const CONVERGED = "the solver converged";
const MAX_ITER = "the solver stopped at its iteration limit before it converged; compare with another model";
const DIVERGED = "the solver diverged (a value became infinite or NaN); choose another model";

// An image whose pixels are this much more likely after inversion (in nats per pixel) has its polarity wrong.
const INVERTED = 0.05;

/**
 * Whether a result may be shown: every value a number, and the solver not diverged.
 * @param {import("./solver.js").Result} result
 */
export function usable({ restored, means, variances, residual }) {
  return Number.isFinite(residual) && [restored, means, variances].every((values) => values.every(Number.isFinite));
}

/**
 * How the solver ended; a conditional prior is meant to stop where its training did.
 * @param {import("./solver.js").Prior} prior
 * @param {import("./solver.js").Result} result
 */
export function sentence(prior, result) {
  if (!usable(result)) return DIVERGED;
  if (result.converged) return CONVERGED;
  return prior.conditional
    ? `stopped after the ${prior.inference.max_iter} iterations that ${prior.name} was trained with`
    : MAX_ITER;
}

/**
 * The line below a result.
 * @param {import("./solver.js").Prior} prior
 * @param {import("./solver.js").Result} result
 */
export function report(prior, result) {
  const said = sentence(prior, result);
  const facts = [`${result.iterations} iterations`];
  if (Number.isFinite(result.residual)) facts.push(`residual ${Number(result.residual.toPrecision(2))}`);
  facts.push(`${result.milliseconds.toFixed(1)} ms`);
  return `${said[0].toUpperCase()}${said.slice(1)}: ${facts.join(", ")}.`;
}

/**
 * Advice where the image seems to have its polarity wrong; empty otherwise.
 * @param {import("./solver.js").Prior} prior
 * @param {import("./solver.js").Result} result
 * @param {boolean} inverted whether it was inverted already
 * @param {string} label of the control that inverts
 */
export function polarityHint(prior, result, inverted, label) {
  if (!(result.inversion > INVERTED)) return "";
  const expected = prior.polarity === "light on dark" ? "light strokes on dark" : "dark on light";
  const remedy = inverted ? `leave “${label}” away` : `try “${label}”`;
  return `The image looks inverted: ${prior.name} expects ${expected}; ${remedy}.`;
}
