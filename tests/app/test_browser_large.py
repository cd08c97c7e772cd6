"""The local page in Chromium restores images of any size as `restore denoise` does."""

from __future__ import annotations

import io
from dataclasses import replace

import numpy as np
import pytest
from pages import ASSETS, Visit, expect, png, upload
from PIL import Image

from restore import zoo
from restore.app import assembly
from restore.channels.damage import Damage, Observed
from restore.families import Features
from restore.inference.decision.notes import BLIND
from restore.inference.onnx.engine import OnnxEngine
from restore.inference.open import Engines
from restore.inference.options import Options
from restore.inference.restore import restore
from restore.inference.restored import Restored
from restore.inference.tiles.blocks import parts_of
from restore.status import Status

# Both compute in single precision, and differ in the order of their sums.
ROUNDING = 2e-5
CLEAR = 1e-3


def page(height: int, width: int) -> np.ndarray:
    """A part of a page, white on black, with 10 % of its pixels inverted."""
    with Image.open(ASSETS / "page-noisy.png") as image:
        return 1 - np.asarray(image.convert("L"), float)[40 : 40 + height, 30 : 30 + width] / 255


def digits(height: int, width: int) -> np.ndarray:
    """Digits one beside the other, with 10 % of their pixels inverted."""
    with Image.open(ASSETS / "digit.png") as image:
        ink = np.tile(np.asarray(image.convert("L")) > 127, (4, 4))[:height, :width]
    return (ink ^ (np.random.default_rng(1).random(ink.shape) < 0.1)).astype(float)


def hole(shape: tuple[int, ...], side: int) -> np.ndarray:
    mask = np.zeros(shape, bool)
    mask[shape[0] // 3 :, shape[1] // 4 :][:side, :side] = True
    return mask


def outside(engine: OnnxEngine, pixels: np.ndarray, p: float, mask: np.ndarray) -> Restored:
    """What Python makes of an image with a prior and a level that are named."""
    damage = Damage() if engine.header.task else replace(Damage.of(p), hidden=mask)
    options = Options(force=True)
    (result,) = restore([Observed(pixels, damage)], options, Engines(options, only=engine))
    return result


# Prior, image, p, and the side of a hole.
CASES = [
    ("tap-mnist-25", digits(70, 50), 0.1, 40),  # nothing is visible in some windows
    ("conv-art", page(100, 170), 0.1, 9),  # in parts
]
OTHERS = [
    ("tap-mnist-25", digits(9, 40), 0.1, 0),  # less high than a window
    ("conv-art", page(20, 30), 0.1, 0),
    ("tap-mnist-25", digits(56, 40), 0.1, 9),
    ("tap-mnist", digits(20, 24), 0.0, 9),  # in the middle of one window
    ("crbm-bp-mnist-flip10", digits(28, 40), 0.0, 0),
]


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("name", "pixels", "p", "side"), [*CASES, *(pytest.param(*other, marks=pytest.mark.thorough) for other in OTHERS)]
)
def test_any_size_is_restored_as_outside_the_browser(
    reader: Visit, name: str, pixels: np.ndarray, p: float, side: int
) -> None:
    folder = zoo.find(name)
    header = zoo.describe(folder)
    mask = hole(pixels.shape, side)
    expected = outside(OnnxEngine.load(folder), pixels, p, mask)
    assert not any("inverted" in note for note in expected.notes)
    solution = reader.solve(assembly.facts(folder), pixels, p, mask)
    # Where a window is no digit the solver creeps, and rounding moves its end by up to the solver's own tolerance.
    room = header.inference.tol if name == "tap-mnist-25" else ROUNDING
    for key, wanted in (("means", expected.means), ("variances", expected.deviations**2)):
        np.testing.assert_allclose(solution[key], wanted.ravel(), atol=room, rtol=0)
    clear = np.abs(expected.means - 0.5) > CLEAR
    assert clear.mean() > 0.9
    np.testing.assert_array_equal(np.array(solution["restored"]).reshape(pixels.shape)[clear], expected.estimate[clear])
    assert solution["iterations"] == expected.iterations
    # A solver that stops as it has learnt to has converged, which the page says in its own words.
    assert (solution["converged"] or header.stops_as_learnt) == (expected.status is Status.CONVERGED)
    assert solution["blind"] == (BLIND in expected.notes) == (side > 30)


