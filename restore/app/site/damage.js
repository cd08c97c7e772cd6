/** Damaging images on purpose, to see them restored. */

/**
 * Numbers in [0, 1) that the same seed gives again (mulberry32).
 * @param {number} seed
 */
export function generator(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let bits = Math.imul(state ^ (state >>> 15), state | 1);
    bits ^= bits + Math.imul(bits ^ (bits >>> 7), bits | 61);
    return ((bits ^ (bits >>> 14)) >>> 0) / 2 ** 32;
  };
}

/**
 * @typedef {Object} Damage
 * @property {string} label of the button that does it
 * @property {string} undone what a prior for it undoes
 * @property {(pixels: Float32Array, width: number, height: number, random: () => number) => Float32Array} apply
 */

/**
 * Every pixel inverted with probability p.
 * @param {number} p
 * @returns {Damage}
 */
export function flips(p) {
  const percent = `${Number((100 * p).toFixed(1))} %`;
  return {
    label: `Add noise (${percent})`,
    undone: `${percent} inverted pixels`,
    apply: (pixels, width, height, random) => pixels.map((value) => (random() < p ? 1 - value : value)),
  };
}

/**
 * A square somewhere in the image painted over.
 * @param {number} size
 * @param {number} fill 0 for black, 1 for white
 * @returns {Damage}
 */
export function patch(size, fill) {
  const square = `${fill > 0.5 ? "white" : "black"} ${size}×${size} patch`;
  return {
    label: `Paint a ${square}`,
    undone: `a ${square} somewhere`,
    apply: (pixels, width, height, random) => {
      const left = Math.floor(random() * Math.max(1, width - size + 1));
      const top = Math.floor(random() * Math.max(1, height - size + 1));
      const inside = (i) => {
        const [x, y] = [(i % width) - left, Math.floor(i / width) - top];
        return x >= 0 && x < size && y >= 0 && y < size;
      };
      return pixels.map((value, i) => (inside(i) ? fill : value));
    },
  };
}

/**
 * The damage that a conditional prior has learnt to undo.
 * @param {string} task "flip:P", "patch:SIZE" or "patch:SIZE:FILL"
 * @returns {Damage | null} null for a task unknown here
 */
export function learnt(task) {
  const [kind, amount, fill = "0"] = task.split(":");
  if (kind === "flip") return flips(Number(amount));
  return kind === "patch" ? patch(Number(amount), Number(fill)) : null;
}
