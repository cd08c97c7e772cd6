/** Ties the controls of the page to the image, the solver and the result. */

import { receiveFiles } from "./arrivals.js";
import { flips, generator, learnt } from "./damage.js";
import { Editor } from "./editor.js";
import { Marks } from "./marks.js";
import { heat, paint } from "./panels.js";
import { read, Refused } from "./picture.js";
import { AUTOMATIC, facts, fits, isLight, listed, offer } from "./priors.js";
import { ResultView } from "./result.js";
import { Server } from "./server.js";
import { Solver } from "./solver.js";
import { Zoom } from "./zoom.js";

const at = (id) => document.getElementById(id);
const editor = new Editor(at("image"));
const view = new ResultView({ before: at("before"), after: at("after"), uncertainty: at("uncertainty") });
/** @type {Server | Solver} */
let solver;
/** @type {Marks | null} where a server finds them */
let marks = null;
const zoom = new Zoom(at("zoom"), ["image", "before", "after", "uncertainty"].map(at));

/** @type {Map<string, import("./solver.js").Prior>} */
const priors = new Map();
/** @type {import("./solver.js").Prior} the chosen one */
let prior;
// The image is still the example, which may be exchanged for the one of another prior.
let untouched = false;
// How often an example of the prior was shown: there may be several.
let shown = 0;
/** @type {Map<string, Blob>} example images by their names */
const examples = new Map();
// Our server restores, which finds what it is not told.
let served = false;
// The share of pixels that the damage button inverts if none is chosen.
const USUAL = 0.1;
// Every damage has a seed of its own, the same ones in every session.
let seed = 0;
let busy = false;

// ---- saying

function say(text) {
  at("status").textContent = text;
}

/** What went wrong, or advice; empty to take it away. */
function warn(text) {
  at("message").textContent = text;
}

// ---- priors

async function start() {
  const { preferred, priors: all, ...site } = await listed();
  served = site.served;
  solver = served ? new Server() : new Solver();
  if (served) {
    all.unshift({ ...all.find(({ name }) => name === preferred), ...AUTOMATIC });
    Object.assign(at("p"), { required: false, value: "", placeholder: "found" });
    at("p-hint").textContent = "From 0 to 0.5; leave it empty to have it found, or to keep what is not masked as it is.";
    const controls = { panel: "marks", kinds: "mark-kinds", specks: "specks", legend: "found-kinds", remove: "remove-marks" };
    marks = new Marks(Object.fromEntries(Object.entries(controls).map(([name, id]) => [name, at(id)])), site.marks);
  }
  // Loaded now, because the server may have stopped later.
  for (const name of new Set(all.flatMap(pictures))) examples.set(name, await (await fetch(name)).blob());
  for (const each of all) priors.set(each.name, each);
  offer(at("prior"), all);
  at("prior").value = !served && priors.has(preferred) ? preferred : all[0].name;
  const chosen = choose(at("prior").value);
  // The controls need a prior.
  connectControls();
  connectKeys();
  receiveFiles(open, warn);
  await chosen;
}

/** @param {string} name */
async function choose(name) {
  const first = !prior;
  shown = 0;
  delete at("status").dataset.prior;
  if (busy) solver.cancel();
  prior = priors.get(name);
  at("facts").textContent = facts(prior);
  for (const element of document.querySelectorAll(".told")) element.hidden = Boolean(prior.task);
  at("damaged-by").hidden = prior.name !== AUTOMATIC.name;
  showKind();
  editor.masking = !prior.task;
  if (prior.task && ["mask", "unmask"].includes(editor.tool)) chooseTool("draw");
  at("invert").value = "";
  clearResult(first ? prior : editor);
  warn("");
  if (first || untouched) await showExample();
  showControls();
  await load();
}

function name(of) {
  return of.name === "auto" ? "Automatic choice" : of.name;
}

async function load() {
  const loading = prior;
  if (!served) say(`Loading ${loading.name}, ${(loading.bytes / 1e6).toFixed(1)} MB …`);
  try {
    await solver.load(loading);
    if (loading === prior) {
      at("status").dataset.prior = loading.name;
      say("Ready.");
    }
  } catch (fault) {
    if (loading === prior) fail(fault);
  }
}

function fail(fault) {
  say("");
  warn(`${name(prior)} cannot be used (${fault.message}). Is the server still running? Choose the prior again.`);
}

// ---- the image

async function open(file) {
  warn("");
  try {
    take(await read(file, editor.ground ? "white" : "black"));
    say(`${file.name} is open${fits(prior, editor) ? "" : `: ${editor.width}×${editor.height} pixels`}.`);
  } catch (fault) {
    if (!(fault instanceof Refused)) throw fault;
    warn(fault.message);
  }
}