def test_windows_that_overlap_are_averaged(reader: Visit) -> None:
    # The page loads a prior and its facts once, so no other test here uses this one.
    folder, pixels = zoo.find("tap-mnist-50"), digits(40, 50)
    mask, engine = hole(pixels.shape, 9), OnnxEngine.load(folder)
    facts = replace(engine.facts, header=replace(engine.header, overlap=2))
    overlapping = replace(engine, facts=facts)
    apart, expected = (outside(each, pixels, 0.1, mask).means for each in (engine, overlapping))
    solution = reader.solve(assembly.facts(folder) | {"overlap": 2}, pixels, 0.1, mask)
    np.testing.assert_allclose(solution["means"], expected.ravel(), atol=ROUNDING, rtol=0)
    assert np.abs(expected - apart).max() > 0.1


@pytest.mark.parametrize("strides", [(1, 2, 2), (2, 2, 2), (1, 2, 2, 2)])
@pytest.mark.parametrize("size", [1, 100, 160, 161, 320, 600, 601, 602, 603, 2000])
def test_parts_are_those_of_python(reader: Visit, size: int, strides: tuple[int, ...]) -> None:
    layers = tuple(Features(1, stride, stride, "spin") for stride in strides)
    header = replace(zoo.describe(zoo.find("conv-text")), layers=layers)
    spans = "async ([size, strides]) => (await import('./parts.js')).spans(size, strides)"
    result = reader.page.evaluate(spans, [size, strides])
    parts = parts_of((size, 1), header)
    expected = [part.core[0].indices(size)[:2] + part.around[0].indices(size)[:2] for part in parts]
    assert [(each["from"], each["to"], each["start"], each["start"] + each["length"]) for each in result] == expected


@pytest.mark.thorough
def test_a_page_is_opened_cancelled_restored_and_zoomed(visit: Visit) -> None:
    visit.choose("conv-text")
    assert visit.shown("image", 200).shape == (120, 200, 3), "its example is a page"
    with Image.open(ASSETS / "page-noisy.png") as image:
        several = Image.fromarray(np.tile(np.asarray(image.convert("L")), (3, 3)))
    upload(visit, "page.png", png(several))  # of several parts, after each of which it can be cancelled
    visit.wait_for("page.png is open: 960×600 pixels.")
    expect(visit.at("running")).to_be_hidden()
    visit.at("restore").click()
    expect(visit.at("progress")).not_to_have_js_property("value", 0)
    visit.at("cancel").click()
    visit.wait_for("Cancelled.")
    expect(visit.at("running")).to_be_hidden()
    expect(visit.at("download")).to_be_disabled()

    pixels = page(60, 90)
    upload(visit, "part.png", png(Image.fromarray(np.uint8(255 * (1 - pixels)))))
    visit.wait_for("part.png is open: 90×60 pixels.")
    assert "windows" not in visit.restore()
    expected = outside(OnnxEngine.load(zoo.find("conv-text")), pixels, 0.1, hole(pixels.shape, 0))
    np.testing.assert_array_equal(visit.shown("before", 90)[..., 0], 255 * (1 - pixels))
    clear = np.abs(expected.means - 0.5) > CLEAR
    np.testing.assert_array_equal(visit.shown("after", 90)[clear][:, 0], 255 * (1 - expected.estimate[clear]))

    visit.at("zoom").select_option("8")
    frames = [visit.at(name).locator("..") for name in ("image", "before", "after", "uncertainty")]
    assert [frame.evaluate("each => each.firstChild.clientWidth") for frame in frames] == [8 * 90] * 4
    frames[2].evaluate("each => each.scrollTo(60, 0)")
    for frame in frames:
        expect(frame).to_have_js_property("scrollLeft", 60)
    with visit.page.expect_download() as download:
        visit.at("download").click()
    with Image.open(io.BytesIO(download.value.path().read_bytes())) as image:
        assert image.size == (90, 60)
    # Digits are restored in windows, one as a whole, and in the colours they have.
    visit.choose(zoo.preferred())
    upload(visit, "digits.png", png(Image.fromarray(np.uint8(255 * digits(56, 40)))))
    visit.wait_for("digits.png is open: 40×56 pixels.")
    assert "; 4 windows of 28×28; " in visit.restore()
    upload(visit, "digit.png", (ASSETS / "digit.png").read_bytes())
    visit.wait_for("digit.png is open.")
    expect(visit.at("zoom")).to_be_hidden()
    assert "windows" not in visit.restore()
