"""Pictures of the local page in Chromium: how they come in, and what it refuses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from pages import ASSETS, NOTHING, Visit, expect, noisy, png, upload
from PIL import Image

from restore import zoo
from restore.app import assembly


@pytest.mark.parametrize("way", ["drop", "paste"])
def test_a_picture_is_dropped_or_pasted(guest: Visit, way: str) -> None:
    give(guest, way, (ASSETS / "digit-large.png").read_bytes())
    guest.wait_for("given.png is open: 56×56 pixels.")
    with Image.open(ASSETS / "digit-large.png") as image:
        np.testing.assert_array_equal(guest.shown("image", 56)[..., 0], np.asarray(image.convert("L")))


def test_a_drop_that_is_no_file_is_refused(guest: Visit) -> None:
    give(guest, "drop", None)
    assert "is no file" in guest.refused()


def give(visit: Visit, way: str, content: bytes | None) -> None:
    """Drop on the page, or paste into it, a file (None: a text)."""
    visit.page.evaluate(
        """([way, content]) => {
            const data = new DataTransfer();
            if (content) data.items.add(new File([Uint8Array.from(content)], "given.png"));
            else data.setData("text/plain", "hello");
            const options = { bubbles: true, cancelable: true };
            document.body.dispatchEvent(way === "drop"
                ? new DragEvent("drop", { ...options, dataTransfer: data })
                : new ClipboardEvent("paste", { ...options, clipboardData: data }));
        }""",
        [way, None if content is None else list(content)],
    )


def test_colour_becomes_grey_and_transparency_the_ground(guest: Visit) -> None:
    picture = Image.new("RGBA", (28, 28), (255, 0, 0, 255))
    picture.paste((255, 255, 255, 0), (0, 0, 14, 28))
    upload(guest, "red.png", png(picture))
    guest.wait_for("red.png is open")
    np.testing.assert_array_equal(guest.image()[0, [0, 27]], [0, 76])


def test_the_same_seed_damages_alike(reader: Visit) -> None:
    result = reader.page.evaluate(
        """async () => {
            const { flips, patch, generator } = await import("./damage.js");
            const zero = new Float32Array(28 * 28);
            return [flips(0.3), flips(0.3), patch(12, 1), flips(0)].map((damage, i) =>
                [...damage.apply(zero, 28, 28, generator(i === 1 ? 1 : 5))]);
        }"""
    )
    flipped, others, patched, none = (np.array(pixels).reshape(28, 28) for pixels in result)
    assert 0.2 < flipped.mean() < 0.4 and (flipped != others).any() and not none.any()
    rows, columns = np.nonzero(patched)
    assert len(rows) == 144 and np.ptp(rows) == np.ptp(columns) == 11


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("photo.png", lambda: png(Image.new("1", (10_000, 6_000)))),
        ("strip.png", lambda: png(Image.new("L", (3, 2001)))),
        ("notes.png", lambda: b"Dear diary"),
        ("drawing.svg", lambda: b"<svg xmlns='http://www.w3.org/2000/svg'/>"),
        ("torn.png", lambda: png(Image.new("L", (28, 28)))[:40]),
    ],
)
def test_files_that_are_no_use_are_refused(guest: Visit, name: str, content: Any) -> None:
    before = guest.image()
    upload(guest, name, content())
    assert guest.refused().startswith(name)
    np.testing.assert_array_equal(guest.image(), before)
    guest.restore()
    expect(guest.at("message")).to_be_empty()


@pytest.mark.thorough
@pytest.mark.parametrize("text", ["", "0.51", "-0.1", "1e9"])
def test_a_p_that_is_no_probability_is_refused(guest: Visit, text: str) -> None:
    before = guest.shown("after")
    guest.at("p").fill(text)
    guest.at("restore").click()
    expect(guest.page.locator("#p:invalid")).to_be_focused()
    expect(guest.at("status")).to_have_text("digit.png is open.")
    np.testing.assert_array_equal(guest.shown("after"), before)
    guest.at("p").fill("0.2")
    guest.restore()


@pytest.mark.parametrize(("value", "p"), [("NaN", 0.1), ("Infinity", 0.1), (0.0, "NaN"), (0.0, -1.0)])
def test_nan_in_never_comes_out(reader: Visit, value: float | str, p: float | str) -> None:
    facts = assembly.facts(zoo.find(zoo.preferred()))
    pixels = noisy().astype(object)
    pixels[3, 4] = value
    result = reader.solve(facts, pixels, p, NOTHING)
    assert result["converged"] is False and result["iterations"] == 0
    for name in ("restored", "means", "variances"):
        assert np.isfinite(np.array(result[name], float)).all()


@pytest.mark.thorough
@pytest.mark.parametrize(
    "broken", ["models.json", f"{zoo.preferred()}/solver.onnx", f"{zoo.preferred()}/weights.safetensors", "ort/*.wasm"]
)
def test_a_site_with_damaged_files_says_so(browser: Any, url: str, broken: str) -> None:
    visit = Visit(browser, url, broken)
    visit.refused()
    visit.at("image").click()
    if broken == "models.json":
        expect(visit.at("restore")).to_be_disabled()
    else:
        visit.at("restore").click()
    assert not visit.shown("after", visit.at("after").evaluate("each => each.width"))[..., 0].any()
    visit.context.close()
