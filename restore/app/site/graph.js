/** The graphs of the priors in onnxruntime: opened once, and run on images and on parts of them. */

import * as ort from "./ort/ort.wasm.bundle.min.mjs";

// One thread: several need a page that is isolated from all others. Parts of an image are shared among workers instead.
ort.env.wasm.numThreads = 1;
// Warnings are for its developers.
ort.env.logLevel = "error";
ort.env.wasm.wasmPaths = { wasm: new URL("ort/ort-wasm-simd-threaded.wasm", import.meta.url).href };

const GRAPH = "solver.onnx";
// The graph looks for its tensors under this name.
const WEIGHTS = "weights.safetensors";

// What is asked of a graph: copying more takes time.
const OUTPUTS = ["means", "variances", "iterations", "residual", "converged"];

/**
 * @typedef {Object} Opened
 * @property {import("./solver.js").Prior} prior
 * @property {ort.InferenceSession} session
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
  const { width, height, inference } = prior;
  const [pixels, mask] = [new Float32Array(width * height), new Uint8Array(width * height)];
  await runOnce(session, { width, height, pixels, mask, p: 0.1 }, inference);
  return found;
}

/** @param {string} name @param {string} file */
async function bytes(name, file) {
  const answer = await fetch(new URL(`models/${encodeURIComponent(name)}/${file}`, import.meta.url));
  if (!answer.ok) throw new Error(`${name}/${file}: ${answer.status} ${answer.statusText}`);
  return new Uint8Array(await answer.arrayBuffer());
}

/**
 * What is known of an image: of the prior's size, or of any for a convolutional one.
 * @param {Opened} graph
 * @param {import("./parts.js").Picture} picture
 * @returns {Promise<import("./parts.js").Part>}
 */
export async function run({ prior, session }, picture) {
  const { max_iter, tol, damping } = prior.inference;
  let found = await runOnce(session, picture, { max_iter, tol, damping });
  if (!found.converged && prior.triesAgain) {
    // Another try with half the step, as `restore denoise` has.
    const before = found.iterations;
    found = await runOnce(session, picture, { max_iter, tol: tol / 2, damping: (1 + damping) / 2 });
    found.iterations += before;
  }
  const { converged, ...known } = found;
  return { ...known, parts: 1, unsolved: Number(!converged), blind: picture.mask.every(Boolean) };
}

async function runOnce(session, { width, height, pixels, mask, p }, { max_iter, tol, damping }) {
  const known = {
    image: () => new ort.Tensor("float32", pixels, [1, height, width]),
    mask: () => new ort.Tensor("bool", mask, [1, height, width]),
    p: () => new ort.Tensor("float32", Float32Array.of(p), [1, 1, 1]),
    max_iter: () => new ort.Tensor("int64", BigInt64Array.of(BigInt(max_iter)), []),
    tol: () => new ort.Tensor("float32", Float32Array.of(tol), []),
    damping: () => new ort.Tensor("float32", Float32Array.of(damping), []),
  };
  const outputs = await session.run(Object.fromEntries(session.inputNames.map((name) => [name, known[name]()])), OUTPUTS);
  const single = (name) => Number(outputs[name].data[0]);
  return {
    means: outputs.means.data,
    variances: outputs.variances.data,
    iterations: single("iterations"),
    residual: single("residual"),
    converged: Boolean(single("converged")),
  };
}
