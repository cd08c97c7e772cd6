"""A page of A4 at 150 dpi on the local page in Chromium against Python, each on one thread.

    python benchmarks/peers/browser_page.py [--models conv-text,conv-scan] [--repeats 3]

Needs playwright, Chromium and `restore app --install`. The page is assets/page-noisy.png side by side with p = 0.1, or
for a prior of grey pages assets/page-scan.png. Seconds of a processor are those of the browser's process that shows the
page, where onnxruntime-web runs in a worker for each processor, and those of Python in `restore.denoise`.
"""

from __future__ import annotations

import base64
import functools
import http.server
import os
import shutil
import tempfile
import threading
import time
from pathlib import Path
from statistics import median
from typing import Any

os.environ["OMP_NUM_THREADS"] = "1"  # before onnxruntime is loaded

import numpy as np
from PIL import Image
from playwright.sync_api import Page, expect, sync_playwright

import restore
from benchmarks.measures.script import command_line, head, row
from restore import zoo
from restore.app import assembly, runtime

ASSETS = Path(__file__).parents[2] / "assets"

# Pixels of A4 at 150 dpi.
HEIGHT, WIDTH = 1754, 1240

# Restores in workers like those of the page; returns the seconds, the steps of progress, and the pixels as letters.
IN_THE_PAGE = """async ({ prior, levels, width, height, p }) => {
    const { Solver } = await import("./solver.js");
    globalThis.solver ??= new Solver();
    const pixels = Float32Array.from(atob(levels), (letter) => letter.charCodeAt() / 255);
    const request = { width, height, pixels, invert: null, damage: { p }, mask: new Uint8Array(pixels.length) };
    let steps = 0;
    const start = performance.now();
    const { restored } = await globalThis.solver.restore(prior, request, () => steps++);
    const seconds = (performance.now() - start) / 1000;
    const line = (_, y) => String.fromCharCode(...restored.subarray(y * width, (y + 1) * width));
    return { seconds, steps, white: Array.from({ length: height }, line).join("") };
}"""


def tiled(name: str) -> np.ndarray:
    """A picture side by side, as large as the page, in 256 levels."""
    with Image.open(ASSETS / name) as image:
        part = np.asarray(image.convert("L"))
    return np.tile(part, (-(-HEIGHT // part.shape[0]), -(-WIDTH // part.shape[1])))[:HEIGHT, :WIDTH]


def server_of(folder: str) -> http.server.ThreadingHTTPServer:
    """A web server of static files."""
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=folder)
    return http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)


def seconds_of_renderers() -> float:
    """Seconds of a processor that the browser's processes that show pages have taken, on Linux."""
    total = 0
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if b"--type=renderer" in (folder / "cmdline").read_bytes():
                total += sum(map(int, (folder / "stat").read_text().rpartition(")")[2].split()[11:13]))
        except OSError:
            continue  # it has ended
    return total / os.sysconf("SC_CLK_TCK")


def in_chromium(page: Page, prior: dict[str, Any], levels: np.ndarray) -> tuple[float, dict[str, Any]]:
    """Seconds of a processor for one restoration, and what the page returned."""
    asked = {"prior": prior, "levels": base64.b64encode(levels.tobytes()).decode(), "p": None if prior["page"] else 0.1}
    began = seconds_of_renderers()
    found = page.evaluate(IN_THE_PAGE, asked | {"width": WIDTH, "height": HEIGHT})
    return seconds_of_renderers() - began, found


def in_python(name: str, levels: np.ndarray, p: float | None) -> tuple[float, np.ndarray]:
    """Seconds of a processor for one restoration, and what became white."""
    began = time.process_time()
    restored = restore.denoise(levels, name, p)
    return time.process_time() - began, restored > 127


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("--models", default="conv-text,conv-scan", help="names of priors of any size [%(default)s]")
    parser.add_argument("--repeats", type=int, default=3, help="restorations on each side [%(default)s]")
    chosen = parser.parse_args()
    folders = [zoo.find(name) for name in chosen.models.split(",")]
    with tempfile.TemporaryDirectory() as site, server_of(site) as server, sync_playwright() as playwright:
        assembly.write(folders, runtime.installed(runtime.user_folder()), Path(site), overwrite=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page()
        page.goto(f"http://127.0.0.1:{server.server_address[1]}/")
        expect(page.locator("#status")).to_contain_text("Ready.", timeout=60_000)
        head(
            "prior",
            "Python, CPU-s",
            "Chromium, CPU-s",
            "ratio",
            "Python, s",
            "Chromium, s",
            "pixels that differ",
            "steps",
        )
        for folder in folders:
            prior = assembly.facts(folder)
            levels = tiled("page-scan.png" if prior["page"] else "page-noisy.png")
            times: list[tuple[float, ...]] = []
            for _ in range(chosen.repeats + 1):  # of which the first warms up
                began = time.perf_counter()
                python, expected = in_python(folder.name, levels, None if prior["page"] else 0.1)
                waited = time.perf_counter() - began
                chromium, found = in_chromium(page, prior, levels)
                times.append((python, chromium, chromium / python, waited, found["seconds"]))
            white = np.frombuffer(found["white"].encode(), np.uint8).reshape(HEIGHT, WIDTH) > 0
            middle = (f"{median(values):.2f}" for values in zip(*times[1:], strict=True))
            row(f"`{folder.name}`", *middle, f"{np.mean(white != expected):.4%}", found["steps"])
        browser.close()
        server.shutdown()


if __name__ == "__main__":
    main()
