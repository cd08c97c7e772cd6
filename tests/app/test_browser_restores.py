"""The local page in Chromium restores as the native runtime does, and nothing leaves this machine."""

from __future__ import annotations

import re
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pytest
from pages import ASSETS, FILES, NOTHING, PUBLISHED, Visit, expect, noisy, png, upload
from PIL import Image

import restore
from restore import zoo
from restore.app import assembly
from restore.status import Status

onnxruntime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")


def native(folder: Path, pixels: np.ndarray, p: float, mask: np.ndarray) -> dict[str, np.ndarray]:
    """The same graph run by onnxruntime outside the browser."""
    session = onnxruntime.InferenceSession(folder / zoo.GRAPH, providers=["CPUExecutionProvider"])
    inference = assembly.facts(folder)["inference"]
    inputs = {
        "image": pixels[None].astype(np.float32),
        "p": np.full((1, 1, 1), p, np.float32),
        "mask": mask[None].astype(bool),
        "max_iter": np.array(inference["max_iter"], np.int64),
        "tol": np.array(inference["tol"], np.float32),
        "damping": np.array(inference["damping"], np.float32),
    }
    wanted = {entry.name for entry in session.get_inputs()}
    names = [entry.name for entry in session.get_outputs()]
    outputs = session.run(names, {name: value for name, value in inputs.items() if name in wanted})
    return dict(zip(names, outputs, strict=True))


# ------------------------------------------------------------------------------------------------------ restorations


def kinds() -> list[Path]:
    """A published prior of digits for each kind of graph: those of one kind differ in their weights alone."""
    result: dict[object, Path] = {}
    for folder in [zoo.find(zoo.preferred()), *PUBLISHED]:
        header = zoo.describe(folder)
        if header.image_shape == NOTHING.shape:
            result.setdefault((header.family, header.inference.solver), folder)
    return list(result.values())


@pytest.mark.thorough
@pytest.mark.parametrize("folder", kinds(), ids=lambda folder: folder.name)
def test_the_result_is_that_of_the_native_runtime(reader: Visit, folder: Path) -> None:
    mask = NOTHING.copy()
    mask[8:18, 12:22] = True
    # Given noise and a mask at once, the small priors may find no fixed point; then rounding grows.
    both = [(0.2, mask)] if folder.name == zoo.preferred() else []
    for p, hidden in ((0.1, NOTHING), (0.0, mask), *both):
        solution = reader.solve(assembly.facts(folder), noisy(), p, hidden)
        expected = native(folder, noisy(), p, hidden)
        # Where a residual comes close to the tolerance, rounding may let one of the two take an iteration more.
        same = solution["iterations"] == expected["iterations"][0]
        room = 1e-5 if same else 10 * assembly.facts(folder)["inference"]["tol"]
        assert abs(solution["iterations"] - expected["iterations"][0]) <= 1
        for name in ("means", "variances"):
            np.testing.assert_allclose(solution[name], expected[name].ravel(), atol=room, rtol=0)
        clear = np.abs(expected["means"].ravel() - 0.5) > room
        np.testing.assert_array_equal(np.array(solution["restored"])[clear], expected["restored"].ravel()[clear])
        assert solution["converged"] == bool(expected["converged"][0])


@pytest.mark.thorough
def test_restoring_shows_before_after_uncertainty_and_the_iterations(visit: Visit) -> None:
    before = visit.image() / 255
    said = visit.restore()
    expected = native(zoo.find(zoo.preferred()), before, 0.1, NOTHING)
    counted = re.fullmatch(r"\S+: the solver converged; (\d+) iterations in \S+ m?s; (\S+) % of pixels changed\.", said)
    assert counted and abs(int(counted[1]) - expected["iterations"][0]) <= 1
    np.testing.assert_array_equal(visit.shown("before")[..., 0], 255 * before)
    np.testing.assert_array_equal(visit.shown("after")[..., 0], 255 * expected["restored"][0])
    assert float(counted[2]) == pytest.approx(100 * (expected["restored"][0] != before).mean(), abs=0.051)
    # Lighter where the deviation is larger.
    lightness = visit.shown("uncertainty").astype(int).sum(-1)
    deviations = np.sqrt(expected["variances"][0])
    assert lightness[deviations > 0.4].min() > lightness[deviations < 0.1].max()
    visit.tick("Grey levels")
    np.testing.assert_allclose(visit.shown("after")[..., 0], 255 * expected["means"][0], atol=0.51)


