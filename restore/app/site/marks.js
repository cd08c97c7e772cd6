/** Marks on a picture, such as dirt and rules: what to look for, and what was found, in colours. */

/** A colour for each kind: each stands out from black and from white, and differs from the others in lightness, too. */
const COLOURS = [
  [0, 92, 200],
  [213, 94, 0],
  [0, 158, 115],
  [204, 0, 140],
  [230, 170, 0],
];

/** A picture of so many pixels is shown so small that what is marked needs one more pixel of its colour around it. */
const SEEN = 600;

/** How far the pale rim of what is marked lies between the picture and its colour. */
const PALE = 0.45;

/**
 * @typedef {Object} Found marks of one kind
 * @property {string} kind
 * @property {string} words how many there are
 * @property {Float32Array} mask 1 where they are
 */

/**
 * The colours of a picture on which marks are shown: each mark in the colour of its kind, with a pale rim.
 * @param {{pixels: Float32Array, width: number, height: number}} picture
 * @param {Found[]} found
 * @param {(value: number) => import("./panels.js").Colour} grey
 * @returns {(index: number) => import("./panels.js").Colour}
 */
export function coloured({ pixels, width, height }, found, grey) {
  const reach = Math.round(Math.max(width, height) / SEEN);
  const [inside, rim] = [new Uint8Array(pixels.length), new Uint8Array(pixels.length)];
  found.forEach(({ mask }, number) => {
    mask.forEach((value, i) => {
      if (value < 0.5) return;
      inside[i] = number + 1;
      const [x, y] = [i % width, Math.floor(i / width)];
      for (let row = Math.max(0, y - reach); row <= Math.min(height - 1, y + reach); row++) {
        rim.fill(number + 1, row * width + Math.max(0, x - reach), row * width + Math.min(width, x + reach + 1));
      }
    });
  });
  const pale = (colour, ground) => colour.map((value, k) => Math.round(ground[k] + PALE * (value - ground[k])));
  return (i) => {
    if (inside[i]) return colourOf(inside[i] - 1);
    return rim[i] ? pale(colourOf(rim[i] - 1), grey(pixels[i])) : grey(pixels[i]);
  };
}

const colourOf = (number) => COLOURS[number % COLOURS.length];

/** The controls of marks: what to look for, what was found, and its removal. */
export class Marks {
  #controls;
  #kinds;
  /** @type {{remove: string, specks: string} | null} what was asked, of what is shown */
  #asked = null;

  /**
   * @param {{panel: HTMLElement, kinds: HTMLElement, specks: HTMLInputElement, legend: HTMLElement, remove: HTMLButtonElement}} controls
   * @param {Record<string, string>} kinds their words, such as "patterns of dots", by name
   */
  constructor(controls, kinds) {
    this.#controls = controls;
    this.#kinds = Object.entries(kinds).map(([name, words]) => {
      const box = Object.assign(document.createElement("input"), { type: "checkbox", name: "marks", value: name });
      Object.assign(box, { checked: true, autocomplete: "off" });
      const label = document.createElement("label");
      label.className = "check";
      label.append(box, Object.assign(document.createElement("span"), { textContent: words }));
      controls.kinds.append(label);
      return box;
    });
    controls.panel.hidden = false;
    this.clear();
  }

  /** What to look for, as options of the server; null if no kind is chosen, or the size of specks is no number. */
  get asked() {
    const { specks } = this.#controls;
    const chosen = this.#kinds.filter(({ checked }) => checked).map(({ value }) => value);
    if (!chosen.length || !specks.validity.valid) return null;
    return { remove: chosen.join(","), specks: chosen.includes("specks") ? specks.value : "" };
  }

  /** What is shown, as options of the server; null if nothing is. */
  get shown() {
    return this.#asked;
  }

  /** @param {Found[]} found */
  show(found) {
    const { legend, remove } = this.#controls;
    legend.replaceChildren(
      ...found.map(({ words }, number) => {
        const swatch = Object.assign(document.createElement("span"), { className: "swatch" });
        swatch.style.backgroundColor = `rgb(${colourOf(number).join(" ")})`;
        const item = document.createElement("li");
        item.append(swatch, words);
        return item;
      }),
    );
    remove.hidden = !found.length;
    if (!found.length) return;
    const kinds = found.map(({ kind }) => kind);
    this.#asked = { remove: kinds.join(","), specks: kinds.includes("specks") ? this.#controls.specks.value : "" };
  }

  /** Nothing is shown any more. */
  clear() {
    this.#asked = null;
    this.#controls.legend.replaceChildren();
    this.#controls.remove.hidden = true;
  }
}