/** @param {{pixels: Float32Array, width: number, height: number}} picture */
function take({ pixels, width, height }) {
  editor.set(pixels, width, height);
  editor.ground = Number(isLight(pixels));
  clearResult(editor);
  zoom.fit(editor);
  // Some strokes across, however large the image is.
  at("brush").max = Math.max(8, Math.max(width, height) >> 4);
  editor.brush = at("brush").valueAsNumber;
}

/** The files of a prior's examples: pictures that are damaged as they are, then the one to be damaged here. */
function pictures({ scans = [], example }) {
  return [...scans, example];
}

/** Show the next damaged picture of the kind that the prior knows. */
async function showExample() {
  const chosen = prior;
  const names = pictures(prior);
  const file = names[shown++ % names.length];
  const picture = await read(examples.get(file), "black");
  if (chosen !== prior) return;
  take(picture);
  if (file === prior.example) inflict();
  untouched = true;
}

/** What the damage is called, of those that are found by what they are: inverted pixels, a scan, or grain. */
function chosenKind() {
  return at("damaged-by").hidden ? "p" : at("kind").value;
}

/** p is asked for where it means something. */
function showKind() {
  const told = !prior.task && !prior.page && chosenKind() === "p";
  at("flips").hidden = !told;
  at("p").disabled = !told;
}

/** The chosen p; null if it is to be found, or is no number. */
function chosenP() {
  return at("p").disabled || Number.isNaN(at("p").valueAsNumber) ? null : at("p").valueAsNumber;
}

/** The damage, as options of the server. */
function chosenDamage() {
  return { p: { p: chosenP() }, scan: { p: "scan" }, sigma: { sigma: "auto" } }[chosenKind()];
}

/** What the damage button does: the damage that the prior has learnt, or noise at the chosen p; null for grey pages. */
function damage() {
  if (prior.page) return null;
  return prior.task ? learnt(prior.task) : flips(chosenP() ?? USUAL);
}

function inflict() {
  const done = damage();
  if (!done) return;
  seed += 1;
  const random = generator(seed);
  editor.alter((pixels) => done.apply(pixels, editor.width, editor.height, random));
}

function showControls() {
  const possible = damage();
  at("damage").hidden = !possible;
  at("damage").textContent = possible?.label ?? "";
  at("damage").disabled = !prior.task && (chosenP() === 0 || !at("p").validity.valid);
  if (marks) at("show-marks").disabled = Boolean(prior.task || prior.page);
  at("undo").disabled = !editor.canUndo;
  at("clear-mask").disabled = !editor.mask.includes(1);
  at("download").disabled = view.empty;
}

function tellCursor() {
  const { x, y } = editor.cursor;
  const i = y * editor.width + x;
  const value = editor.masked(i) ? "masked" : editor.pixels[i] > 0.5 ? "white" : "black";
  at("cursor").textContent = `Row ${y + 1}, column ${x + 1}, ${value}`;
}

function chooseTool(name) {
  const choice = document.querySelector(`input[name="tool"][value="${name}"]`);
  if (choice.closest("[hidden]")) return;
  choice.checked = true;
  editor.tool = name;
}

// ---- restoring

/** What the solver is asked; null, with a message, where that makes no sense. */
function question() {
  warn("");
  if (!at("settings").reportValidity()) return null;
  const { width, height, pixels, mask } = editor;
  if (!prior.task && !mask.includes(0)) {
    warn("The mask covers every pixel; leave visible what is to be kept.");
    return null;
  }
  const invert = { "": null, true: true, false: false }[at("invert").value];
  const told = { damage: chosenDamage(), mask: prior.task ? new Uint8Array(mask.length) : mask.slice() };
  return { width, height, pixels: pixels.slice(), invert, ...told };
}

/** @param {{remove: string, specks: string} | null} [removed] marks to remove, and nothing else */
function restore(removed = null) {
  return work("Restoring …", removed, (asked) => {
    const watch = (share) => (at("progress").value = share);
    return solver.restore(prior, removed ? { ...asked, damage: {} } : asked, watch);
  }, show);
}

/** Show what would go. */
function findMarks() {
  const wanted = marks.asked;
  if (!wanted) {
    at("specks").reportValidity();
    warn(at("specks").validity.valid ? "Choose some kind of marks to look for." : "");
    return null;
  }
  return work("Looking for marks …", wanted, (asked) => solver.find(prior, asked), showMarks);
}

/**
 * Ask for something that may take long, and show the answer.
 * @param {string} doing what is said meanwhile
 * @param {{remove: string, specks: string} | null} wanted marks
 */
