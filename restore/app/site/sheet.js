/** The levels of ink and of paper around each pixel of a page, and the page with white paper: as `restore.inference.scans`. */

/**
 * @typedef {{reach: number, cell: number, few: number, least: number, lightInk: number, enough: number}} Reading
 * @typedef {{width: number, height: number, pixels: Float32Array, mask: Uint8Array}} Page dark ink on light paper
 */

/** Gaussian-weighted sums around every cell of a page. */
class Local {
  #axes;
  #cell;

  /** @param {Reading} reading */
  constructor(width, height, { reach, cell }) {
    this.#cell = cell;
    this.#axes = [height, width].map((size) => {
      const count = Math.ceil(size / cell);
      const centres = Array.from({ length: count }, (_, k) => (k + 0.5) * cell - 0.5);
      // The last cell may be shorter.
      const middles = centres.map((centre, k) => Math.min(centre, (k * cell + size - 1) / 2));
      const gather = centres.map((centre) => middles.map((middle) => Math.exp(-(((middle - centre) / reach) ** 2) / 2)));
      return { size, count, gather };
    });
  }

  /** Sums around every cell; all pixels of a cell have the weight of its middle. @param {(i: number) => number} value */
  sums(value) {
    const [down, across] = this.#axes;
    const cells = new Float64Array(down.count * across.count);
    for (let y = 0, i = 0; y < down.size; y++) {
      const row = Math.floor(y / this.#cell) * across.count;
      for (let x = 0; x < across.size; x++, i++) cells[row + Math.floor(x / this.#cell)] += value(i);
    }
    const rows = new Float64Array(cells.length);
    const both = new Float64Array(cells.length);
    for (let x = 0; x < across.count; x++) {
      down.gather.forEach((weights, y) => {
        rows[y * across.count + x] = weights.reduce((sum, weight, k) => sum + weight * cells[k * across.count + x], 0);
      });
    }
    for (let y = 0; y < down.count; y++) {
      across.gather.forEach((weights, x) => {
        both[y * across.count + x] = weights.reduce((sum, weight, k) => sum + weight * rows[y * across.count + k], 0);
      });
    }
    return both;
  }

  /** Values of cells as an image, linear between the cells' centres. @param {Float64Array} cells */
  image(cells) {
    const [down, across] = this.#axes;
    const [rows, columns] = this.#axes.map(({ size, count }) =>
      Array.from({ length: size }, (_, place) => {
        const position = Math.min(count - 1, Math.max(0, (place - (this.#cell - 1) / 2) / this.#cell));
        const before = Math.floor(position);
        return { before, after: Math.min(count - 1, before + 1), share: position - before };
      }),
    );
    const image = new Float32Array(down.size * across.size);
    rows.forEach((row, y) => {
      const [upper, lower] = [row.before, row.after].map((place) => place * across.count);
      columns.forEach((column, x) => {
        const at = (first) => cells[first + column.before] * (1 - column.share) + cells[first + column.after] * column.share;
        image[y * across.size + x] = at(upper) * (1 - row.share) + at(lower) * row.share;
      });
    });
    return image;
  }
}

/**
 * The levels of ink and of paper.
 * @param {Page} page
 * @param {Float32Array} paper its probability at every pixel
 * @param {Reading} reading
 */
export function levels({ width, height, pixels, mask }, paper, reading) {
  const local = new Local(width, height, reading);
  const visible = (i) => 1 - mask[i];
  const seen = local.sums(visible);
  const [black, white] = [(i) => paper[i] < 0.5, (i) => paper[i] >= 0.5].map((is) => {
    const weight = (i) => Number(is(i)) * visible(i);
    const [count, light] = [local.sums(weight), local.sums((i) => weight(i) * pixels[i])];
    const all = count.some(Boolean) ? weight : visible;
    let [number, sum] = [0, 0];
    for (let i = 0; i < pixels.length; i++) {
      number += all(i);
      sum += all(i) * pixels[i];
    }
    const whole = sum / Math.max(number, 1e-6);
    return local.image(
      count.map((value, k) => (light[k] + reading.few * seen[k] * whole) / Math.max(value + reading.few * seen[k], 1e-6)),
    );
  });
  return { black, white };
}

/**
 * The page with white paper, and ink and its edges as dark against it as they were.
 * @param {Page} page
 * @param {Float32Array} paper its probability at every pixel
 * @param {Float32Array} white the level of paper
 * @param {Reading} reading
 */
export function lightened({ width, height, pixels }, paper, white, { least }) {
  const clamped = (value) => Math.min(1, Math.max(0, value));
  const rows = paper.map((value, i) => {
    const x = i % width;
    return 1 - Math.min(value, paper[x ? i - 1 : i], paper[x < width - 1 ? i + 1 : i]);
  });
  return pixels.map((value, i) => {
    const y = Math.floor(i / width);
    const ink = Math.max(rows[i], rows[y ? i - width : i], rows[y < height - 1 ? i + width : i]);
    return 1 - ink * (1 - clamped(value / Math.max(white[i], least)));
  });
}

/** A page whose holes have the median of what is seen. @param {Page} page */
export function withHolesFilled(page) {
  if (!page.mask.includes(1)) return page;
  const seen = page.pixels.filter((_, i) => !page.mask[i]).sort();
  const middle = seen.length >> 1;
  const median = !seen.length ? 0 : seen.length % 2 ? seen[middle] : (seen[middle - 1] + seen[middle]) / 2;
  return { ...page, pixels: page.pixels.map((value, i) => (page.mask[i] ? median : value)) };
}

/** Whether what stands out of its surroundings is light. @param {Page} page @param {Reading} reading */
export function hasLightInk({ width, height, pixels, mask }, reading) {
  const step = 1 + Math.floor(Math.sqrt((width * height) / reading.enough));
  const [across, down] = [width, height].map((size) => Math.ceil(size / step));
  const place = (i) => Math.floor(i / across) * step * width + (i % across) * step;
  const local = new Local(across, down, reading);
  const visible = (i) => 1 - mask[place(i)];
  const counts = local.sums(visible);
  const sums = local.sums((i) => visible(i) * pixels[place(i)]);
  const mean = local.image(sums.map((sum, k) => sum / Math.max(counts[k], 1e-6)));
  let [number, square, cube] = [0, 0, 0];
  mean.forEach((value, i) => {
    if (!visible(i)) return;
    const around = pixels[place(i)] - value;
    number += 1;
    square += around ** 2;
    cube += around ** 3;
  });
  return cube / number > reading.lightInk * (square / number) ** 1.5;
}
