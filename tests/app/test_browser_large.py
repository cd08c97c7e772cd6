"""The local page in Chromium restores images of any size as `restore denoise` does."""

from __future__ import annotations

import io
from dataclasses import replace
from typing import Any

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
from restore.inference.painting import UNCHANGED
from restore.inference.restore import restore
from restore.inference.restored import Restored
from restore.inference.scans.sample import Sample
from restore.inference.tiles.blocks import blocks_of, into_blocks, into_parts, parts_of
from restore.status import Status

# Both compute in single precision, and differ in the order of their sums.
ROUNDING = 2e-5
CLEAR = 1e-3
# A tenth of a grey level.
LEVELS = 4e-4


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


def scan(height: int, width: int, light: bool = False) -> np.ndarray:
    """A part of a scanned page, which is repeated where it is too small."""
    with Image.open(ASSETS / "page-scan.png") as image:
        levels = np.asarray(image.convert("L"), np.float32) / 255
    page = np.pad(levels, ((0, max(0, height - 200)), (0, max(0, width - 320))), "wrap")[:height, :width]
    return 1 - page if light else page


def outside(engine: OnnxEngine, pixels: np.ndarray, p: float, mask: np.ndarray, **how: Any) -> Restored:
    """What Python makes of an image with a prior and a level that are named."""
    known = Damage() if engine.header.task or engine.header.kind.pages else Damage.of(p)
    damage = replace(known, hidden=mask if mask.any() or known.touched else None)
    options = Options(force=True, **how)
    (result,) = restore([Observed(pixels, damage)], options, Engines(options, only=engine))
    return result


