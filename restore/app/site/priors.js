/** The list of priors, and the page's texts about them. */

import { learnt } from "./damage.js";

/** @typedef {import("./solver.js").Prior} Prior */

/** What stands in the list for the prior, the polarity and the noise level that the server finds. */
export const AUTOMATIC = { name: "auto", task: "" };

/**
 * @returns {Promise<{served: boolean, preferred: string, priors: Prior[]}>} served: our server restores, else the
 *   page does; preferred: the name of the one to begin with, if listed
 */
export async function listed() {
  return (await fetch("models.json")).json();
}

/**
 * Fill a list to choose from.
 * @param {HTMLSelectElement} select
 * @param {Prior[]} priors
 */
export function offer(select, priors) {
  const groups = [
    ["For any damage you describe: noise, a mask, or both", priors.filter((prior) => !prior.task && prior.name !== "auto")],
    ["For the one damage they have learnt", priors.filter((prior) => prior.task)],
  ];
  if (priors[0].name === "auto") select.append(new Option("Automatic", "auto"));
  for (const [label, members] of groups.filter(([, members]) => members.length)) {
    const group = document.createElement("optgroup");
    group.label = label;
    group.append(...members.map(({ name }) => new Option(name)));
    select.append(group);
  }
}

/** @param {Prior} prior */
export function facts(prior) {
  if (prior.name === "auto") return "The prior, the noise and the polarity are found; what no prior knows stays as it is.";
  const { width, height, hidden, method, data, whole, page } = prior;
  const told = page ? "Reads a grey page as ink and paper, or fills what is masked." : "Undoes noise, and fills what is masked.";
  const does = prior.task ? `Undoes ${learnt(prior.task)?.undone ?? prior.task}, from the damaged image alone.` : told;
  const size = whole ? "Images of any size" : `${width}×${height} pixels`;
  const units = hidden ? `; ${hidden} hidden units` : "";
  return `${does} ${size}${units}. Trained by ${method.replaceAll("_", " ")} on ${data}.`;
}

/** Whether an image is mostly light. @param {Float32Array} pixels */
export function isLight(pixels) {
  return pixels.reduce((sum, value) => sum + value, 0) > pixels.length / 2;
}

/** Whether an image has to be inverted for a prior that is told its damage. @param {Prior} prior */
export function inverted(prior, pixels) {
  return !prior.task && isLight(pixels) !== (prior.polarity === "dark on light");
}

/** Why a prior of one size takes no image of another; empty if it does. @param {Prior} prior */
export function misfit(prior, image) {
  const { name, width, height, whole } = prior;
  if (whole || fits(prior, image)) return "";
  const has = `The image has ${image.width}×${image.height} pixels, and ${name} takes ${width}×${height} alone`;
  return `${has}; choose a prior for images of any size, or open a part of that size.`;
}

/** Whether an image has the size of the prior's, so that it is restored as a whole. @param {Prior} prior */
export function fits(prior, { width, height }) {
  return width === prior.width && height === prior.height;
}
