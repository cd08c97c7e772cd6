// Restores a picture with a file of `restore export`, in Node. In a browser only the reading and writing of files differs.
//
//     npm install onnxruntime-web
//     node restore.mjs MODEL.onnx DAMAGED.pgm RESTORED.pgm [P]
//
// P is the probability that a pixel was inverted; a prior that has learnt its damage has no such input.
import { readFile, writeFile } from "node:fs/promises";
import * as ort from "onnxruntime-web";

const [model, damaged, restored, p = "0"] = process.argv.slice(2);
const bytes = await readFile(model);
// The prior's own settings are metadata, which this runtime does not show, but which are plain text in the file.
const settings = JSON.parse(bytes.toString("latin1").match(/\{"solver"[^}]*\}/)[0]);
// A binary PGM: "P5", width, height and largest grey, each followed by one white space, then a byte per pixel.
const picture = await readFile(damaged);
const [head, width, height, most] = picture.toString("latin1").match(/^P5\s+(\d+)\s+(\d+)\s+(\d+)\s/);
const grey = Float32Array.from(picture.subarray(head.length), (value) => value / most);

const inputs = {
  image: new ort.Tensor("float32", grey, [1, +height, +width]),
  p: new ort.Tensor("float32", [+p], [1, 1, 1]), // one for all pixels; or [1, height, width]
  mask: new ort.Tensor("bool", [false], [1, 1, 1]), // nothing to fill; or [1, height, width], true = fill
  max_iter: new ort.Tensor("int64", [BigInt(settings.max_iter)], []),
  tol: new ort.Tensor("float32", [settings.tol], []),
  damping: new ort.Tensor("float32", [settings.damping], []),
};
const session = await ort.InferenceSession.create(bytes);
const found = await session.run(Object.fromEntries(session.inputNames.map((name) => [name, inputs[name]])));
await writeFile(restored, Buffer.concat([Buffer.from(head), Uint8Array.from(found.restored.data, (x) => x * most)]));
console.log(`iterations ${found.iterations.data[0]}, converged ${Boolean(found.converged.data[0])}`);
