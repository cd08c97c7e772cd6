/** The probability p that a pixel is inverted: a text field for any number, and a slider beside it. */

/** The range of p on this page; above one half, inverting the image first is better. */
const LARGEST = 0.5;

export class Noise extends EventTarget {
  #field;
  #slider;

  /**
   * Fires "change" when p has changed.
   * @param {HTMLInputElement} field
   * @param {HTMLInputElement} slider
   */
  constructor(field, slider) {
    super();
    this.#field = field;
    this.#slider = slider;
    slider.addEventListener("input", () => this.#take(field, slider));
    field.addEventListener("input", () => this.#take(slider, field));
  }

  #take(other, changed) {
    if (changed === this.#slider || this.value !== null) other.value = changed.value;
    this.#field.setAttribute("aria-invalid", String(this.value === null));
    this.dispatchEvent(new Event("change"));
  }

  /** p, or null if the field holds no number in this range. */
  get value() {
    const text = this.#field.value.trim();
    const p = text === "" ? NaN : Number(text);
    return p >= 0 && p <= LARGEST ? p : null;
  }

  /** Send the user to the field, and say what is wrong with it. */
  complain() {
    this.#field.focus();
    return `p must be a number from 0 to ${LARGEST}, not “${this.#field.value}”.`;
  }
}
