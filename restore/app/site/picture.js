/** From a file to grey values of the size that a prior knows, or to a sentence that says why not. */

import { HEAD, statedSize } from "./sizes.js";

/** As on the command line. */
export const MAX_PIXELS = 50_000_000;

/** How much longer and narrower than the prior's a picture may be. */
export const MAX_STRETCH = 2;

/** By what factor a side may be longer or shorter than the prior's: as on the command line. */
const FURTHEST = 2;

// Rows of a picture that are in memory as numbers at a time.
const STRIP = 256;

/** A picture that cannot be used; the message is for the user. */
export class Refused extends Error {}

/**
 * Read a picture and bring it to a size, each new pixel the mean over its area; colour becomes grey.
 *
 * @param {Blob} file
 * @param {number} width
 * @param {number} height
 * @param {string} ground the colour behind transparent places
 * @returns {Promise<{pixels: Float32Array, width: number, height: number}>} the new pixels and the size it had
 * @throws {Refused}
 */
export async function read(file, width, height, ground) {
  const size = statedSize(new Uint8Array(await file.slice(0, HEAD).arrayBuffer()));
  const name = file.name || "The picture";
  if (!size) throw new Refused(`${name} is no PNG, JPEG, GIF, BMP or WebP image. Choose another file.`);
  checkSize(name, size, width, height);
  let bitmap;
  try {
    bitmap = await createImageBitmap(file);
  } catch {
    throw new Refused(`${name} is damaged and cannot be decoded. Get the file again.`);
  }
  try {
    return { pixels: shrink(bitmap, width, height, ground), width: bitmap.width, height: bitmap.height };
  } finally {
    bitmap.close();
  }
}

/**
 * @param {string} name
 * @param {import("./sizes.js").Size} size
 * @throws {Refused} if the picture is too large, or of quite another shape than the prior's
 */
export function checkSize(name, size, width, height) {
  if (!(size.width > 0 && size.height > 0)) throw new Refused(`${name} has no pixels. Choose another file.`);
  if (size.width * size.height > MAX_PIXELS) {
    const million = (count) => Math.round(count / 1e6);
    throw new Refused(
      `${name} has ${million(size.width * size.height)} megapixels; the limit is ${million(MAX_PIXELS)}. Cut the part to restore out of it first.`,
    );
  }
  const stretch = (size.width * height) / (size.height * width);
  if (Math.max(stretch, 1 / stretch) > MAX_STRETCH) {
    throw new Refused(
      `${name} has ${size.width}×${size.height} pixels, and the prior restores ${width}×${height}. Cut a part of that shape out of it first.`,
    );
  }
}

/**
 * Advice on a picture that was brought to a size; empty if that is near.
 * @param {string} name
 * @param {import("./sizes.js").Size} size
 */
export function sizeHint(name, size, width, height) {
  const ratios = [size.width / width, size.height / height];
  if (ratios.every((ratio) => Math.max(ratio, 1 / ratio) <= FURTHEST)) return "";
  return `Little is left of ${name} at ${width}×${height} pixels. Cut a part of about that size out of it instead.`;
}

/** The grey values of a bitmap, averaged over area, strip by strip so that a photograph fits into memory. */
function shrink(bitmap, width, height, ground) {
  const canvas = new OffscreenCanvas(bitmap.width, Math.min(STRIP, bitmap.height));
  const context = canvas.getContext("2d", { willReadFrequently: true });
  const sum = averager(bitmap.width, bitmap.height, width, height);
  for (let top = 0; top < bitmap.height; top += canvas.height) {
    const rows = Math.min(canvas.height, bitmap.height - top);
    context.fillStyle = ground;
    context.fillRect(0, 0, canvas.width, rows);
    context.drawImage(bitmap, 0, -top);
    const { data } = context.getImageData(0, 0, canvas.width, rows);
    for (let row = 0; row < rows; row++) sum.add(greyRow(data, row * canvas.width, canvas.width));
  }
  return sum.pixels();
}

/** A row of grey values in [0, 1] from RGBA bytes: the luminance of colour, and what is grey exactly as it is. */
function greyRow(rgba, start, width) {
  const row = new Float64Array(width);
  for (let x = 0, i = 4 * start; x < width; x++, i += 4) {
    const grey = rgba[i] === rgba[i + 1] && rgba[i] === rgba[i + 2];
    row[x] = (grey ? rgba[i] : 0.299 * rgba[i] + 0.587 * rgba[i + 1] + 0.114 * rgba[i + 2]) / 255;
  }
  return row;
}

/**
 * Bring grey values to another size, each new pixel the mean over its area.
 * @param {Float32Array} pixels
 */
export function resize(pixels, oldWidth, oldHeight, width, height) {
  const sum = averager(oldWidth, oldHeight, width, height);
  for (let row = 0; row < oldHeight; row++) sum.add(pixels.subarray(row * oldWidth, (row + 1) * oldWidth));
  return sum.pixels();
}

/** Takes the rows of a picture from top to bottom and adds them up to a picture of another size. */
function averager(oldWidth, oldHeight, width, height) {
  const sums = new Float64Array(width * height);
  const across = cells(oldWidth, width);
  const down = cells(oldHeight, height);
  let next = 0;
  const add = (row) => {
    const narrow = across.map(({ first, shares }) => shares.reduce((sum, share, k) => sum + share * row[first + k], 0));
    for (let y = 0; y < height; y++) {
      const share = down[y].shares[next - down[y].first] ?? 0;
      if (share > 0) for (let x = 0; x < width; x++) sums[y * width + x] += share * narrow[x];
    }
    next += 1;
  };
  return { add, pixels: () => Float32Array.from(sums) };
}

/** What each of `count` cells is made of: from the place `first` on, the share of the cell that each place covers. */
function cells(places, count) {
  return Array.from({ length: count }, (_, cell) => {
    const [from, to] = [(cell * places) / count, ((cell + 1) * places) / count];
    const first = Math.floor(from);
    const overlaps = Array.from({ length: Math.min(places, Math.ceil(to)) - first }, (_, k) => {
      return Math.min(to, first + k + 1) - Math.max(from, first + k);
    });
    return { first, shares: Float64Array.from(overlaps, (overlap) => (overlap * count) / places) };
  });
}
