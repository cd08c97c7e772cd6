/** How large images are shown: to fit, or with so many points a pixel in frames that scroll together. */

/** Images up to this size are always shown to fit. */
const SMALL = 64;

/** Points a pixel below which squares for pixels would look uneven, unless they are all equal. */
const UNEVEN = 2.5;

/** Points at the edge of a frame that the keyboard's cursor stays away from. */
const EDGE = 24;

export class Zoom {
  #choice;
  #canvases;
  /** where frames were scrolled to from here, which is no scrolling by the user */
  #scrolled = new Map();

  /**
   * @param {HTMLSelectElement} choice of points a pixel; empty to fit
   * @param {HTMLCanvasElement[]} canvases each in a frame of its own
   */
  constructor(choice, canvases) {
    this.#choice = choice;
    this.#canvases = canvases;
    choice.addEventListener("change", () => this.update());
    const observer = new ResizeObserver(() => this.#smooth());
    for (const canvas of canvases) {
      observer.observe(canvas);
      canvas.parentElement.addEventListener("scroll", () => this.#follow(canvas.parentElement));
    }
  }

  /** The image of the editor has another size. @param {{width: number, height: number}} image */
  fit({ width, height }) {
    const large = Math.max(width, height) > SMALL;
    document.body.classList.toggle("large", large);
    this.#choice.parentElement.hidden = !large;
    if (!large) this.#choice.value = "";
    this.update();
  }

  /** Next larger or smaller. @param {1 | -1} step */
  by(step) {
    const place = Math.min(this.#choice.options.length - 1, Math.max(0, this.#choice.selectedIndex + step));
    if (this.#choice.parentElement.hidden) return;
    this.#choice.selectedIndex = place;
    this.update();
  }

  /** A canvas or the choice has changed. */
  update() {
    const points = Number(this.#choice.value);
    for (const canvas of this.#canvases) {
      canvas.style.width = points ? `${canvas.width * points}px` : "";
      canvas.style.setProperty("--aspect", String(canvas.width / canvas.height));
    }
    this.#smooth();
  }

  /** Bring a pixel of the first image into view. */
  reveal({ x, y }) {
    const [canvas] = this.#canvases;
    const frame = canvas.parentElement;
    const scale = canvas.clientWidth / canvas.width;
    const within = (place, from, length) => Math.min(place - EDGE, Math.max(from, place + EDGE - length));
    frame.scrollTo({
      left: within(x * scale, frame.scrollLeft, frame.clientWidth),
      top: within(y * scale, frame.scrollTop, frame.clientHeight),
    });
  }

  /** Pixels are squares where they are large enough. */
  #smooth() {
    const zoomed = this.#choice.value !== "";
    for (const canvas of this.#canvases) {
      canvas.classList.toggle("smooth", !zoomed && canvas.clientWidth < UNEVEN * canvas.width);
    }
  }

  #follow(frame) {
    const { scrollLeft, scrollTop } = frame;
    const ours = this.#scrolled.get(frame);
    this.#scrolled.delete(frame);
    if (ours && ours[0] === scrollLeft && ours[1] === scrollTop) return;
    for (const { parentElement: other } of this.#canvases) {
      if (other === frame) continue;
      const before = [other.scrollLeft, other.scrollTop];
      other.scrollTo(scrollLeft, scrollTop);
      // Shorter ways end sooner.
      const after = [other.scrollLeft, other.scrollTop];
      if (after[0] !== before[0] || after[1] !== before[1]) this.#scrolled.set(other, after);
    }
  }
}
