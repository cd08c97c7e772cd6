"""One restoration on the local page in Chromium against the same graph in onnxruntime.

    python benchmarks/peers/browser.py [--model tap-mnist] [--hole] [--repeats 30]

Needs playwright, Chromium and `restore app --install`. The image is assets/digit-noisy.png with p = 0.1, or with --hole
assets/digit-torn.png and its mask. Both sides use one thread. The time of the browser is that of the
graph in its worker, as the page shows it.
"""

from __future__ import annotations

import functools
import http.server
import shutil
import tempfile
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

from benchmarks.measures.script import command_line, head, row
from restore import zoo
from restore.app import assembly, runtime

ASSETS = Path(__file__).parents[2] / "assets"
ROUNDS = 5


def picture(name: str) -> np.ndarray:
    """Grey values in [0, 1], (H, W)."""
    with Image.open(ASSETS / name) as image:
        return np.asarray(image.convert("L"), np.float32) / 255


def native(
    folder: Path, prior: dict[str, Any], pixels: np.ndarray, p: float, mask: np.ndarray
) -> tuple[Callable[[], float], int]:
    """A function that restores once outside the browser and returns its milliseconds; and the number of iterations."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(folder / zoo.GRAPH, options, providers=["CPUExecutionProvider"])
    inputs = {
        "image": pixels[None],
        "p": np.full((1, 1, 1), p, np.float32),
        "mask": mask[None],
        "max_iter": np.array(prior["inference"]["max_iter"], np.int64),
        "tol": np.array(prior["inference"]["tol"], np.float32),
        "damping": np.array(prior["inference"]["damping"], np.float32),
    }
    feeds = {entry.name: inputs[entry.name] for entry in session.get_inputs()}

    def restore() -> float:
        start = time.perf_counter()
        session.run(None, feeds)
        return 1000 * (time.perf_counter() - start)

    return restore, int(session.run(["iterations"], feeds)[0][0])


# Restores `count` times in a worker like that of the page, and returns the milliseconds of each.
IN_THE_PAGE = """async ({ prior, pixels, p, mask, count }) => {
    const { Solver } = await import("./solver.js");
    globalThis.solver ??= new Solver();
    const times = [];
    for (let i = 0; i < count; i++) {
        const { width, height } = prior;
        const request = { width, height, pixels: Float32Array.from(pixels), p, mask: Uint8Array.from(mask) };
        times.push((await globalThis.solver.solve(prior, request)).milliseconds);
    }
    return times;
}"""


def server_of(folder: str) -> http.server.ThreadingHTTPServer:
    """A web server of static files."""
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=folder)
    return http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("--model", default=zoo.preferred(), help="name or folder of a prior [%(default)s]")
    parser.add_argument("--hole", action="store_true", help="fill a hole instead of removing noise")
    parser.add_argument("--repeats", type=int, default=30, help="restorations on each side [%(default)s]")
    chosen = parser.parse_args()
    folder = zoo.find(chosen.model)
    prior = assembly.facts(folder)
    p, pixels = (0.0, picture("digit-torn.png")) if chosen.hole else (0.1, picture("digit-noisy.png"))
    mask = picture("digit-hole.png") > 0.5 if chosen.hole else np.zeros(pixels.shape, bool)
    outside, iterations = native(folder, prior, pixels, p, mask)
    times: dict[str, list[float]] = {"Chromium": [], "onnxruntime": []}
    with tempfile.TemporaryDirectory() as site, server_of(site) as server, sync_playwright() as playwright:
        assembly.write([folder], runtime.installed(runtime.user_folder()), Path(site))
        threading.Thread(target=server.serve_forever, daemon=True).start()
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"))
        page = browser.new_page()
        page.goto(f"http://127.0.0.1:{server.server_address[1]}/")
        expect(page.locator("#status")).to_contain_text("Ready.", timeout=60_000)
        asked = {"prior": prior, "pixels": pixels.ravel().tolist(), "p": p, "mask": mask.ravel().tolist()}
        asked["count"] = chosen.repeats // ROUNDS
        (first, *_) = page.evaluate(IN_THE_PAGE, asked)
        outside()
        for _ in range(ROUNDS):
            times["Chromium"] += page.evaluate(IN_THE_PAGE, asked)
            times["onnxruntime"] += [outside() for _ in range(chosen.repeats // ROUNDS)]
        version = browser.version
        browser.close()
        server.shutdown()
    peer = median(times["onnxruntime"])
    size = f"{prior['width']}x{prior['height']}"
    print(f"{prior['name']}, one image of {size}, {iterations} iterations, Chromium {version}, 1 thread")
    head("", "median, ms", "fastest", "slowest", "ratio of medians")
    for name, values in times.items():
        middle = median(values)
        row(name, *(f"{value:.1f}" for value in (middle, min(values), max(values))), f"{middle / peer:.2f}")
    print(f"the first restoration in Chromium: {first:.1f} ms")


if __name__ == "__main__":
    main()
