/**
 * Runs the priors, away from the thread of the page, so that the page answers while an image is restored.
 *
 * Messages in: {id, prior, request}, where a missing request only loads the prior.
 * Messages out: {id, result} or {id, fault}.
 */
import * as ort from "./ort/ort.wasm.bundle.min.mjs";

// One thread: several need a page that is isolated from all others, and an image of 28x28 has no work to share out.
ort.env.wasm.numThreads = 1;
ort.env.wasm.wasmPaths = { wasm: new URL("ort/ort-wasm-simd-threaded.wasm", import.meta.url).href };

const GRAPH = "solver.onnx";
// The graph looks for its tensors under this name.
const WEIGHTS = "weights.safetensors";

/** @type {Map<string, Promise<ort.InferenceSession>>} sessions by the prior's name; they stay, so that they work offline */
const sessions = new Map();

/** @param {import("./solver.js").Prior} prior */
function session(prior) {
  const { name } = prior;
  if (!sessions.has(name)) {
    const opened = open(prior);
    sessions.set(name, opened);
    // The next attempt begins anew.
    opened.catch(() => sessions.delete(name));
  }
  return sessions.get(name);
}

/** @param {import("./solver.js").Prior} prior */
async function open(prior) {
  const [graph, data] = await Promise.all([bytes(prior.name, GRAPH), bytes(prior.name, WEIGHTS)]);
  const options = { executionProviders: ["wasm"], externalData: [{ path: WEIGHTS, data }] };
  const solver = await ort.InferenceSession.create(graph, options);
  // Browsers optimise WebAssembly once it has run: the first image of a user is then as fast as the others.
  const pixels = prior.width * prior.height;
  const empty = { pixels: new Float32Array(pixels), p: 0.1, mask: new Uint8Array(pixels) };
  await solver.run(feeds(prior, empty, prior.inference));
  return solver;
}

/** @param {string} name @param {string} file */
async function bytes(name, file) {
  const answer = await fetch(new URL(`models/${encodeURIComponent(name)}/${file}`, import.meta.url));
  if (!answer.ok) throw new Error(`${name}/${file}: ${answer.status} ${answer.statusText}`);
  return new Uint8Array(await answer.arrayBuffer());
}

/** The inputs of the graph; a conditional prior is told neither p nor a mask. */
function feeds(prior, { pixels, p, mask }, { max_iter, tol, damping }) {
  const shape = [1, prior.height, prior.width];
  const told = {
    p: () => new ort.Tensor("float32", Float32Array.of(p), [1, 1, 1]),
    mask: () => new ort.Tensor("bool", mask, shape),
  };
  return {
    image: new ort.Tensor("float32", pixels, shape),
    ...(prior.conditional ? {} : { p: told.p(), mask: told.mask() }),
    max_iter: new ort.Tensor("int64", BigInt64Array.of(BigInt(max_iter)), []),
    tol: new ort.Tensor("float32", Float32Array.of(tol), []),
    damping: new ort.Tensor("float32", Float32Array.of(damping), []),
  };
}

/** @returns {Promise<import("./solver.js").Result>} */
async function restore(prior, request) {
  const solver = await session(prior);
  const start = performance.now();
  let outputs = await solver.run(feeds(prior, request, prior.inference));
  let iterations = Number(outputs.iterations.data[0]);
  if (!prior.conditional && !outputs.converged.data[0]) {
    // Another try with half the step, as `restore denoise` has; a conditional prior stops where it did in training.
    const { max_iter, tol, damping } = prior.inference;
    outputs = await solver.run(feeds(prior, request, { max_iter, tol: tol / 2, damping: (1 + damping) / 2 }));
    iterations += Number(outputs.iterations.data[0]);
  }
  const milliseconds = performance.now() - start;
  return {
    restored: outputs.restored.data,
    means: outputs.means.data,
    variances: outputs.variances.data,
    iterations,
    residual: outputs.residual.data[0],
    converged: Boolean(outputs.converged.data[0]),
    inversion: outputs.inversion.data[0],
    milliseconds,
  };
}

addEventListener("message", async ({ data: { id, prior, request } }) => {
  try {
    const result = request ? await restore(prior, request) : await session(prior).then(() => null);
    postMessage({ id, result });
  } catch (fault) {
    postMessage({ id, fault: fault instanceof Error ? fault.message : String(fault) });
  }
});
