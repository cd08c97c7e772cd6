/** Restoring an image of any size by a prior to which all places are alike: in parts that overlap, as `restore denoise`. */

/** An image is solved if all but so many of its parts are. */
const UNSOLVED = 0.01;

/** The nearest whole number, of two the even one, as in Python. */
const rounded = (value) => (value % 1 === 0.5 ? 2 * Math.round(value / 2) : Math.round(value));

/**
 * @typedef {{length: number, margin: number, step: number}} Cutting of the cores of spans; starts and lengths are multiples of a step
 * @typedef {{width: number, height: number, pixels: Float32Array, mask: Uint8Array, p: number}} Picture
 *
 * @typedef {Object} Part what is known of a picture, or of a part of it
 * @property {Float32Array} means
 * @property {Float32Array} variances
 * @property {number} iterations
 * @property {number} residual
 * @property {number} parts how many there are
 * @property {number} unsolved how many of these are not solved
 * @property {boolean} blind in one of them nothing is visible
 */

/** Equally long spans of an axis: where each begins, and the part of the image that is its own. @param {Cutting} cutting */
export function spans(size, { length: core, margin, step }) {
  const count = Math.max(1, Math.ceil((size - 2 * margin) / core));
  const length = Math.ceil((size + 2 * margin * (count - 1)) / (count * step)) * step;
  const starts = Array.from({ length: count }, (_, k) => step * rounded((k * Math.floor((size - length) / step)) / Math.max(1, count - 1)));
  const cuts = [0, ...starts.slice(1).map((right, k) => (starts[k] + right + length) >> 1), size];
  return starts.map((start, k) => ({ start, length, from: cuts[k], to: cuts[k + 1] }));
}

/**
 * @param {(take: () => Picture) => Promise<Part>} solve takes a part as an image, once there is somebody to do it
 * @param {Picture} picture
 * @param {import("./solver.js").Prior} prior
 * @param {(share: number) => void} watch is told which share is done
 * @returns {Promise<import("./solver.js").Answer>}
 */
export async function restoreInParts(solve, picture, prior, watch) {
  const [blocks, parts] = prior.cutting;
  const beyond = prior.page ? ({ width, height }) => around(width, height, prior.page) : null;
  const all = crossed(picture, blocks).reduce((sum, { down, across }) => {
    const size = { width: across.length, height: down.length };
    return sum + crossed(beyond ? beyond(size) : size, parts).length;
  }, 0);
  let done = 0;
  const one = async (take) => {
    const answer = await solve(take);
    watch(++done / all);
    return answer;
  };
  const inBlock = async (take) => {
    const block = take();
    if (!beyond) return joined(one, block, parts);
    const frame = beyond(block);
    return cut(await joined(one, mirrored(block, frame), parts), frame.width, frame.inner);
  };
  const { parts: count, unsolved, ...answer } = await joined(inBlock, picture, blocks);
  return { ...answer, converged: unsolved <= UNSOLVED * count };
}

/** The parts of a picture. */
function crossed({ width, height }, cutting) {
  return spans(height, cutting).flatMap((down) => spans(width, cutting).map((across) => ({ down, across })));
}

/** What is known of a picture, by its parts, several at a time. */
async function joined(solve, picture, cutting) {
  const { width, pixels } = picture;
  const whole = { means: new Float32Array(pixels.length), variances: new Float32Array(pixels.length) };
  const sum = { iterations: 0, residual: 0, parts: 0, unsolved: 0, blind: false };
  const add = async ({ down, across }) => {
    const found = await solve(() => cut(picture, width, { down, across }));
    for (const [name, values] of Object.entries(whole)) {
      for (let y = down.from; y < down.to; y++) {
        const first = (y - down.start) * across.length - across.start;
        values.set(found[name].subarray(first + across.from, first + across.to), y * width + across.from);
      }
    }
    for (const name of ["iterations", "residual"]) sum[name] = Math.max(sum[name], found[name]);
    for (const name of ["parts", "unsolved"]) sum[name] += found[name];
    sum.blind ||= found.blind;
  };
  await Promise.all(crossed(picture, cutting).map(add));
  return { ...whole, ...sum };
}

/** A part of what there is of a picture, or of what is known of it, `width` pixels wide. */
function cut(of, width, { down, across }) {
  const part = (values) => {
    const some = new values.constructor(down.length * across.length);
    for (let y = 0; y < down.length; y++) {
      const first = (down.start + y) * width + across.start;
      some.set(values.subarray(first, first + across.length), y * across.length);
    }
    return some;
  };
  const parts = Object.entries(of).map(([name, value]) => [name, ArrayBuffer.isView(value) ? part(value) : value]);
  return { ...Object.fromEntries(parts), width: across.length, height: down.length };
}

/** A page with what is mirrored at its borders, up to whole steps: its size, and where the page is in it. */
function around(width, height, { beyond, step }) {
  const longer = (size) => Math.ceil((2 * beyond + size) / step) * step;
  const inner = { down: { start: beyond, length: height }, across: { start: beyond, length: width } };
  return { width: longer(width), height: longer(height), inner };
}

/** @param {Picture} picture */
function mirrored(picture, { width, height, inner }) {
  const rows = reflected(height, inner.down);
  const columns = reflected(width, inner.across);
  const larger = (values) => {
    const all = new values.constructor(width * height);
    rows.forEach((row, y) => columns.forEach((column, x) => (all[y * width + x] = values[row * picture.width + column])));
    return all;
  };
  return { ...picture, width, height, pixels: larger(picture.pixels), mask: larger(picture.mask) };
}

/** The place of an axis that stands at each of a longer one, mirrored without its ends, again and again. */
function reflected(longer, { start, length }) {
  const last = length - 1;
  return Array.from({ length: longer }, (_, i) => {
    const place = last ? (((i - start) % (2 * last)) + 2 * last) % (2 * last) : 0;
    return last - Math.abs(place - last);
  });
}
