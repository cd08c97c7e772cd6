"""The local page in Chromium. Without a browser, what imports this is skipped."""

from __future__ import annotations

import io
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from processes import HANG

from restore import zoo
from restore.app import runtime
from restore.errors import ModelError

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")


CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")

QUIET = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)

ASSETS = Path(__file__).parents[2] / "assets"

# The page has no tools for photographs. A prior without a graph is no reason to skip: the repository has them all.
PUBLISHED = [
    folder
    for folder in sorted(zoo.published_folder().iterdir())
    if (folder / zoo.GRAPH).exists() and not zoo.describe(folder).grey and folder.name != zoo.PARTS_PRIOR
]

if CHROMIUM is None:
    pytest.skip("chromium is not installed", allow_module_level=True)

try:
    FILES = runtime.installed(runtime.user_folder())
except ModelError as missing:
    pytest.skip(str(missing), allow_module_level=True)

expect = sync_api.expect

# In milliseconds.
PATIENCE = 1000 * HANG

expect.set_options(timeout=PATIENCE)


class Visit:
    """A page that has loaded its prior, every request it has made, and every complaint of the browser.

    With `broken`, the file of that name is something else, and the prior may not have been loaded.
    """

    def __init__(self, browser: Any, url: str, broken: str = "", **context: Any) -> None:
        self.context = browser.new_context(**context)
        self.requests: list[str] = []
        self.complaints: list[str] = []
        self.context.on("request", lambda request: self.requests.append(request.url))
        self.context.on("console", lambda said: self.complaints.append(said.text) if said.type == "error" else None)
        self.page = self.context.new_page()
        self.page.set_default_timeout(PATIENCE)
        self.page.on("pageerror", lambda fault: self.complaints.append(str(fault)))
        if broken:
            self.context.route(f"**/{broken}", lambda route: route.fulfill(body="no such thing"))
        self.page.goto(url)
        if not broken:
            self.wait_for("Ready.")

    def at(self, name: str) -> Any:
        return self.page.locator(f"#{name}")

    def wait_for(self, text: str | re.Pattern[str]) -> None:
        expect(self.at("status")).to_contain_text(text)

    def restore(self) -> str:
        """Press the button; the status once there is a result."""
        self.at("restore").click()
        self.wait_for(re.compile(r"of pixels changed\."))
        return str(self.at("status").inner_text())

    def refused(self) -> str:
        expect(self.at("message")).not_to_be_empty()
        return str(self.at("message").inner_text())

    def tick(self, name: str) -> None:
        self.page.get_by_role("radio", name=name, exact=True).check()

    def choose(self, name: str) -> None:
        self.at("prior").select_option(name)
        expect(self.at("status")).to_have_attribute("data-prior", name)
        self.wait_for("Ready.")

    def shown(self, name: str, width: int = 28) -> np.ndarray:
        """What a canvas shows of an image that is so many pixels wide, near the left edge of each pixel, (H, W, 3)."""
        read = self.page.evaluate(
            """([name, count]) => {
                const canvas = document.getElementById(name);
                const side = canvas.width / count;
                const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
                const found = [];
                for (let y = Math.floor(side / 2); y < canvas.height; y += side) {
                    for (let x = Math.floor(side / 4); x < canvas.width; x += side) {
                        found.push(...data.slice(4 * (y * canvas.width + x), 4 * (y * canvas.width + x) + 3));
                    }
                }
                return found;
            }""",
            [name, width],
        )
        return np.array(read, np.uint8).reshape(-1, width, 3)

    def image(self) -> np.ndarray:
        """The image in the editor, (28, 28) levels."""
        return self.shown("image")[..., 0]

    def solve(self, prior: dict[str, Any], pixels: np.ndarray, p: float | str, mask: np.ndarray) -> dict[str, Any]:
        """What the page's own modules return for an image; NaN goes as a text."""
        asked = {"prior": prior, "pixels": pixels.ravel().tolist(), "p": p, "mask": mask.ravel().tolist()}
        asked["height"], asked["width"] = pixels.shape
        return self.page.evaluate(
            """async ({ prior, pixels, p, mask, ...size }) => {
                const { Solver } = await import("./solver.js");
                globalThis.solver ??= new Solver();
                pixels = Float32Array.from(pixels, Number);
                const request = { ...size, pixels, p: Number(p), mask: Uint8Array.from(mask) };
                const result = await globalThis.solver.solve(prior, request);
                for (const name of ["restored", "soft", "means", "variances"]) result[name] = [...result[name]];
                return result;
            }""",
            asked,
        )


def noisy(seed: int = 0) -> np.ndarray:
    with Image.open(ASSETS / "digit.png") as image:
        ink = np.asarray(image.convert("L")) > 127
    return (ink ^ (np.random.default_rng(seed).random(ink.shape) < 0.1)).astype(float)


def png(image: Image.Image, kind: str = "PNG", **options: Any) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()


def upload(visit: Visit, name: str, content: bytes) -> None:
    visit.at("file").set_input_files({"name": name, "mimeType": "image/png", "buffer": content})


NOTHING = np.zeros((28, 28), bool)
