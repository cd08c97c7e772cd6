/** The image to restore: painted, masked, filled from files; by pointer or by keyboard. */

// How many changes can be undone.
const HISTORY = 50;
// The canvas is about this many points wide, whatever the size of the image.
const POINTS = 448;

const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

/**
 * Fires "change" when pixels or mask have changed, and "cursor" when the keyboard's cursor has moved.
 */
export class Editor extends EventTarget {
  width = 0;
  height = 0;
  /** grey values in [0, 1], row by row */
  pixels = new Float32Array();
  /** 1 where a pixel is to be filled */
  mask = new Uint8Array();
  /** @type {"draw" | "erase" | "mask" | "unmask"} */
  tool = "draw";
  /** diameter of the brush in pixels */
  brush = 2;
  /** value of an empty image; strokes have the opposite one */
  ground = 0;
  cursor = { x: 0, y: 0 };
  #masking = true;
  #history = [];
  #canvas;
  #last = null;

  /** @param {HTMLCanvasElement} canvas */
  constructor(canvas) {
    super();
    this.#canvas = canvas;
    canvas.addEventListener("pointerdown", (event) => this.#press(event));
    canvas.addEventListener("pointermove", (event) => this.#move(event));
    for (const name of ["pointerup", "pointercancel"]) canvas.addEventListener(name, () => (this.#last = null));
    canvas.addEventListener("keydown", (event) => this.#key(event));
    for (const name of ["focus", "blur"]) canvas.addEventListener(name, () => this.#show());
  }

  /**
   * Take an image; the mask is emptied. One of another size cannot be undone.
   * @param {Float32Array} pixels
   */
  set(pixels, width, height) {
    if (this.width === width && this.height === height) this.#remember();
    else this.#resize(width, height);
    this.pixels = pixels;
    this.mask = new Uint8Array(width * height);
    this.#changed();
  }

  /**
   * Change the values of the image and leave the mask.
   * @param {(pixels: Float32Array) => Float32Array} change
   */
  alter(change) {
    this.#remember();
    this.pixels = change(this.pixels);
    this.#changed();
  }

  clearImage() {
    this.alter((pixels) => pixels.map(() => this.ground));
  }

  clearMask() {
    this.#remember();
    this.mask = new Uint8Array(this.mask.length);
    this.#changed();
  }

  undo() {
    const before = this.#history.pop();
    if (!before) return;
    [this.pixels, this.mask] = before;
    this.#changed();
  }

  /** Whether the mask is used and shown; if not, it is kept for later. */
  set masking(masking) {
    this.#masking = masking;
    this.#show();
  }

  /** Whether a pixel is to be filled. */
  masked(i) {
    return this.#masking && this.mask[i] === 1;
  }

  get canUndo() {
    return this.#history.length > 0;
  }

  #resize(width, height) {
    this.width = width;
    this.height = height;
    this.#history = [];
    this.cursor = { x: width >> 1, y: height >> 1 };
    const side = Math.max(1, Math.floor(POINTS / Math.max(width, height)));
    this.#canvas.width = width * side;
    this.#canvas.height = height * side;
  }

  #remember() {
    this.#history.push([this.pixels.slice(), this.mask.slice()]);
    if (this.#history.length > HISTORY) this.#history.shift();
  }

  #changed() {
    this.#show();
    this.dispatchEvent(new Event("change"));
  }

  // ---- painting

  /** Paint every pixel whose centre lies under the brush at a place, and the pixel of that place itself. */
  #dab(x, y) {
    const reach = this.brush / 2;
    for (let row = Math.floor(y - reach); row <= y + reach; row++) {
      for (let column = Math.floor(x - reach); column <= x + reach; column++) {
        const here = column === Math.floor(x) && row === Math.floor(y);
        if (here || Math.hypot(column + 0.5 - x, row + 0.5 - y) <= reach) this.#paint(column, row);
      }
    }
  }

  #paint(x, y) {
    if (x < 0 || y < 0 || x >= this.width || y >= this.height) return;
    const i = y * this.width + x;
    if (this.tool === "mask" || this.tool === "unmask") this.mask[i] = this.tool === "mask" ? 1 : 0;
    else this.pixels[i] = this.tool === "draw" ? 1 - this.ground : this.ground;
  }

  /** Paint along a line, in steps of half a pixel. */
  #stroke(from, to) {
    const steps = Math.max(1, Math.ceil(2 * Math.hypot(to.x - from.x, to.y - from.y)));
    for (let i = 0; i <= steps; i++) {
      this.#dab(from.x + ((to.x - from.x) * i) / steps, from.y + ((to.y - from.y) * i) / steps);
    }
    this.#changed();
  }

  #place(event) {
    const box = this.#canvas.getBoundingClientRect();
    return {
      x: ((event.clientX - box.left) / box.width) * this.width,
      y: ((event.clientY - box.top) / box.height) * this.height,
    };
  }

  #press(event) {
    if (event.button !== 0) return;
    this.#canvas.setPointerCapture(event.pointerId);
    this.#remember();
    this.#last = this.#place(event);
    this.#stroke(this.#last, this.#last);
  }

  #move(event) {
    if (!this.#last) return;
    const place = this.#place(event);
    this.#stroke(this.#last, place);
    this.#last = place;
  }

  #key(event) {
    const step = ARROWS[event.key];
    if ((!step && event.key !== " ") || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    const centre = () => ({ x: this.cursor.x + 0.5, y: this.cursor.y + 0.5 });
    const from = centre();
    if (step) {
      this.cursor.x = Math.min(this.width - 1, Math.max(0, this.cursor.x + step[0]));
      this.cursor.y = Math.min(this.height - 1, Math.max(0, this.cursor.y + step[1]));
    }
    if (!step || event.shiftKey) {
      this.#remember();
      this.#stroke(from, centre());
    }
    this.#show();
    this.dispatchEvent(new Event("cursor"));
  }

  // ---- showing

  #show() {
    const context = this.#canvas.getContext("2d");
    const side = this.#canvas.width / this.width;
    for (let y = 0; y < this.height; y++) {
      for (let x = 0; x < this.width; x++) this.#showPixel(context, x, y, side);
    }
    if (this.#canvas.matches(":focus")) this.#showCursor(context, side);
  }

  /** A pixel to fill is hatched, so that it can be seen without its colour. */
  #showPixel(context, x, y, side) {
    const i = y * this.width + x;
    const level = Math.round(255 * this.pixels[i]);
    context.fillStyle = this.masked(i) ? "#3b6fb5" : `rgb(${level} ${level} ${level})`;
    context.fillRect(x * side, y * side, side, side);
    if (!this.masked(i)) return;
    context.strokeStyle = "#c9dcf5";
    context.lineWidth = Math.max(1, side / 10);
    context.beginPath();
    context.moveTo(x * side, (y + 1) * side);
    context.lineTo((x + 1) * side, y * side);
    context.stroke();
  }

  #showCursor(context, side) {
    for (const [colour, inset] of [["#000", 0], ["#ffb000", 2]]) {
      context.strokeStyle = colour;
      context.lineWidth = 2;
      context.strokeRect(
        this.cursor.x * side + inset - 1,
        this.cursor.y * side + inset - 1,
        side - 2 * inset + 2,
        side - 2 * inset + 2,
      );
    }
  }
}
