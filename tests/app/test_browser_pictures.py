"""How the local page reads, shows and damages pictures in Chromium."""

from __future__ import annotations

import numpy as np
import pytest
from pages import ASSETS, Visit, png, upload
from PIL import Image


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