@pytest.mark.thorough
def test_a_mask_is_painted_and_filled(visit: Visit) -> None:
    upload(visit, "digit.png", (ASSETS / "digit.png").read_bytes())
    visit.wait_for("digit.png is open.")
    visit.tick("Mask")
    visit.at("brush").fill("6")
    box = visit.at("image").bounding_box()
    visit.page.mouse.move(box["x"] + 0.4 * box["width"], box["y"] + 0.3 * box["height"])
    visit.page.mouse.down()
    visit.page.mouse.move(box["x"] + 0.4 * box["width"], box["y"] + 0.7 * box["height"], steps=5)
    visit.page.mouse.up()
    visit.at("p").fill("0")
    visit.restore()
    before, after = visit.shown("before"), visit.shown("after")
    to_fill = before[..., 2] != before[..., 0]
    with Image.open(ASSETS / "digit.png") as image:
        clean = np.asarray(image.convert("L"))
    assert 40 < to_fill.sum() < 100
    np.testing.assert_array_equal(after[~to_fill][:, 0], clean[~to_fill])
    np.testing.assert_array_equal(
        after[..., 0], 255 * native(zoo.find(zoo.preferred()), clean / 255, 0, to_fill)["restored"][0]
    )
    visit.at("clear-mask").click()
    expect(visit.at("clear-mask")).to_be_disabled()
    visit.at("undo").click()
    expect(visit.at("clear-mask")).to_be_enabled()
    visit.page.evaluate("document.getElementById('brush').max = 64")
    visit.at("brush").fill("64")
    visit.at("image").click()
    visit.at("restore").click()
    assert "covers every pixel" in visit.refused()


@pytest.mark.thorough
def test_a_conditional_prior_asks_neither_p_nor_a_mask(visit: Visit) -> None:
    name = "crbm-bp-mnist-flip10"
    visit.tick("Mask")
    visit.choose(name)
    for control in ("p", "clear-mask"):
        expect(visit.at(control)).to_be_hidden()
    expect(visit.page.get_by_role("radio", name="Mask", exact=True)).to_be_hidden()
    expect(visit.page.get_by_role("radio", name="Draw")).to_be_checked()
    expect(visit.at("facts")).to_contain_text("Undoes 10 % inverted pixels, from the damaged image alone")
    before = visit.image() / 255
    visit.restore()
    expected = native(zoo.find(name), before, 0, NOTHING)
    np.testing.assert_array_equal(visit.shown("after")[..., 0], 255 * expected["restored"][0])
    visit.choose(zoo.preferred())
    expect(visit.at("p")).to_be_visible()


@pytest.mark.thorough
def test_images_on_the_other_ground_are_inverted(visit: Visit) -> None:
    upload(visit, "dark.png", png(Image.fromarray(np.uint8(255 * (1 - noisy())))))
    visit.wait_for("dark.png is open")
    expect(visit.at("invert")).to_have_value("")
    visit.restore()
    expected = native(zoo.find(zoo.preferred()), noisy(), 0.1, NOTHING)
    np.testing.assert_array_equal(visit.shown("after")[..., 0], 255 * (1 - expected["restored"][0]))
    # Unless the user says so.
    visit.at("invert").select_option("false")
    visit.restore()
    expected = native(zoo.find(zoo.preferred()), 1 - noisy(), 0.1, NOTHING)
    np.testing.assert_array_equal(visit.shown("after")[..., 0], 255 * expected["restored"][0])


# --------------------------------------------------------------------------------------------------- where things go


@pytest.mark.thorough
def test_no_request_leaves_this_machine_and_it_works_offline(browser: Any, url: str) -> None:
    visit = Visit(browser, url)
    first = visit.restore()
    others = [folder.name for folder in PUBLISHED if folder.name != zoo.preferred()]
    visit.choose(others[0])
    visit.restore()
    seen = len(visit.requests)
    visit.context.set_offline(True)
    visit.choose(zoo.preferred())
    visit.at("example").click()
    assert visit.restore() != first
    assert len(visit.requests) == seen, "what is loaded needs no server"
    visit.choose(others[0])
    visit.restore()
    visit.context.close()
    # Requests of the worker are among them.
    assert any(request.endswith(f"{zoo.preferred()}/{zoo.GRAPH}") for request in visit.requests)
    assert all(request.startswith((url, f"blob:{url}")) for request in visit.requests)


