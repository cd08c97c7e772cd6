"""The local page in Chromium restores as the native runtime does, and nothing leaves this machine."""

from __future__ import annotations

import functools
import http.server
import re
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pages import ASSETS, NOTHING, PUBLISHED, Visit, expect, native, noisy, png, upload
from PIL import Image

from restore import zoo
from restore.app import assembly

# ------------------------------------------------------------------------------------------------------ restorations


def kinds() -> list[Path]:
    """A published prior of digits for each kind of graph: those of one kind differ in their weights alone."""
    found: dict[object, Path] = {}
    for folder in [zoo.find(zoo.PREFERRED_BINARY), *PUBLISHED]:
        about = zoo.describe(folder)
        if about.image_shape == NOTHING.shape:
            found.setdefault((about.family, about.inference.solver), folder)
    return list(found.values())


@pytest.mark.thorough
@pytest.mark.parametrize("folder", kinds(), ids=lambda folder: folder.name)
def test_the_result_is_that_of_the_native_runtime(reader: Visit, folder: Path) -> None:
    mask = NOTHING.copy()
    mask[8:18, 12:22] = True
    # Given noise and a mask at once, the small priors may find no fixed point; then rounding grows.
    both = [(0.2, mask)] if folder.name == zoo.PREFERRED_BINARY else []
    for p, hidden in ((0.1, NOTHING), (0.0, mask), *both):
        found = reader.solve(assembly.facts(folder), noisy(), p, hidden)
        expected = native(folder, noisy(), p, hidden)
        # Where a residual comes close to the tolerance, rounding may let one of the two take an iteration more.
        same = found["iterations"] == expected["iterations"][0]
        room = 1e-5 if same else 10 * assembly.facts(folder)["inference"]["tol"]
        assert abs(found["iterations"] - expected["iterations"][0]) <= 1
        for name in ("means", "variances"):
            np.testing.assert_allclose(found[name], expected[name].ravel(), atol=room, rtol=0)
        clear = np.abs(expected["means"].ravel() - 0.5) > room
        np.testing.assert_array_equal(np.array(found["restored"])[clear], expected["restored"].ravel()[clear])
        assert found["converged"] == bool(expected["converged"][0])


@pytest.mark.thorough
def test_restoring_shows_before_after_uncertainty_and_the_iterations(visit: Visit) -> None:
    before = visit.image() / 255
    said = visit.restore()
    expected = native(zoo.find(zoo.PREFERRED_BINARY), before, 0.1, NOTHING)
    counted = re.fullmatch(r"The solver converged: (\d+) iterations, residual \S+, \S+ ms\. \d+ pixels changed\.", said)
    assert counted and abs(int(counted[1]) - expected["iterations"][0]) <= 1
    np.testing.assert_array_equal(visit.shown("before")[..., 0], 255 * before)
    np.testing.assert_array_equal(visit.shown("after")[..., 0], 255 * expected["restored"][0])
    changed = int((expected["restored"][0] != before).sum())
    assert f" {changed} pixels changed." in said
    # Lighter where the deviation is larger.
    lightness = visit.shown("uncertainty").astype(int).sum(-1)
    deviations = np.sqrt(expected["variances"][0])
    assert lightness[deviations > 0.4].min() > lightness[deviations < 0.1].max()
    visit.tick("Probability")
    np.testing.assert_allclose(visit.shown("after")[..., 0], 255 * expected["means"][0], atol=0.51)


@pytest.mark.thorough
def test_a_mask_is_painted_and_filled(visit: Visit) -> None:
    visit.at("example").click()
    visit.tick("Mask")
    visit.at("brush").fill("6")
    box = visit.at("image").bounding_box()
    visit.page.mouse.move(box["x"] + 0.4 * box["width"], box["y"] + 0.3 * box["height"])
    visit.page.mouse.down()
    visit.page.mouse.move(box["x"] + 0.4 * box["width"], box["y"] + 0.7 * box["height"], steps=5)
    visit.page.mouse.up()
    visit.at("p").fill("0")
    said = visit.restore()
    assert re.search(r" \d\d pixels filled, 0 changed\.", said)
    before, after = visit.shown("before"), visit.shown("after")
    to_fill = before[..., 2] != before[..., 0]
    with Image.open(ASSETS / "digit.png") as image:
        clean = np.asarray(image.convert("L"))
    assert 40 < to_fill.sum() < 100
    np.testing.assert_array_equal(after[~to_fill][:, 0], clean[~to_fill])
    np.testing.assert_array_equal(
        after[..., 0], 255 * native(zoo.find(zoo.PREFERRED_BINARY), clean / 255, 0, to_fill)["restored"][0]
    )
    visit.at("clear-mask").click()
    expect(visit.at("clear-mask")).to_be_disabled()
    visit.at("undo").click()
    expect(visit.at("clear-mask")).to_be_enabled()