# Prior, image, p, and the side of a hole.
CASES = [("conv-art", page(100, 170), 0.1, 9), ("conv-scan", scan(90, 121), 0.0, 0)]
OTHERS = [
    ("conv-art", page(20, 30), 0.1, 0),
    ("conv-mnist", digits(56, 40), 0.1, 9),
    ("conv-text", page(150, 280).repeat(4, 1), 0.1, 12),  # in two blocks
    ("conv-scan", scan(60, 1130), 0.0, 0),
    ("conv-scan", scan(77, 130), 0.0, 20),
    ("conv-scan", scan(1, 7), 0.0, 0),
    ("crbm-bp-mnist-flip10", digits(28, 28), 0.0, 0),
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
    expected = outside(OnnxEngine.load(folder), pixels, p, mask, invert=False, soft=header.kind.pages)
    solution = reader.solve(assembly.facts(folder), pixels, p, mask)
    for key, wanted in (("means", expected.means), ("variances", expected.deviations**2)):
        np.testing.assert_allclose(solution[key], wanted.ravel(), atol=ROUNDING, rtol=0)
    clear = np.abs(expected.means - 0.5) > CLEAR
    assert clear.mean() > 0.9

    def of_page(values: np.ndarray) -> np.ndarray:
        """Where holes of a page are filled, all else stays."""
        return np.where(mask, values, pixels) if header.kind.pages and mask.any() else values

    restored, soft = (np.array(solution[key]).reshape(pixels.shape) for key in ("restored", "soft"))
    np.testing.assert_allclose(restored[clear], of_page(expected.estimate)[clear], atol=LEVELS, rtol=0)
    np.testing.assert_allclose(soft, of_page(expected.picture(soft=True)), atol=LEVELS, rtol=0)
    assert solution["iterations"] == expected.iterations
    if header.kind.pages:
        assert solution["changed"] == pytest.approx(expected.changed, abs=CLEAR)
    # A solver that stops as it has learnt to has converged, which the page says in its own words.
    assert (solution["converged"] or header.stops_as_learnt) == (expected.status is Status.CONVERGED)
    assert solution["blind"] == (BLIND in expected.notes)


@pytest.mark.parametrize("light", [False, True])
def test_the_polarity_of_a_page_is_found_as_in_python(reader: Visit, light: bool) -> None:
    pixels = scan(90, 121, light)
    script = """async ([page, [height, width], pixels]) => {
        const { hasLightInk } = await import("./sheet.js");
        const mask = new Uint8Array(pixels.length);
        return hasLightInk({ width, height, pixels: Float32Array.from(pixels), mask }, page);
    }"""
    facts = assembly.facts(zoo.find("conv-scan"))["page"]
    for enough in (facts["enough"], 2000):  # and of every third row and column
        asked = [facts | {"enough": enough}, list(pixels.shape), pixels.ravel().tolist()]
        assert reader.page.evaluate(script, asked) == light
    assert Sample.of(Observed(pixels, Damage())).light_ink == light


@pytest.mark.parametrize("name", ["conv-text", "conv-scan"])
@pytest.mark.parametrize("strides", [(1, 2, 2), (2, 2, 2), (1, 2, 2, 2)])
@pytest.mark.parametrize("size", [1, 100, 160, 161, 320, 600, 601, 602, 603, 2000])
def test_parts_and_blocks_are_those_of_python(reader: Visit, size: int, name: str, strides: tuple[int, ...]) -> None:
    layers = tuple(Features(1, stride, stride, "spin") for stride in strides)
    header = replace(zoo.describe(zoo.find(name)), layers=layers)
    spans = "async ([size, cutting]) => (await import('./parts.js')).spans(size, cutting)"
    of_python = {into_blocks: blocks_of((size, 1), header), into_parts: parts_of((size, 1), header)}
    for cutting, blocks in of_python.items():
        result = reader.page.evaluate(spans, [size, cutting(header)._asdict()])
        expected = [block.core[0].indices(size)[:2] + block.around[0].indices(9999)[:2] for block in blocks]
        got = [(each["from"], each["to"], each["start"], each["start"] + each["length"]) for each in result]
        assert got == expected


def test_parts_wait_for_a_hand_and_are_taken_as_one_is_idle(reader: Visit) -> None:
    script = """async (prior) => {
        const { Hands } = await import("./hands.js");
        const { width, height } = prior;
        const [pixels, mask] = [new Float32Array(width * height), new Uint8Array(width * height)];
        const picture = { width, height, pixels, mask, p: 0.1 };
        const hands = new Hands();
        await hands.load(prior);
        const taken = [];
        const part = (number) => hands.solve(prior, () => {
            taken.push(number);
            if (number === 1) throw new Error("no more");
            return picture;
        }).then(() => "solved", (fault) => fault.message);
        const answers = [...Array(9).keys()].map(part);
        await Promise.resolve();
        const atOnce = taken.length;
        return [atOnce, await Promise.all(answers), taken, Math.min(4, navigator.hardwareConcurrency)];
    }"""
    at_once, answers, taken, hands = reader.page.evaluate(script, assembly.facts(zoo.find("conv-art")))
    assert hands <= at_once <= hands + 1 and sorted(taken) == [*range(9)]
    assert answers == ["solved", "no more", *["solved"] * 7]


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
    visit.restore()
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
    # Digits are restored one at a time.
    visit.choose(zoo.preferred())
    upload(visit, "digits.png", png(Image.fromarray(np.uint8(255 * digits(56, 40)))))
    visit.wait_for("digits.png is open: 40×56 pixels.")
    visit.at("restore").click()
    assert visit.refused().startswith(f"The image has 40×56 pixels, and {zoo.preferred()} takes 28×28 alone; choose")
    upload(visit, "digit.png", (ASSETS / "digit.png").read_bytes())
    visit.wait_for("digit.png is open.")
    expect(visit.at("zoom")).to_be_hidden()
    visit.restore()
    visit.at("p").fill("0")
    visit.at("restore").click()
    visit.wait_for(f"As it came, clean: {UNCHANGED}.")


@pytest.mark.thorough
def test_a_grey_page_is_read_without_a_server(visit: Visit) -> None:
    visit.choose("conv-scan")
    expect(visit.at("flips")).to_be_hidden()
    expect(visit.at("damage")).to_be_hidden()
    expect(visit.page.get_by_role("radio", name="Mask", exact=True)).to_be_visible()
    pixels = scan(200, 320)
    np.testing.assert_array_equal(visit.shown("image", 320)[..., 0], np.rint(255 * pixels))
    for light in (False, True):
        if light:
            upload(visit, "light.png", png(Image.fromarray(np.uint8(np.rint(255 * (1 - pixels))))))
            visit.wait_for("light.png is open")
        visit.restore()
        expected = outside(OnnxEngine.load(zoo.find("conv-scan")), pixels, 0, hole(pixels.shape, 0), soft=True)
        for view, wanted in (("Black and white", expected.estimate), ("Grey levels", expected.picture(soft=True))):
            visit.tick(view)
            shown = visit.shown("after", 320)[..., 0] / 255
            assert (np.abs(shown - (1 - wanted if light else wanted)) > 0.6 / 255).mean() < 2e-4
