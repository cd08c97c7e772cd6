"""What the local page refuses in Chromium: files, numbers and sites that are of no use."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from pages import NOTHING, Visit, expect, noisy, png, upload
from PIL import Image

from restore import zoo
from restore.app import assembly


def strip() -> bytes:
    return png(Image.new("L", (3, 2001)))


def photo() -> bytes:
    return png(Image.new("1", (10_000, 6_000)))


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("photo.png", photo, r"photo\.png has 10000×6000 pixels; this page takes up to 2,000×2,000\. Cut a part"),
        ("notes.png", lambda: b"Dear diary", r"notes\.png is no picture"),
        ("empty.png", lambda: b"", "is no picture"),
        ("drawing.svg", lambda: b"<svg xmlns='http://www.w3.org/2000/svg'/>", "is no picture"),
        ("strip.png", strip, r"strip\.png has 3×2001 pixels"),
        ("torn.png", lambda: png(Image.new("L", (28, 28)))[:40], "is no picture"),
        ("flat.bmp", lambda: b"BM" + bytes(50), "is no picture"),
    ],
    ids=lambda value: value if isinstance(value, str) and "." in value and "\\" not in value else "",
)
def test_files_that_are_no_use_are_refused(guest: Visit, name: str, content: Any, message: str) -> None:
    before = guest.image()
    upload(guest, name, content())
    assert re.search(message, guest.refused())
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


def test_what_is_not_finite_is_never_shown(reader: Visit) -> None:
    said = reader.page.evaluate(
        """async () => {
            const { usable } = await import("./outcome.js");
            const result = (changed) =>
                ({ restored: [0, 1], means: [0.1, 0.9], variances: [0, 0], residual: 0.1, ...changed });
            return [{}, { means: [NaN, 0] }, { variances: [0, Infinity] }, { residual: Infinity }]
                .map((changed) => usable(result(changed)));
        }"""
    )
    assert said == [True, False, False, False]


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("broken", "message"),
    [
        ("models.json", "The page could not start"),
        (f"{zoo.preferred()}/solver.onnx", f"{zoo.preferred()} cannot be used"),
        (f"{zoo.preferred()}/weights.safetensors", f"{zoo.preferred()} cannot be used"),
        ("ort/*.wasm", f"{zoo.preferred()} cannot be used"),
        ("ort/*.mjs", f"{zoo.preferred()} cannot be used"),
    ],
)
def test_a_site_with_damaged_files_says_so(browser: Any, url: str, broken: str, message: str) -> None:
    visit = Visit(browser, url, broken)
    assert message in visit.refused()
    visit.at("image").click()
    if broken == "models.json":
        expect(visit.at("restore")).to_be_disabled()
    else:
        visit.at("restore").click()
    assert not visit.shown("after", visit.at("after").evaluate("each => each.width"))[..., 0].any()
    visit.context.close()
