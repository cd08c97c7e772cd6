"""With nothing told: which images the published priors explain better than noise does, and which they refuse."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageDraw, ImageFont
from restore.inference.windows.choosing import survey
from restore.inference.windows.choosing.sampling import sample_of
from restore.inference.windows.choosing.survey import choose

import restore
from restore.errors import ModelError
from restore.inference.damage import Damage
from restore.inference.open import open_engine
from restore.zoo import candidates
from training.data.text import families_to_learn_from

ASSETS = Path(__file__).parents[3] / "assets"

pytestmark = pytest.mark.thorough


@pytest.fixture(scope="module")
def disc() -> np.ndarray:
    row, column = np.indices((90, 100))
    return np.hypot(row - 40, column - 55) < 28


def flipped(image: np.ndarray, p: float) -> np.ndarray:
    return image ^ (np.random.default_rng(0).random(image.shape) < p)


@pytest.mark.parametrize("white", [0.5, 0.2, 0.02, 0.0, 1.0])
def test_noise_and_blank_images_are_refused(disc: np.ndarray, white: float) -> None:
    noise = flipped(np.zeros_like(disc), white)
    with pytest.raises(
        ModelError, match=r"no prior explains it better than independent pixels: .*restore train.*with force"
    ):
        restore.denoise(noise)
    # Who knows better says so.
    with pytest.warns(UserWarning, match="no better than independent"):
        restore.denoise(noise, force=True)


def test_what_a_prior_foresees_is_not_refused(disc: np.ndarray, monkeypatch: pytest.MonkeyPatch) -> None:
    """Evidence alone may be too low: it is that of windows which know nothing of each other."""
    monkeypatch.setattr(survey, "_behind_noise", lambda *seen: 20.0)
    found, solution = restore.denoise(flipped(disc, 0.1), return_solution=True)
    assert not solution.shortfall.any() and (found != disc).mean() < 0.01
    with pytest.raises(ModelError, match="no prior explains it better than independent pixels"):
        restore.denoise(flipped(np.zeros_like(disc), 0.3))


@pytest.mark.parametrize("size", [9, 11])
def test_small_clean_print_is_not_taken_for_faded_ink(size: int) -> None:
    sheet = Image.new("L", (240, 200), 255)
    # A font of matplotlib, whatever others are installed.
    font = ImageFont.truetype(str(families_to_learn_from()[0][0]), size, layout_engine=ImageFont.Layout.BASIC)
    for row in range(12):
        words = "the quick brown fox jumps over the lazy dog"[row:]
        ImageDraw.Draw(sheet).text((6, 4 + 16 * row), words, fill=0, font=font)
    clean = np.asarray(sheet) > 127
    # More than one percent was changed as long as its strokes passed for ink that fades.
    assert (restore.denoise(clean) != clean).mean() < 0.004


def test_what_lies_under_a_mask_does_not_count() -> None:
    draw = np.random.default_rng(2)
    image, hidden = draw.random((200, 230)) < np.linspace(0, 1, 230), np.zeros((200, 230), bool)
    hidden[30:90, 100:200] = True
    found = [
        [(crop.hidden, crop.grey[~crop.hidden]) for crop in sample_of(under, Damage(hidden=[hidden])).crops]  # type: ignore[operator]
        for under in (np.where(hidden, fill, image.astype(float)) for fill in (0, 1, draw.random(image.shape)))
    ]
    for other in found[1:]:
        for one, two in zip(found[0], other, strict=True):
            assert all(map(np.array_equal, one, two))


def test_specks_are_removed_and_a_clean_picture_stays(disc: np.ndarray) -> None:
    """The evidence of half a percent is that of no noise at all: each speck might have been drawn."""
    assert np.array_equal(restore.denoise(disc), disc)
    seen = flipped(disc, 0.005)
    assert (restore.denoise(seen) != disc).sum() < (seen != disc).sum() / 3


@pytest.mark.parametrize("p", [0.05, 0.2])
@pytest.mark.parametrize("inverted", [False, True])
def test_a_silhouette_is_restored_in_either_polarity(disc: np.ndarray, p: float, inverted: bool) -> None:
    mask = disc ^ inverted
    found, solution = restore.denoise(flipped(mask, p), return_solution=True)
    assert solution.model == "conv-shapes"
    assert (found != mask).mean() < 0.1 * p


def test_a_field_is_most_probable_under_the_ising_field() -> None:
    """A sample of the field itself, by heat-bath sweeps at its own coupling: no trained prior knows it better."""
    from ising import neighbours

    draw = np.random.default_rng(1)
    prior = restore.load("ising").engine.description
    assert prior.log_partition > 0
    side, coupling = 48, 0.22
    weights = neighbours(side, side).numpy()
    spins = draw.choice([-1.0, 1.0], side * side)
    # Pixels two apart in both directions are no neighbours, and can be drawn together.
    row, column = np.divmod(np.arange(side * side), side)
    for _ in range(150):
        for colour in range(4):
            chosen = np.flatnonzero((row % 2) * 2 + column % 2 == colour)
            field = 2 * coupling * weights[chosen] @ spins
            spins[chosen] = np.where(draw.random(chosen.size) < 1 / (1 + np.exp(-field)), 1.0, -1.0)
    field = (spins > 0).reshape(side, side)
    engines = [open_engine(name) for name in ("tap-text", "tap-shapes", "ising")]
    choice = choose(engines, flipped(field, 0.02).astype(float), Damage("auto"), invert=False)
    assert choice.engine.description.name == "ising"


def test_priors_of_whole_objects_are_asked_where_they_fit() -> None:
    assert "tap-mnist" in candidates((56, 84)) and "tap-mnist" in candidates((20, 20))
    assert candidates((512, 512))[:3] == ("tap-text", "ising", "conv-shapes")


def test_print_is_not_restored_as_digits() -> None:
    page = np.asarray(Image.open(ASSETS / "page-noisy.png").convert("L")) > 127
    # The prior of print knows it best, and at the quick look no level of noise makes digits of it.
    with pytest.raises(
        ModelError, match=r"^the image: tap-mnist explains it no better than `tap-text`, .* leave model out"
    ):
        restore.denoise(page, "tap-mnist")
    found, solution = restore.denoise(page, "tap-mnist", return_solution=True)
    assert solution.shortfall[0] > 0 and solution.noise is None and (found == page).all()
