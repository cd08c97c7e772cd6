"""Makes the README's picture of the local page: `python assets/app_screenshot.py`.

Needs playwright and Chromium. The page opens with a noisy digit; a part of it is masked here,
and restored as a user would.
"""

from __future__ import annotations

import argparse
import io
import shutil
import threading
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page, expect, sync_playwright

from restore import zoo
from restore.app import assembly
from restore.app.server import Server
from restore.app.workers import Workers
from restore.inference.options import Options

HERE = Path(__file__).parent
SIZE = {"width": 1280, "height": 1100}
# Where the brush goes, in fractions of the image.
STROKE = ((0.62, 0.55), (0.7, 0.75))
COLOURS = 256


def restore(page: Page) -> None:
    """Mask a part of the image and press the button."""
    page.get_by_role("radio", name="Mask", exact=True).check()
    page.locator("#brush").fill("7")
    box = page.locator("#image").bounding_box()
    assert box is not None
    for number, (x, y) in enumerate(STROKE):
        page.mouse.move(box["x"] + x * box["width"], box["y"] + y * box["height"], steps=5)
        if number == 0:
            page.mouse.down()
    page.mouse.up()
    page.locator("#p").fill("0.1")
    page.locator("#restore").click()
    expect(page.locator("#restore")).to_have_attribute("aria-busy", "false")
    page.locator("body").click(position={"x": 1, "y": 1})


def main() -> None:
    parser = argparse.ArgumentParser(description="Make the README's picture of the local page.")
    parser.add_argument("--output", type=Path, default=HERE / "app.png", help="[%(default)s]")
    options = parser.parse_args()
    site = assembly.page(assembly.usable(zoo.folders()).values(), served=True)
    server = Server(site, Workers(Options(), 1, 1, 120), "127.0.0.1", 0)
    serving = threading.Thread(target=server.run)
    serving.start()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"))
        page = browser.new_page(viewport=SIZE, color_scheme="light")
        page.goto(server.url)
        expect(page.locator("#status")).to_contain_text("Ready.", timeout=30_000)
        restore(page)
        picture = Image.open(io.BytesIO(page.screenshot()))
        browser.close()
    server.should_exit = True
    serving.join()
    picture.convert("RGB").quantize(COLOURS).save(options.output, optimize=True)
    print(options.output)


if __name__ == "__main__":
    main()
