/** From a file to grey values, or to a sentence that says why not. */

import { HEAD, statedSize } from "./sizes.js";

/** Pixels along either side of the largest picture. */
export const MAX_SIDE = 2000;

/** A picture that cannot be used; the message is for the user. */
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
  const size = statedSize(new Uint8Array(await file.slice(0, HEAD).arrayBuffer()));
  const name = file.name || "The picture";
  if (!size) throw new Refused(`${name} is no PNG, JPEG, GIF, BMP or WebP image. Choose another file.`);
  checkSize(name, size);
  let bitmap;
  try {
    bitmap = await createImageBitmap(file);
  } catch {
    throw new Refused(`${name} is damaged and cannot be decoded. Get the file again.`);
  }
  try {
    return { pixels: greyOf(bitmap, ground), width: bitmap.width, height: bitmap.height };
  } finally {
    bitmap.close();
  }
}

/**
 * @param {string} name
 * @param {import("./sizes.js").Size} size
 * @throws {Refused} if the picture is empty or too large
 */
export function checkSize(name, { width, height }) {
  if (!(width > 0 && height > 0)) throw new Refused(`${name} has no pixels. Choose another file.`);
  if (Math.max(width, height) > MAX_SIDE) {
    const most = MAX_SIDE.toLocaleString("en");
    throw new Refused(
      `${name} has ${width}×${height} pixels; this page takes up to ${most}×${most}. Cut a part out of it, or use “restore denoise”, which takes any size.`,
    );
  }
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
