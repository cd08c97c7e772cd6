"""The local page in Chromium restores images of any size as `restore denoise` does."""

from __future__ import annotations

import numpy as np
import pytest
from pages import ASSETS, Visit
from PIL import Image

from restore import zoo
from restore.app import assembly
from restore.inference.damage import Damage
from restore.inference.large import restore_large
from restore.inference.onnx.engine import OnnxEngine
from restore.marginals import Status

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


def hole(shape: tuple[int, ...]) -> np.ndarray:
    mask = np.zeros(shape, bool)
    mask[shape[0] // 3 : shape[0] // 3 + 8, shape[1] // 4 : shape[1] // 4 + 9] = True
    return mask


CASES: list[tuple[str, np.ndarray, float, bool]] = [
    ("tap-mnist-25", digits(56, 40), 0.1, True),
    ("tap-text", page(70, 50), 0.1, False),
    ("tap-text", page(90, 120), 0.3, True),  # so weak that the first round is solved under stronger evidence
    ("tap-text", page(9, 40), 0.1, False),  # less high than a window
    ("tap-mnist", digits(20, 24), 0.0, True),  # in the middle of one window
    ("crbm-bp-mnist-flip10", digits(28, 40), 0.0, False),  # no messages
]


@pytest.mark.parametrize(("name", "pixels", "p", "holes"), CASES)
def test_any_size_is_restored_as_outside_the_browser(
    reader: Visit, name: str, pixels: np.ndarray, p: float, holes: bool
) -> None:
    folder = zoo.find(name)
    about = zoo.describe(folder)
    mask = hole(pixels.shape) if holes else np.zeros(pixels.shape, bool)
    damage = Damage() if about.conditional else Damage.of(p, hidden=[mask])
    engine = OnnxEngine.load(folder)
    choice, expected = restore_large([engine], pixels, damage, force=True)
    assert not choice.invert
    found = reader.solve(assembly.facts(folder), pixels, p, mask)
    # Where a window is no digit the solver creeps, and rounding moves its end by up to the solver's own tolerance.
    room = about.inference.tol if name == "tap-mnist-25" else ROUNDING
    for key, wanted in (("means", expected.means), ("variances", expected.deviations**2)):
        np.testing.assert_allclose(found[key], wanted.ravel(), atol=room, rtol=0)
    clear = np.abs(expected.means - 0.5) > CLEAR
    assert clear.mean() > 0.9
    np.testing.assert_array_equal(np.array(found["restored"]).reshape(pixels.shape)[clear], expected.estimate[clear])
    assert found["iterations"] == expected.iterations
    assert found["converged"] == (expected.status is Status.CONVERGED)
