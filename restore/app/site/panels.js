/** Showing images as canvases, one point per pixel, which the style sheet enlarges without smoothing. */

/** @typedef {[number, number, number]} Colour */

/** @type {Colour[]} made once, for there are millions of pixels */
const GREYS = Array.from({ length: 256 }, (_, level) => [level, level, level]);

/** @param {number} value in [0, 1] @returns {Colour} */
export function grey(value) {
  return GREYS[Math.round(255 * value)];
}

// Ever lighter, so that it reads in grey as well: at 0, 1/4, ... 1 of the range.
const STOPS = [
  [8, 8, 18],
  [70, 26, 98],
  [168, 50, 94],
  [237, 121, 60],
  [252, 240, 180],
];

/** @param {number} deviation standard deviation, in [0, 0.5] @returns {Colour} */
export function heat(deviation) {
  const place = Math.min(1, Math.max(0, 2 * deviation)) * (STOPS.length - 1);
  const from = Math.min(STOPS.length - 2, Math.floor(place));
  const share = place - from;
  return STOPS[from].map((value, i) => Math.round(value + share * (STOPS[from + 1][i] - value)));
}

/**
 * @param {HTMLCanvasElement} canvas
 * @param {number} width
 * @param {number} height
 * @param {(index: number) => Colour} colour of every pixel, row by row
 */
export function paint(canvas, width, height, colour) {
  canvas.width = width;
  canvas.height = height;
  const context = canvas.getContext("2d");
  const image = context.createImageData(width, height);
  for (let i = 0; i < width * height; i++) {
    const [red, green, blue] = colour(i);
    image.data[4 * i] = red;
    image.data[4 * i + 1] = green;
    image.data[4 * i + 2] = blue;
    image.data[4 * i + 3] = 255;
  }
  context.putImageData(image, 0, 0);
}

/**
 * Empty a canvas and give it a size.
 * @param {HTMLCanvasElement} canvas
 */
export function clear(canvas, width, height) {
  canvas.width = width;
  canvas.height = height;
}

/**
 * Offer a canvas as a PNG file.
 * @param {HTMLCanvasElement} canvas
 * @param {string} name of the file
 */
export function download(canvas, name) {
  canvas.toBlob((blob) => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(blob);
    link.download = name;
    link.click();
    URL.revokeObjectURL(link.href);
  });
}
