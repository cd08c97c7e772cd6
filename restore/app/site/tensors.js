/** Reading tensors out of a safetensors file: eight bytes that say how long the header is, the header, the numbers. */

/**
 * @param {Uint8Array} file
 * @param {string} name of a tensor in single precision
 * @returns {Float32Array}
 */
export function tensor(file, name) {
  const length = Number(new DataView(file.buffer, file.byteOffset).getBigUint64(0, true));
  const start = 8 + length;
  const entry = JSON.parse(new TextDecoder().decode(file.subarray(8, start)))[name];
  if (entry?.dtype !== "F32") throw new Error(`its ${name} is missing or not in single precision`);
  const [from, to] = entry.data_offsets;
  // A copy, as numbers may lie anywhere in a file but not in an array.
  return new Float32Array(file.slice(start + from, start + to).buffer);
}
