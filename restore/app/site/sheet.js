/** The levels of ink and of paper around each pixel of a page, and the page with white paper: as `restore.inference.scans`. */

/**
 * @typedef {{reach: number, cell: number, few: number, least: number, lightInk: number, enough: number, outliers: number,
 *   stretch: Stretch}} Reading
 * @typedef {{side: number, ink: number, inkShare: number, paper: number, paperShare: number, faintest: number}} Stretch
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

  /** Sums around every cell; all pixels of a cell have the weight of its middle. @param {ArrayLike<number>} values */
  sums(values) {
    const [down, across] = this.#axes;
    const cells = new Float64Array(down.count * across.count);
    for (let y = 0, i = 0; y < down.size; y++) {
      const row = Math.floor(y / this.#cell) * across.count;
      for (let cell = 0, x = 0; cell < across.count; cell++) {
        let sum = 0;
        for (const end = Math.min(across.size, x + this.#cell); x < end; x++, i++) sum += values[i];
        cells[row + cell] += sum;
      }
    }
    const [rows, both] = [new Float64Array(cells.length), new Float64Array(cells.length)];
    for (let y = 0; y < down.count; y++) {
      for (let k = 0; k < down.count; k++) {
        const weight = down.gather[y][k];
        for (let x = 0; x < across.count; x++) rows[y * across.count + x] += weight * cells[k * across.count + x];
      }
      for (let x = 0; x < across.count; x++) {
        for (let k = 0; k < across.count; k++) both[y * across.count + x] += across.gather[x][k] * rows[y * across.count + k];
      }
    }
    return both;
  }

  /** Values of cells as an image, linear between the cells' centres. @param {Float64Array} cells */
  image(cells) {
    const [rows, columns] = this.#axes.map(({ size, count }) =>
      Array.from({ length: size }, (_, place) => {
        const position = Math.min(count - 1, Math.max(0, (place - (this.#cell - 1) / 2) / this.#cell));
        const before = Math.floor(position);
        return [before, Math.min(count - 1, before + 1), position - before];
      }),
    );
    const [first, second, shares] = [0, 1, 2].map((part) => Float64Array.from(columns, (column) => column[part]));
    const image = new Float32Array(rows.length * columns.length);
    const line = new Float64Array(this.#axes[1].count);
    rows.forEach(([above, below, share], y) => {
      for (let k = 0; k < line.length; k++) {
        line[k] = cells[above * line.length + k] * (1 - share) + cells[below * line.length + k] * share;
      }
      for (let x = 0, i = y * columns.length; x < columns.length; x++, i++) {
        image[i] = line[first[x]] * (1 - shares[x]) + line[second[x]] * shares[x];
      }
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
  const visible = mask.map((value) => 1 - value);
  const seen = local.sums(visible);
  const level = (isPaper) => {
    const own = visible.map((value, i) => (paper[i] >= 0.5 === isPaper ? value : 0));
    const [count, light] = [own, product(own, pixels)].map((values) => local.sums(values));
    const all = own.includes(1) ? own : visible;
    const whole = total(product(all, pixels)) / Math.max(total(all), 1e-6);
    const few = seen.map((value) => reading.few * value);
    return local.image(light.map((sum, k) => (sum + few[k] * whole) / Math.max(count[k] + few[k], 1e-6)));
  };
  return { black: level(false), white: level(true) };
}

/**
 * The probability of paper by what a prior says of the surroundings of pixels, and by their own levels.
 * @param {Page} page
 * @param {Float32Array} paper what the prior says
 * @param {{black: Float32Array, white: Float32Array}} levels
 * @param {Reading} reading
 */
export function judged({ pixels, mask }, paper, { black, white }, { least, outliers }) {
  const residual = (value, i) => value - paper[i] * white[i] - (1 - paper[i]) * black[i];
  const seen = mask.length - total(mask);
  const squares = pixels.reduce((sum, value, i) => sum + (1 - mask[i]) * residual(value, i) ** 2, 0);
  const width = Math.max(Math.sqrt(squares / Math.max(seen, 1)), least);
  const contrast = white.reduce((sum, value, i) => sum + value - black[i], 0) / white.length;
  const beyond = outliers / (2 * Math.max(Math.abs(contrast), least));
  const density = (value, level) =>
    ((1 - outliers) / (width * Math.sqrt(2 * Math.PI))) * Math.exp(-(((value - level) / width) ** 2) / 2) + beyond;
  return paper.map((value, i) => {
    if (mask[i]) return value;
    const share = value * density(pixels[i], white[i]);
    return share / (share + (1 - value) * density(pixels[i], black[i]));
  });
}

/**
 * The levels of a page at which ink and paper are as its prior has learnt.
 * @param {Page} page
 * @param {Stretch} how
 */
export function stretched({ width, height, pixels, mask }, { side, ink, inkShare, paper, paperShare, faintest }) {
  const [across, down] = [width, height].map((size) => Math.ceil(size / side));
  const [sums, counts, hidden] = [0, 1, 2].map(() => new Float64Array(across * down));
  for (let y = 0, i = 0; y < height; y++) {
    const row = Math.floor(y / side) * across;
    for (let x = 0; x < width; x++, i++) {
      const square = row + Math.floor(x / side);
      sums[square] += pixels[i];
      counts[square]++;
      hidden[square] += mask[i];
    }
  }
  const means = sums.map((sum, k) => sum / counts[k]);
  const seen = means.filter((_, k) => !hidden[k]);
  const sorted = (seen.length ? seen : means).sort();
  const [dark, light] = [inkShare, paperShare].map((share) => sorted[Math.floor(share * (sorted.length - 1))]);
  const gain = (paper - ink) / (Math.max(light - dark, faintest * light) || 1);
  return pixels.map((value) => Math.min(1, Math.max(0, paper + gain * (value - light))));
}

/** @param {Uint8Array} weights @param {Float32Array} values */
function product(weights, values) {
  return values.map((value, i) => weights[i] * value);
}

/** @param {ArrayLike<number>} values */
function total(values) {
  let sum = 0;
  for (let i = 0; i < values.length; i++) sum += values[i];
  return sum;
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
  const grey = new Float32Array(across * down).map((_, i) => pixels[place(i)]);
  const visible = new Uint8Array(grey.length).map((_, i) => 1 - mask[place(i)]);
  const local = new Local(across, down, reading);
  const [counts, sums] = [visible, product(visible, grey)].map((values) => local.sums(values));
  const mean = local.image(sums.map((sum, k) => sum / Math.max(counts[k], 1e-6)));
  const around = grey.map((value, i) => visible[i] * (value - mean[i]));
  const moment = (power) => total(around.map((value) => value ** power)) / total(visible);
  return moment(3) > reading.lightInk * moment(2) ** 1.5;
}
