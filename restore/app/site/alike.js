/** Windows that hold the same numbers, as those of blank paper do, so that they are solved once. */

/**
 * @param {Float32Array} windows one after the other
 * @param {number} size of a window
 * @param {number[]} rows the windows to compare
 * @returns {number[][]} the rows in groups of equal windows
 */
export function alike(windows, size, rows) {
  const words = new Uint32Array(windows.buffer, windows.byteOffset, windows.length);
  /** @type {Map<number, number[][]>} groups by a hash, which different windows may share */
  const found = new Map();
  for (const row of rows) {
    const hash = hashed(words, row * size, size);
    if (!found.has(hash)) found.set(hash, []);
    const group = found.get(hash).find(([first]) => equal(words, first * size, row * size, size));
    if (group) group.push(row);
    else found.get(hash).push([row]);
  }
  return [...found.values()].flat();
}

/** FNV-1a, by words. */
function hashed(words, start, size) {
  let hash = 0x811c9dc5;
  for (let i = start; i < start + size; i++) {
    hash = Math.imul(hash ^ words[i], 0x01000193);
    hash ^= hash >>> 15; // the high bits of a number in single precision differ most
  }
  return hash;
}

function equal(words, one, other, size) {
  for (let i = 0; i < size; i++) if (words[one + i] !== words[other + i]) return false;
  return true;
}
