/** The image of the editor on its canvas: its pixels, what is masked, and the keyboard's cursor. */

// The canvas of a small image is about this many points wide; one of an image of longer sides has a point per pixel.
const POINTS = 448;
const FINE = 56;

/** Two colours of what is masked, so that it can be seen without its colour. */
const MASKED = [
  [59, 111, 181],
  [201, 220, 245],
];
const [BLUE, PALE] = MASKED.map((colour) => `rgb(${colour.join(" ")})`);

/** @typedef {{left: number, top: number, right: number, bottom: number}} Part pixels of an image; ends are outside */

/**
 * The pixels around places, as far as they lie in an image.
 * @param {{x: number, y: number}[]} places
 * @param {number} reach
 * @param {{width: number, height: number}} image
 * @returns {Part}
 */
export function around(places, reach, { width, height }) {
  const [x, y] = ["x", "y"].map((axis) => places.map((place) => place[axis]));
  return {
    left: Math.max(0, Math.floor(Math.min(...x) - reach)),
    top: Math.max(0, Math.floor(Math.min(...y) - reach)),
    right: Math.min(width, Math.ceil(Math.max(...x) + reach + 1)),
    bottom: Math.min(height, Math.ceil(Math.max(...y) + reach + 1)),
  };
}

export class Easel {
  #canvas;
  /** points a pixel */
  #side = 1;

  /** @param {HTMLCanvasElement} canvas */
  constructor(canvas) {
    this.#canvas = canvas;
  }

  resize(width, height) {
    const longest = Math.max(width, height);
    this.#side = longest > FINE ? 1 : Math.floor(POINTS / longest);
    this.#canvas.width = width * this.#side;
    this.#canvas.height = height * this.#side;
  }

  /** How far around the cursor its mark reaches. */
  get margin() {
    return this.#side > 1 ? 1 : 2 + Math.max(4, Math.round(Math.max(this.#canvas.width, this.#canvas.height) / 100));
  }

  /**
   * @param {import("./editor.js").Editor} image
   * @param {Part} part what may have changed
   */
  show(image, part) {
    if (part.right <= part.left || part.bottom <= part.top) return;
    const context = this.#canvas.getContext("2d");
    if (this.#side === 1) showPoints(context, image, part);
    else this.#showSquares(context, image, part);
    if (this.#canvas.matches(":focus")) this.#showCursor(context, image.cursor);
  }

  #showSquares(context, image, { left, top, right, bottom }) {
    for (let y = top; y < bottom; y++) {
      for (let x = left; x < right; x++) showSquare(context, image, x, y, this.#side);
    }
  }

  #showCursor(context, { x, y }) {
    const reach = this.#side > 1 ? 0 : this.margin - 2;
    for (const [colour, inset] of [["#000", 0], ["#ffb000", 2]]) {
      context.strokeStyle = colour;
      context.lineWidth = 2;
      const size = (2 * reach + 1) * this.#side - 2 * inset + 2;
      context.strokeRect((x - reach) * this.#side + inset - 1, (y - reach) * this.#side + inset - 1, size, size);
    }
  }
}

/** A pixel as a square, hatched if it is masked. */
function showSquare(context, image, x, y, side) {
  const i = y * image.width + x;
  const level = Math.round(255 * image.pixels[i]);
  context.fillStyle = image.masked(i) ? BLUE : `rgb(${level} ${level} ${level})`;
  context.fillRect(x * side, y * side, side, side);
  if (!image.masked(i)) return;
  context.strokeStyle = PALE;
  context.lineWidth = Math.max(1, side / 10);
  context.beginPath();
  context.moveTo(x * side, (y + 1) * side);
  context.lineTo((x + 1) * side, y * side);
  context.stroke();
}

/** Pixels as points, every fourth pale where they are masked. */
function showPoints(context, image, { left, top, right, bottom }) {
  const points = context.createImageData(right - left, bottom - top);
  for (let y = top, at = 0; y < bottom; y++) {
    for (let x = left; x < right; x++, at += 4) {
      const i = y * image.width + x;
      const level = 255 * image.pixels[i];
      const colour = MASKED[Number((x + y) % 4 === 0)];
      for (let k = 0; k < 3; k++) points.data[at + k] = image.masked(i) ? colour[k] : level;
      points.data[at + 3] = 255;
    }
  }
  context.putImageData(points, left, top);
}