@pytest.mark.thorough
def test_a_mask_over_everything_is_refused(visit: Visit) -> None:
    visit.tick("Mask")
    visit.at("brush").fill("8")
    box = visit.at("image").bounding_box()
    visit.page.mouse.move(box["x"] + 2, box["y"] + 2)
    visit.page.mouse.down()
    for row in range(0, 28, 3):
        for column in (0.01, 0.99):
            visit.page.mouse.move(box["x"] + column * box["width"], box["y"] + (row + 0.9) / 28 * box["height"])
    visit.page.mouse.up()
    visit.at("restore").click()
    assert "covers every pixel" in visit.refused()


@pytest.mark.thorough
def test_a_conditional_prior_asks_neither_p_nor_a_mask(visit: Visit) -> None:
    name = "crbm-bp-mnist-flip10"
    visit.tick("Mask")
    visit.choose(name)
    for control in ("p", "p-slider", "clear-mask"):
        expect(visit.at(control)).to_be_hidden()
    expect(visit.page.get_by_role("radio", name="Mask", exact=True)).to_be_hidden()
    expect(visit.page.get_by_role("radio", name="Draw")).to_be_checked()
    expect(visit.at("facts")).to_contain_text("Undoes 10 % inverted pixels, from the damaged image alone")
    before = visit.image() / 255
    visit.restore()
    expected = native(zoo.find(name), before, 0, NOTHING)
    np.testing.assert_array_equal(visit.shown("after")[..., 0], 255 * expected["restored"][0])
    visit.choose(zoo.PREFERRED_BINARY)
    expect(visit.at("p")).to_be_visible()


@pytest.mark.thorough
def test_a_mask_is_kept_for_the_priors_that_are_told(visit: Visit) -> None:
    conditional = next(folder.name for folder in PUBLISHED if folder.name.startswith("crbm"))
    visit.tick("Mask")
    visit.at("image").click()
    masked = visit.shown("image")
    visit.choose(conditional)
    assert (visit.shown("image") != masked).any()
    visit.restore()
    assert "filled" not in visit.at("status").inner_text()
    visit.choose(zoo.PREFERRED_BINARY)
    np.testing.assert_array_equal(visit.shown("image"), masked)
    assert " filled" in visit.restore()


@pytest.mark.thorough
def test_inverted_images_are_noticed_and_inverted(visit: Visit) -> None:
    expected = native(zoo.find(zoo.PREFERRED_BINARY), 1 - noisy(), 0.1, NOTHING)
    upload(visit, "dark.png", png(Image.fromarray(np.uint8(255 * (1 - noisy())))))
    visit.wait_for("dark.png is open")
    visit.restore()
    if expected["inversion"][0] > 0.05:
        assert "looks inverted" in visit.refused()
    visit.at("invert").check()
    visit.restore()
    expect(visit.at("message")).to_be_empty()
    expected = native(zoo.find(zoo.PREFERRED_BINARY), noisy(), 0.1, NOTHING)
    np.testing.assert_array_equal(visit.shown("after")[..., 0], 255 * (1 - expected["restored"][0]))


@pytest.mark.thorough
def test_the_result_is_downloaded_as_it_is_shown(visit: Visit) -> None:
    expect(visit.at("download")).to_be_disabled()
    visit.restore()
    with visit.page.expect_download() as download:
        visit.at("download").click()
    assert download.value.suggested_filename == f"{zoo.PREFERRED_BINARY}.png"
    with Image.open(download.value.path()) as image:
        np.testing.assert_array_equal(np.asarray(image.convert("L")), visit.shown("after")[..., 0])


# --------------------------------------------------------------------------------------------------- where things go


@pytest.mark.thorough
def test_no_request_leaves_this_machine_and_it_works_offline(browser: Any, url: str) -> None:
    visit = Visit(browser, url)
    first = visit.restore()
    others = [folder.name for folder in PUBLISHED if folder.name != zoo.PREFERRED_BINARY]
    visit.choose(others[0])
    visit.restore()
    seen = len(visit.requests)
    visit.context.set_offline(True)
    visit.choose(zoo.PREFERRED_BINARY)
    visit.at("example").click()
    assert visit.restore() != first
    assert len(visit.requests) == seen, "what is loaded needs no server"
    visit.at("prior").select_option(others[1])
    assert f"{others[1]} cannot be used" in visit.refused()
    visit.choose(others[0])
    visit.restore()
    visit.context.set_offline(False)
    visit.choose(others[1])
    visit.restore()
    visit.context.close()
    # Requests of the worker are among them.
    assert any(request.endswith(f"{zoo.PREFERRED_BINARY}/{zoo.GRAPH}") for request in visit.requests)
    assert all(request.startswith((url, f"blob:{url}")) for request in visit.requests)


@pytest.mark.thorough
def test_the_written_site_works_below_any_address(browser: Any, published: assembly.Site, tmp_path: Path) -> None:
    assembly.write(published, tmp_path / "deep" / "page")

    class Handler(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

    handler = functools.partial(Handler, directory=tmp_path)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        visit = Visit(browser, f"http://127.0.0.1:{server.server_address[1]}/deep/page/")
        visit.restore()
        visit.context.close()
        server.shutdown()
    assert visit.complaints == []
