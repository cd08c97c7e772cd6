/** Sentences about a restoration, of the parts that the prior or the server tells. */

/**
 * Whether a result may be shown: every value a number, and the solver not diverged.
 * @param {import("./solver.js").Answer} answer
 */
export function usable({ means, variances, residual }) {
  return Number.isFinite(residual) && [means, variances].every((values) => values.every(Number.isFinite));
}

/** One sentence. @param {string[]} parts */
export function sentence(...parts) {
  const said = parts.filter(Boolean).join("; ");
  return `${said[0].toUpperCase()}${said.slice(1)}.`;
}

/**
 * The line below a result.
 * @param {string} model
 * @param {string[]} facts
 * @param {{iterations: number, seconds: number, changed: number | null}} numbers changed: share of all pixels, or null
 */
export function report(model, facts, { iterations, seconds, changed }) {
  const time = seconds < 1 ? `${(1000 * seconds).toFixed(0)} ms` : `${seconds.toFixed(1)} s`;
  const share = changed === null ? [] : [`${(100 * changed).toFixed(1)} % of pixels changed`];
  const count = iterations === 1 ? "1 iteration" : `${iterations} iterations`;
  return `${model}: ${[...facts, `${count} in ${time}`, ...share].join("; ")}.`;
}
