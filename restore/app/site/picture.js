/** From a file to grey values, or to a sentence that says why not; and back. */

import { grey, paint } from "./panels.js";

/** Pixels along either side of the largest picture. */
export const MAX_SIDE = 2000;

/** What cannot be used or restored; the message is for the user. */
export class Refused extends Error {}

/**
 * Read a picture; colour becomes grey.
 *
 * @param {Blob} file
 * @param {string} ground the colour behind transparent places
 * @returns {Promise<{pixels: Float32Array, width: number, height: number}>}
 * @throws {Refused}
 */
export async function read(file, ground) {
  const name = file.name || "The picture";
  let bitmap;
  try {
    bitmap = await createImageBitmap(file);
  } catch {
    throw new Refused(`${name} is no picture that this browser can decode. Choose an intact PNG, JPEG, GIF, BMP or WebP.`);
  }
  try {
    const { width, height } = bitmap;
    if (Math.max(width, height) > MAX_SIDE) {
      const most = MAX_SIDE.toLocaleString("en");
      throw new Refused(
        `${name} has ${width}×${height} pixels; this page takes up to ${most}×${most}. Cut a part out of it, or use “restore denoise”, which takes any size.`,
      );
    }
    return { pixels: greyOf(bitmap, ground), width, height };
  } finally {
    bitmap.close();
  }
}

/** Grey values as a PNG. @param {Float32Array | Uint8Array} values @returns {Promise<Blob>} */
export function encoded(values, width, height) {
  const canvas = new OffscreenCanvas(width, height);
  paint(canvas, width, height, (i) => grey(values[i]));
  return canvas.convertToBlob();
}

/** The grey values of a PNG in base64. @param {string} text @returns {Promise<Float32Array>} */
export async function decoded(text) {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt());
  return (await read(new Blob([bytes]), "black")).pixels;
}

/** Grey values in [0, 1]: the luminance of colour, and what is grey exactly as it is. */
function greyOf(bitmap, ground) {
  const { width, height } = bitmap;
  const context = new OffscreenCanvas(width, height).getContext("2d", { willReadFrequently: true });
  context.fillStyle = ground;
  context.fillRect(0, 0, width, height);
  context.drawImage(bitmap, 0, 0);
  const { data } = context.getImageData(0, 0, width, height);
  return Float32Array.from({ length: width * height }, (_, pixel) => {
    const [red, green, blue] = [data[4 * pixel], data[4 * pixel + 1], data[4 * pixel + 2]];
    return (red === green && red === blue ? red : 0.299 * red + 0.587 * green + 0.114 * blue) / 255;
  });
}
