"""One restoration on the local page in Chromium against the same graph in onnxruntime.

    python benchmarks/browser.py [--model tap-mnist] [--repeats 30]

Needs playwright, Chromium and `restore app --install`. The image is assets/digit-noisy.png with p = 0.1; both sides use
one thread, and the page's time is that of the graph in its worker, as the page itself shows it.
"""

from __future__ import annotations

import argparse
import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import onnxruntime
from PIL import Image
from playwright.sync_api import expect, sync_playwright

from restore import zoo
from restore.app import assembly, runtime
from restore.app.server import Server

ASSETS = Path(__file__).parent.parent / "assets"
P = 0.1
ROUNDS = 5


def native(folder: Path, prior: dict[str, Any], pixels: np.ndarray) -> Callable[[], float]:
    """A function that restores once outside the browser and returns the milliseconds it took."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(folder / assembly.GRAPH, options, providers=["CPUExecutionProvider"])
    inputs = {
        "image": pixels[None],
        "p": np.full((1, 1, 1), P, np.float32),
        "mask": np.zeros((1, *pixels.shape), bool),
        "max_iter": np.array(prior["inference"]["max_iter"], np.int64),
        "tol": np.array(prior["inference"]["tol"], np.float32),
        "damping": np.array(prior["inference"]["damping"], np.float32),
    }
    feeds = {entry.name: inputs[entry.name] for entry in session.get_inputs()}

    def restore() -> float:
        start = time.perf_counter()
        session.run(None, feeds)
        return 1000 * (time.perf_counter() - start)

    return restore


# Restores `count` times in a worker like the page's own and gives the milliseconds of each.
IN_THE_PAGE = """async ({ prior, pixels, p, count }) => {
    const { Solver } = await import("/solver.js");
    globalThis.solver ??= new Solver();
    const times = [];
    for (let i = 0; i < count; i++) {
        const request = { pixels: Float32Array.from(pixels), p, mask: new Uint8Array(pixels.length) };
        times.push((await globalThis.solver.restore(prior, request)).milliseconds);
    }
    return times;
}"""


def main() -> None:
    parser = argparse.ArgumentParser(description="One restoration in the browser against onnxruntime.")
    parser.add_argument("--model", default=zoo.PREFERRED, help="name or folder of a prior [%(default)s]")
    parser.add_argument("--repeats", type=int, default=30, help="restorations on each side [%(default)s]")
    chosen = parser.parse_args()
    folder = zoo.find(chosen.model)
    site = assembly.collect(runtime.installed(runtime.user_folder()), [folder])
    prior = assembly.facts(folder)
    with Image.open(ASSETS / "digit-noisy.png") as image:
        pixels = np.asarray(image.convert("L"), np.float32) / 255
    outside = native(folder, prior, pixels)
    times: dict[str, list[float]] = {"Chromium": [], "onnxruntime": []}
    with Server(site, 0) as server, sync_playwright() as playwright:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"))
        page = browser.new_page()
        page.goto(server.url)
        expect(page.locator("#status")).to_contain_text("is ready", timeout=30_000)
        asked = {"prior": prior, "pixels": pixels.ravel().tolist(), "p": P, "count": chosen.repeats // ROUNDS}
        (first, *_) = page.evaluate(IN_THE_PAGE, asked)
        outside()
        for _ in range(ROUNDS):
            times["Chromium"] += page.evaluate(IN_THE_PAGE, asked)
            times["onnxruntime"] += [outside() for _ in range(chosen.repeats // ROUNDS)]
        version = browser.version
        browser.close()
        server.shutdown()
    peer = median(times["onnxruntime"])
    print(f"{prior['name']}, one image of {prior['width']}x{prior['height']}, Chromium {version}, 1 thread")
    print(f"{'':<12} {'median':>9} {'fastest':>9} {'slowest':>9}   ratio of medians")
    for name, values in times.items():
        middle = median(values)
        print(f"{name:<12} {middle:6.1f} ms {min(values):6.1f} ms {max(values):6.1f} ms   {middle / peer:5.2f}")
    print(f"the first restoration in Chromium: {first:.1f} ms")


if __name__ == "__main__":
    main()
