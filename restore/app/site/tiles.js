/** Windows of one size that cover an image of any: the same ones as `restore denoise` takes. */

/**
 * Windows along one axis, `stride` apart: they begin before the image and end behind it, or one holds it in its middle.
 * @param {number} size of the image
 * @param {number} window
 * @param {number} overlap windows that begin within the length of one
 */
export function axis(size, window, overlap) {
  const stride = Math.ceil(window / Math.min(overlap, window));
  const before = size <= window ? (window - size) >> 1 : window - stride;
  const count = size <= window ? 1 : Math.floor((size - 1 + before) / stride) + 1;
  return { size, window, stride, before, count, padded: (count - 1) * stride + window };
}

/** The windows of an image, row by row. Images with what lies around them are called padded. */
export class Cover {
  /**
   * @param {{width: number, height: number}} image
   * @param {{width: number, height: number}} window
   * @param {number} overlap
   */
  constructor(image, window, overlap) {
    this.across = axis(image.width, window.width, overlap);
    this.down = axis(image.height, window.height, overlap);
    /** number of windows */
    this.count = this.across.count * this.down.count;
    /** pixels of a window */
    this.size = window.width * window.height;
    /** pixels of the padded image */
    this.padded = this.across.padded * this.down.padded;
  }

  /**
   * @param {Float32Array | Uint8Array} image
   * @param {number | "edge"} outside what lies around it; with "edge", what its nearest pixel is
   */
  pad(image, outside) {
    const { across, down } = this;
    const padded = new image.constructor(this.padded).fill(outside === "edge" ? 0 : outside);
    const inside = (place, { size }) => Math.min(size - 1, Math.max(0, place));
    for (let row = 0; row < down.padded; row++) {
      const y = row - down.before;
      if (outside !== "edge" && y !== inside(y, down)) continue;
      const line = image.subarray(inside(y, down) * across.size).subarray(0, across.size);
      const start = row * across.padded;
      padded.set(line, start + across.before);
      if (outside !== "edge") continue;
      padded.fill(line[0], start, start + across.before);
      padded.fill(line.at(-1), start + across.before + across.size, start + across.padded);
    }
    return padded;
  }

  /** @param {Float64Array} padded */
  crop(padded) {
    const { across, down } = this;
    const image = new padded.constructor(across.size * down.size);
    for (let y = 0; y < down.size; y++) {
      const start = (y + down.before) * across.padded + across.before;
      image.set(padded.subarray(start, start + across.size), y * across.size);
    }
    return image;
  }

  /**
   * The windows, one after the other.
   * @param {Float32Array} padded
   */
  cut(padded) {
    const windows = new padded.constructor(this.count * this.size);
    for (let index = 0; index < this.count; index++) {
      this.each(index, (place, i) => (windows[index * this.size + i] = padded[place]));
    }
    return windows;
  }

  /**
   * Go through the pixels of a window.
   * @param {number} index of the window
   * @param {(place: number, i: number) => void} visit is told where a pixel lies in the padded image, and in the window
   */
  each(index, visit) {
    const { across, down } = this;
    const corner = Math.floor(index / across.count) * down.stride * across.padded + (index % across.count) * across.stride;
    for (let y = 0, i = 0; y < down.window; y++) {
      const start = corner + y * across.padded;
      for (let x = 0; x < across.window; x++, i++) visit(start + x, i);
    }
  }
}