@pytest.mark.thorough
def test_a_prior_that_cannot_be_read_is_told_and_may_be_chosen_again(browser: Any, tmp_path: Path) -> None:
    first, other = (zoo.find(name) for name in (zoo.preferred(), "fw-mnist"))
    assembly.write([first, other], FILES, tmp_path / "page")
    handler = partial(SimpleHTTPRequestHandler, directory=tmp_path)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as running:
        Thread(target=running.serve_forever, daemon=True).start()
        visit = Visit(browser, f"http://127.0.0.1:{running.server_address[1]}/page/")
        visit.restore()
        (tmp_path / "page" / "models").rename(tmp_path / "gone")
        visit.at("prior").select_option(other.name)
        assert f"{other.name} cannot be used" in visit.refused()
        (tmp_path / "gone").rename(tmp_path / "page" / "models")
        visit.choose(first.name)
        visit.choose(other.name)
        visit.restore()
        visit.context.close()
        running.shutdown()


# ------------------------------------------------------------------------------------------------------ by our server


def test_our_server_restores_what_the_page_shows(served: Visit) -> None:
    assert served.at("prior").input_value() == "auto" and served.at("p").input_value() == ""
    seen = served.image()
    with Image.open(ASSETS / "digit.png") as image:
        assert 0.02 < (np.asarray(image.convert("L")) != seen).mean() < 0.2, "the example is damaged"
    said = served.restore()
    clean, result = restore.denoise(np.uint8(seen), return_solution=True)
    assert said.startswith(f"{result.model}: p = ") and f"; {result.iterations} iterations" in said
    np.testing.assert_array_equal(served.shown("before")[..., 0], seen)
    np.testing.assert_array_equal(served.shown("after")[..., 0], clean)
    served.tick("Grey levels")
    np.testing.assert_allclose(served.shown("after")[..., 0], 255 * result.means, atol=0.51)
    # The page needs neither the runtime nor a prior.
    assert not any("/ort/" in request or "/models/" in request for request in served.requests)


def test_our_server_leaves_alone_what_no_prior_knows_unless_all_is_named(served: Visit) -> None:
    noise = np.random.default_rng(0).integers(0, 256, (28, 28), np.uint8)
    upload(served, "noise.png", png(Image.fromarray(noise)))
    served.wait_for("noise.png is open")
    served.at("restore").click()
    assert served.refused().startswith(f"As it came, not sure: {Status.NOT_INK.sentence}; ")
    expect(served.at("download")).to_be_disabled()
    served.choose("tap-mnist")
    served.at("p").fill("0.1")
    served.restore()
    np.testing.assert_array_equal(served.shown("after")[..., 0], restore.denoise(noise, "tap-mnist", 0.1))


@pytest.mark.thorough
def test_our_server_fills_what_is_masked(served: Visit) -> None:
    upload(served, "digit.png", (ASSETS / "digit.png").read_bytes())
    served.wait_for("digit.png is open.")
    served.tick("Mask")
    served.at("brush").fill("8")
    served.at("image").click()
    seen = served.image()
    served.restore()
    hole = served.shown("before")[..., 2] != served.shown("before")[..., 0]
    assert 30 < hole.sum() < 100
    with Image.open(ASSETS / "digit.png") as image:
        clean = np.asarray(image.convert("L"))
    assert (seen[~hole] == clean[~hole]).all()
    np.testing.assert_array_equal(served.shown("after")[..., 0], restore.complete(clean, hole))


@pytest.mark.thorough
def test_our_server_is_cancelled_and_missed(served: Visit) -> None:
    upload(served, "page.png", (ASSETS / "page-noisy.png").read_bytes())
    served.wait_for("page.png is open: 320×200 pixels.")
    served.at("restore").click()
    served.at("cancel").click()
    served.wait_for("Cancelled.")
    served.context.set_offline(True)
    served.at("restore").click()
    assert "Is the server still running?" in served.refused()
    served.context.set_offline(False)
    served.complaints.clear()
