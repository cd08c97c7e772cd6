/** Restoring an image by a prior to which all places are alike: in parts that overlap, the same as `restore denoise`. */

/** How long the middles of parts are, in places of the finest layer; and how far a part reaches beyond its own, at least. */
const [PART, AROUND] = [256, 16];
/** As far as so many steps of the coarsest layer. */
const STEPS = 4;
/** An image is solved if all but so many of its parts are. */
const UNSOLVED = 0.01;

/** The nearest whole number, of two the even one, as in Python. */
const rounded = (value) => (value % 1 === 0.5 ? 2 * Math.round(value / 2) : Math.round(value));

/** Equally long spans of an axis: where each begins, and the part of the image that is its own. */
export function spans(size, strides) {
  const around = Math.max(AROUND, STEPS * strides.reduce((product, stride) => product * stride));
  const count = Math.max(1, Math.ceil((size - 2 * around) / (PART * strides[0])));
  const length = Math.ceil((size + 2 * around * (count - 1)) / count);
  const starts = Array.from({ length: count }, (_, k) => rounded((k * (size - length)) / Math.max(1, count - 1)));
  const cuts = [0, ...starts.slice(1).map((right, k) => (starts[k] + right + length) >> 1), size];
  return starts.map((start, k) => ({ start, length, from: cuts[k], to: cuts[k + 1] }));
}

/**
 * @param {(observed: import("./graph.js").Observed, size: {width: number, height: number}) => Promise<any>} solve
 * @param {import("./solver.js").Request} request
 * @param {number[]} strides of the layers, the finest first
 * @param {(share: number) => void} watch is told which share is done
 * @returns {Promise<import("./solver.js").Answer>}
 */
export async function restoreInParts(solve, { width, height, pixels, p, mask }, strides, watch) {
  const parts = spans(height, strides).flatMap((down) => spans(width, strides).map((across) => ({ down, across })));
  const whole = {
    means: new Float32Array(pixels.length),
    variances: new Float32Array(pixels.length),
    restored: new Float32Array(pixels.length),
  };
  let [iterations, residual, unsolved, blind, done] = [0, 0, 0, false, 0];
  for (const { down, across } of parts) {
    const cut = (values) => {
      const part = new values.constructor(down.length * across.length);
      for (let y = 0; y < down.length; y++) {
        const first = (down.start + y) * width + across.start;
        part.set(values.subarray(first, first + across.length), y * across.length);
      }
      return part;
    };
    const hidden = cut(mask);
    const size = { width: across.length, height: down.length };
    const found = await solve({ image: cut(pixels), p: Float32Array.of(p), mask: hidden }, size);
    for (const [name, values] of Object.entries(whole)) {
      for (let y = down.from; y < down.to; y++) {
        const first = (y - down.start) * across.length - across.start;
        values.set(found[name].subarray(first + across.from, first + across.to), y * width + across.from);
      }
    }
    iterations = Math.max(iterations, found.iterations[0]);
    residual = Math.max(residual, found.residual[0]);
    unsolved += Number(!found.converged[0]);
    blind ||= hidden.every(Boolean);
    watch(++done / parts.length);
  }
  const converged = unsolved <= UNSOLVED * parts.length;
  return { ...whole, iterations, residual, converged, blind, windows: null };
}
