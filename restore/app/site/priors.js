/** The list of priors, and the page's texts about them. */

import { learnt } from "./damage.js";

/** @typedef {import("./solver.js").Prior} Prior */

/**
 * @returns {Promise<{preferred: string, priors: Prior[]}>} preferred: the name of the one to begin with, if listed
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
    ["For any damage you describe: noise, a mask, or both", priors.filter((prior) => !prior.conditional)],
    ["For the one damage they have learnt", priors.filter((prior) => prior.conditional)],
  ];
  for (const [label, members] of groups.filter(([, members]) => members.length)) {
    const group = document.createElement("optgroup");
    group.label = label;
    group.append(...members.map(({ name }) => new Option(name)));
    select.append(group);
  }
}

/** @param {Prior} prior */
export function facts(prior) {
  const { width, height, hidden, method, data } = prior;
  const does = prior.conditional
    ? `Undoes ${learnt(prior.task)?.undone ?? prior.task}, from the damaged image alone.`
    : "Undoes noise, and fills what is masked.";
  return `${does} ${width}×${height} pixels, larger images in windows of that size; ${hidden} hidden units, trained by ${method.replaceAll("_", " ")} on ${data}.`;
}

/** A description of images that the prior needs inverted. @param {Prior} prior */
export function inversion(prior) {
  return prior.polarity === "light on dark" ? "Dark strokes on a light ground" : "Light shapes on a dark ground";
}

/** Whether an image has the size of the prior's, so that it is restored as a whole. @param {Prior} prior */
export function fits(prior, { width, height }) {
  return width === prior.width && height === prior.height;
}
