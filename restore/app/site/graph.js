/** The graphs of the priors in onnxruntime: opened once, and run on images and on windows. */

import * as ort from "./ort/ort.wasm.bundle.min.mjs";

// One thread: several need a page that is isolated from all others, and an image of 28x28 has no work to share out.
ort.env.wasm.numThreads = 1;
// Warnings are for its developers.
ort.env.logLevel = "error";
ort.env.wasm.wasmPaths = { wasm: new URL("ort/ort-wasm-simd-threaded.wasm", import.meta.url).href };

const GRAPH = "solver.onnx";
// The graph looks for its tensors under this name.
const WEIGHTS = "weights.safetensors";

// What is asked of a graph: copying more takes time.
const OUTPUTS = ["restored", "means", "variances", "iterations", "residual", "converged"];

/**
 * @typedef {Object} Opened
 * @property {import("./solver.js").Prior} prior
 * @property {ort.InferenceSession} session
 *
 * @typedef {Object} Observed images of the prior's size, one after the other
 * @property {Float32Array} image
 * @property {Float32Array} [p] of every pixel, or one for all; a conditional prior is told neither p nor a mask
 * @property {Uint8Array} [mask] as p
 */

/** @type {Map<string, Promise<Opened>>} by the prior's name; they stay, so that they work offline */
const graphs = new Map();

/**
 * @param {import("./solver.js").Prior} prior
 * @returns {Promise<Opened>}
 */
export function opened(prior) {
  const { name } = prior;
  if (!graphs.has(name)) {
    const opening = open(prior);
    graphs.set(name, opening);
    // The next attempt begins anew.
    opening.catch(() => graphs.delete(name));
  }
  return graphs.get(name);
}

/** @param {import("./solver.js").Prior} prior */
async function open(prior) {
  const [graph, data] = await Promise.all([bytes(prior.name, GRAPH), bytes(prior.name, WEIGHTS)]);
  const options = { executionProviders: ["wasm"], logSeverityLevel: 3, externalData: [{ path: WEIGHTS, data }] };
  const session = await ort.InferenceSession.create(graph, options);
  const found = { prior, session };
  // Browsers optimise WebAssembly once it has run: the first image of a user is then as fast as the others.
  const image = new Float32Array(prior.width * prior.height);
  await runOnce(found, { image, p: Float32Array.of(0.1), mask: Uint8Array.of(0) }, prior.inference, prior);
  return found;
}

/** @param {string} name @param {string} file */
async function bytes(name, file) {
  const answer = await fetch(new URL(`models/${encodeURIComponent(name)}/${file}`, import.meta.url));
  if (!answer.ok) throw new Error(`${name}/${file}: ${answer.status} ${answer.statusText}`);
  return new Uint8Array(await answer.arrayBuffer());
}

/**
 * Restore images.
 * @param {Opened} graph
 * @param {Observed} observed
 * @param {{width: number, height: number}} [size] of each; another than the prior's for a convolutional one
 * @returns the outputs by name, as arrays
 */
export async function run(graph, observed, size = graph.prior) {
  const { prior } = graph;
  const found = await runOnce(graph, observed, prior.inference, size);
  // Another try with half the step, as `restore denoise` has.
  const left = prior.triesAgain ? [...found.converged.keys()].filter((row) => !found.converged[row]) : [];
  if (!left.length) return found;
  const { max_iter, tol, damping } = prior.inference;
  const some = Object.fromEntries(Object.entries(observed).map(([name, all]) => [name, rows(size, all, left)]));
  const again = await runOnce(graph, some, { max_iter, tol: tol / 2, damping: (1 + damping) / 2 }, size);
  left.forEach((row, k) => {
    again.iterations[k] += found.iterations[row];
    for (const name of OUTPUTS) {
      const each = again[name].length / left.length;
      found[name].set(again[name].subarray(k * each, (k + 1) * each), row * each);
    }
  });
  return found;
}

/** Some of the images; what is one number for all stays so. */
function rows({ width, height }, all, wanted) {
  if (all.length === 1) return all;
  const size = width * height;
  const some = new all.constructor(wanted.length * size);
  wanted.forEach((row, k) => some.set(all.subarray(row * size, (row + 1) * size), k * size));
  return some;
}

async function runOnce({ prior, session }, { image, p, mask }, { max_iter, tol, damping }, { width, height }) {
  const shape = (all) => (all.length === 1 ? [1, 1, 1] : [all.length / (width * height), height, width]);
  const told = () => ({ p: new ort.Tensor("float32", p, shape(p)), mask: new ort.Tensor("bool", mask, shape(mask)) });
  const inputs = {
    image: new ort.Tensor("float32", image, [image.length / (width * height), height, width]),
    ...(session.inputNames.includes("p") ? told() : {}),
    max_iter: new ort.Tensor("int64", BigInt64Array.of(BigInt(max_iter)), []),
    tol: new ort.Tensor("float32", Float32Array.of(tol), []),
    damping: new ort.Tensor("float32", Float32Array.of(damping), []),
  };
  const outputs = await session.run(inputs, OUTPUTS);
  const found = Object.fromEntries(OUTPUTS.map((name) => [name, outputs[name].data]));
  return { ...found, iterations: Int32Array.from(found.iterations, Number) };
}
