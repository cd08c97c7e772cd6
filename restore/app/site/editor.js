/** The image to restore: painted, masked, filled from files; by pointer or by keyboard. */

import { around, Easel } from "./easel.js";

// How many changes can be undone, and how many pixels they may hold together.
const HISTORY = 50;
const HISTORY_PIXELS = 2e7;

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
  #easel;
  #last = null;

  /** @param {HTMLCanvasElement} canvas */
  constructor(canvas) {
    super();
    this.#canvas = canvas;
    this.#easel = new Easel(canvas);
    canvas.addEventListener("pointerdown", (event) => this.#press(event));
    canvas.addEventListener("pointermove", (event) => this.#move(event));
    for (const name of ["pointerup", "pointercancel"]) canvas.addEventListener(name, () => (this.#last = null));
    canvas.addEventListener("keydown", (event) => this.#key(event));
    for (const name of ["focus", "blur"]) canvas.addEventListener(name, () => this.#showAround([this.cursor]));
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
    this.#easel.resize(width, height);
  }

  #remember() {
    this.#history.push([this.pixels.slice(), this.mask.slice()]);
    const most = Math.min(HISTORY, Math.max(1, Math.floor(HISTORY_PIXELS / this.pixels.length)));
    if (this.#history.length > most) this.#history.shift();
  }

  #changed(part) {
    this.#show(part);
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

  /** Paint along a line, in steps of half a pixel, or longer ones with a large brush. */
  #stroke(from, to) {
    const step = Math.max(0.5, this.brush / 16);
    const steps = Math.max(1, Math.ceil(Math.hypot(to.x - from.x, to.y - from.y) / step));
    for (let i = 0; i <= steps; i++) {
      this.#dab(from.x + ((to.x - from.x) * i) / steps, from.y + ((to.y - from.y) * i) / steps);
    }
    this.#changed(around([from, to], this.brush / 2 + 1, this));
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
    const before = { ...this.cursor };
    if (step) {
      this.cursor.x = Math.min(this.width - 1, Math.max(0, this.cursor.x + step[0]));
      this.cursor.y = Math.min(this.height - 1, Math.max(0, this.cursor.y + step[1]));
    }
    if (!step || event.shiftKey) {
      this.#remember();
      this.#stroke(from, centre());
    }
    this.#showAround([before, this.cursor]);
    this.dispatchEvent(new Event("cursor"));
  }

  // ---- showing

  #show(part = { left: 0, top: 0, right: this.width, bottom: this.height }) {
    this.#easel.show(this, part);
  }

  /** Show anew what the mark of the cursor covers at places. */
  #showAround(places) {
    this.#show(around(places, this.#easel.margin, this));
  }
}
