"""What the local page refuses in Chromium: files, numbers and sites that are of no use."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from pages import NOTHING, Visit, expect, noisy, png, upload
from PIL import Image

from restore import zoo
from restore.app import assembly


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