async function work(doing, wanted, ask, answer) {
  const asked = busy ? null : question();
  if (!asked) return;
  const own = prior;
  asked.marks = wanted;
  setBusy(true, served || !fits(own, asked));
  say(doing);
  try {
    const result = await ask(asked);
    if (own !== prior) return;
    if (result) answer(asked, result);
    else say("Cancelled.");
  } catch (fault) {
    if (own !== prior) return;
    if (fault instanceof Refused) refuse(asked, fault.message);
    else fail(fault);
  } finally {
    setBusy(false, false);
  }
}

/** @param {boolean} long whether it takes so long that progress is shown, and can be cancelled */
function setBusy(value, long) {
  busy = value;
  at("restore").setAttribute("aria-busy", String(value));
  at("running").hidden = !long;
  if (served) at("progress").removeAttribute("value");
  else at("progress").value = 0;
}

/** Neither a result nor marks are shown. */
function clearResult(size) {
  view.clear(size);
  marks?.clear();
  at("after-caption").textContent = "After";
}

function showMarks(asked, found) {
  clearResult(asked);
  marks.show(found);
  if (found.length) {
    view.preview(asked, found);
    at("after-caption").textContent = "What would go, in colour";
  }
  const words = found.map(({ words }) => words).join(", ");
  say(found.length ? `Found: ${words}. Nothing is removed yet.` : "No such marks were found.");
  zoom.update();
  showControls();
}

function show(asked, result) {
  clearResult(asked);
  view.show({ ...asked, result, name: prior.name });
  at("before-caption").textContent = asked.mask.includes(1) ? "Before; blue is filled" : "Before";
  say(result.said);
  warn(result.advice);
  zoom.update();
  showControls();
}

function refuse(asked, why) {
  clearResult(asked);
  say("");
  warn(why);
  zoom.update();
  showControls();
}

// ---- controls

function on(id, event, action) {
  at(id).addEventListener(event, action);
}

function connectControls() {
  at("restore").disabled = false;
  on("prior", "change", () => choose(at("prior").value));
  on("settings", "submit", (event) => {
    event.preventDefault();
    restore();
  });
  on("file", "change", () => {
    const [file] = at("file").files;
    if (file) open(file);
    at("file").value = ""; // so that the same file can be opened again
  });
  on("example", "click", () => showExample());
  on("damage", "click", () => {
    inflict();
    say(`Damaged, with seed ${seed}.`);
  });
  on("undo", "click", () => editor.undo());
  on("clear-image", "click", () => editor.clearImage());
  on("clear-mask", "click", () => editor.clearMask());
  on("cancel", "click", () => solver.cancel());
  on("tools", "change", (event) => (editor.tool = event.target.value));
  on("brush", "input", () => (editor.brush = at("brush").valueAsNumber));
  on("view", "change", (event) => (view.soft = event.target.value === "soft"));
  on("download", "click", () => view.download());
  on("p", "input", showControls);
  on("kind", "change", () => {
    showKind();
    showControls();
  });
  on("show-marks", "click", () => findMarks());
  on("remove-marks", "click", () => restore(marks.shown));
  // What is shown was found in another way, or in another image.
  on("marks", "change", forgetMarks);
  editor.addEventListener("cursor", () => {
    tellCursor();
    zoom.reveal(editor.cursor);
  });
  editor.addEventListener("change", () => {
    untouched = false;
    forgetMarks();
    showControls();
  });
}

/** Marks are shown no longer. */
function forgetMarks() {
  if (!marks?.shown) return;
  clearResult(editor);
  say("");
  showControls();
}

const TOOL_KEYS = { d: "draw", e: "erase", m: "mask", u: "unmask" };

function connectKeys() {
  on("image", "keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    if (event.key in TOOL_KEYS) chooseTool(TOOL_KEYS[event.key]);
    if (event.key === "Enter") restore();
    if (event.key === "+" || event.key === "-") zoom.by(event.key === "+" ? 1 : -1);
    if (event.key === "[" || event.key === "]") {
      at("brush").valueAsNumber += event.key === "]" ? 1 : -1;
      editor.brush = at("brush").valueAsNumber;
    }
  });

  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && !at("running").hidden) solver.cancel();
    if (!event.ctrlKey && !event.metaKey) return;
    if (event.key === "Enter") restore();
    if (event.key === "z" && !event.shiftKey && event.target !== at("p")) {
      event.preventDefault();
      editor.undo();
    }
  });
}

const scale = at("scale");
paint(scale, scale.width, 1, (i) => heat((0.5 * i) / (scale.width - 1)));
start().catch((fault) => {
  say("");
  warn(`The page could not start (${fault.message}). Is the server still running? Reload the page.`);
});
