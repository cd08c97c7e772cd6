"""A page of A4 at 150 dpi on the local page in Chromium against Python, each on one thread.

    python benchmarks/peers/browser_page.py [--models conv-text,conv-scan] [--repeats 3]

Needs playwright, Chromium and `restore app --install`. The page is assets/page-noisy.png side by side with p = 0.1, or for a
prior of grey pages assets/page-scan.png. Times are those of a processor: of the browser's process that shows the page, where
onnxruntime-web runs, and of Python in `restore.denoise` with the prior and the noise named.
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = "1"  # before onnxruntime is loaded

import shutil
import tempfile
import threading
import time
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from playwright.sync_api import Page, expect, sync_playwright

import restore
from benchmarks.measures.script import command_line, head, row
from benchmarks.peers.browser import picture, server_of
from restore import zoo
from restore.app import assembly, runtime

# Pixels of A4 at 150 dpi.
HEIGHT, WIDTH = 1754, 1240

# Restores in a worker like that of the page, and returns what is known of every pixel as one bit each, and the steps of progress.
IN_THE_PAGE = """async ({ prior, levels, width, height, p }) => {
    const { Solver } = await import("./solver.js");
    globalThis.solver ??= new Solver();
    const pixels = Float32Array.from(atob(levels), (letter) => letter.charCodeAt() / 255);
    const request = { width, height, pixels, invert: null, damage: { p }, mask: new Uint8Array(pixels.length) };
    let steps = 0;
    const start = performance.now();
    const { restored } = await globalThis.solver.restore(prior, request, () => steps++);
    const seconds = (performance.now() - start) / 1000;
    return { seconds, steps, white: restored.reduce((text, value) => text + value, "") };
}"""


def tiled(name: str) -> np.ndarray:
    """A picture side by side, as large as the page, in 256 levels."""
    part = picture(name)
    page = np.tile(part, (-(-HEIGHT // part.shape[0]), -(-WIDTH // part.shape[1])))[:HEIGHT, :WIDTH]
    return np.rint(255 * page).astype(np.uint8)


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


def in_chromium(page: Page, prior: dict[str, Any], levels: np.ndarray) -> tuple[float, np.ndarray, int]:
    """Seconds of a processor for one restoration, what became white, and the steps of its progress."""
    import base64

    asked = {"prior": prior, "levels": base64.b64encode(levels.tobytes()).decode(), "p": None if prior["page"] else 0.1}
    began = seconds_of_renderers()
    found = page.evaluate(IN_THE_PAGE, asked | {"width": WIDTH, "height": HEIGHT})
    white = np.frombuffer(found["white"].encode(), np.uint8).reshape(HEIGHT, WIDTH) == ord("1")
    return seconds_of_renderers() - began, white, found["steps"]


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
        head("prior", "Python, s", "Chromium, s", "ratio", "pixels that differ", "steps of progress")
        for folder in folders:
            prior = assembly.facts(folder)
            levels = tiled("page-scan.png" if prior["page"] else "page-noisy.png")
            times: dict[str, list[float]] = {"python": [], "chromium": []}
            for _ in range(chosen.repeats + 1):  # of which the first warms up
                seconds, expected = in_python(folder.name, levels, None if prior["page"] else 0.1)
                times["python"].append(seconds)
                seconds, white, steps = in_chromium(page, prior, levels)
                times["chromium"].append(seconds)
            python, chromium = (median(values[1:]) for values in times.values())
            differ = f"{np.mean(white != expected):.4%}"
            row(f"`{folder.name}`", f"{python:.1f}", f"{chromium:.1f}", f"{chromium / python:.2f}", differ, steps)
        browser.close()
        server.shutdown()


if __name__ == "__main__":
    main()
