"""Photographs under Gaussian noise: any size, depth and colour, with either engine, and what is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from restore.inference.windows.colour import AXES

import restore
from restore import zoo
from restore.errors import InputError, ModelError, UsageError
from restore.inference.damage import Damage
from restore.inference.onnx.engine import OnnxEngine
from restore.inference.tiles.grid import Cover
from restore.inference.torch_engine import Engine
from training.data.photographs import photograph

PRIOR = "em-photographs"
# A face before a sky, from a photograph that is not learnt from.
CROP = (slice(60, 160), slice(180, 290))


def noisy(clean: np.ndarray, sigma: float = 0.1) -> np.ndarray:
    return np.asarray(clean + sigma * np.random.default_rng(0).standard_normal(clean.shape))


def error(found: np.ndarray, clean: np.ndarray) -> float:
    return float(np.mean((found - clean) ** 2))


@pytest.fixture(scope="module")
def clean() -> np.ndarray:
    return np.asarray(photograph("camera.png")[CROP] / 255)


@pytest.fixture(scope="module")
def prior() -> restore.Restorer:
    return restore.load(PRIOR, engine="onnx")


@pytest.mark.parametrize("sigma", [0.05, 0.1, 0.2])
def test_most_of_the_noise_goes(clean: np.ndarray, sigma: float) -> None:
    """No prior is named: photographs have but one."""
    seen = noisy(clean, sigma)
    found, solution = restore.denoise(seen, sigma=sigma, return_solution=True)
    assert solution.model == PRIOR and not solution.shortfall.any()
    # The posterior knows its own error: it is the variance, on average, up to what patches do not tell each other.
    left = error(found, clean)
    assert left < 0.25 * sigma**2
    assert 0.5 < solution.variances[0].mean() / left < 2


def test_the_level_is_found(prior: restore.Restorer, clean: np.ndarray) -> None:
    for sigma in (0.05, 0.15):
        _, solution = prior.denoise(noisy(clean, sigma), sigma="auto", return_solution=True)
        assert solution.noise is not None
        assert float(solution.noise.chosen[0]) == pytest.approx(sigma, rel=0.1)


@pytest.mark.parametrize("shape", [(1, 1), (1, 40), (7, 9), (10, 10), (10, 11), (23, 31), (9, 64)])
def test_any_size_keeps_its_size(prior: restore.Restorer, clean: np.ndarray, shape: tuple[int, int]) -> None:
    seen = noisy(clean)[: shape[0], : shape[1]]
    found = prior.denoise(seen, sigma=0.1, force=True)
    assert found.shape == shape and np.isfinite(found).all()


@pytest.mark.parametrize("size", [10, 11, 13, 14, 29, 30])
@pytest.mark.parametrize("overlap", [1, 2, 3])
def test_windows_within_an_image_cover_it(size: int, overlap: int) -> None:
    cover = Cover.of((size, 40), (10, 10), overlap, within=True)
    count = cover.crop(cover.add(cover.cut(np.ones((size, 40)), 0.0)))
    assert cover.down.before == 0 and cover.down.after < cover.down.stride
    assert count.shape == (size, 40) and (count >= 1).all() and (count == np.round(count)).all()


def test_both_engines_restore_alike_also_where_pixels_are_hidden() -> None:
    folder, draw = zoo.find(PRIOR), np.random.default_rng(1)
    seen = noisy(np.stack([photograph("camera.png")[at : at + 10, at : at + 10] / 255 for at in range(0, 120, 10)]))
    hidden = np.zeros(seen.shape, bool)
    hidden[3:6, :4] = True
    hidden[8] = draw.random((10, 10)) < 0.4
    sigma = np.full((12, 1, 1), 0.1)
    sigma[10:] = 0.3
    damage = Damage(sigma=sigma, hidden=hidden)
    graph, _ = OnnxEngine.load(folder).marginals(seen, damage)
    reference, _ = Engine.of(zoo.load(folder), torch.device("cpu")).marginals(seen, damage)
    np.testing.assert_allclose(graph.means[0], reference.means[0], atol=1e-5)
    np.testing.assert_allclose(graph.variances[0], reference.variances[0], atol=1e-5)
    np.testing.assert_allclose(graph.log_partition, reference.log_partition, rtol=1e-6)
    assert (graph.status == 0).all() and (reference.status == 0).all()


def test_a_hole_is_filled_better_than_by_grey(prior: restore.Restorer, clean: np.ndarray) -> None:
    hole = np.zeros(clean.shape, bool)
    hole[40:46, 50:56] = True
    found = prior.complete(clean, hole)
    assert (found[~hole] == clean[~hole]).all()
    around = clean[36:50, 46:60].mean()
    assert error(found[hole], clean[hole]) < error(np.full(36, around), clean[hole])


# ------------------------------------------------------------------------------------------------------ kinds of image


def test_sixteen_bits_and_floats_come_back_as_they_came(prior: restore.Restorer, clean: np.ndarray) -> None:
    seen = noisy(clean).clip(0, 1)
    deep, exact = prior.denoise(np.rint(65535 * seen).astype(np.uint16), sigma=0.1), prior.denoise(seen, sigma=0.1)
    assert deep.dtype == np.uint16 and exact.dtype == np.float64
    np.testing.assert_allclose(deep / 65535, exact, atol=2e-5)


def test_the_axes_of_colours_are_orthonormal_so_that_noise_stays_as_it_is() -> None:
    np.testing.assert_allclose(AXES @ AXES.T, np.eye(3), atol=1e-12)
    np.testing.assert_allclose(AXES[1:].sum(1), 0, atol=1e-12)


def test_colours_are_restored_in_files_images_and_arrays(tmp_path: Path) -> None:
    clean = photograph("chelsea.png", "RGB")[100:170, 120:200] / 255
    seen = np.rint(255 * noisy(clean).clip(0, 1)).astype(np.uint8)
    Image.fromarray(seen).save(tmp_path / "cat.png")
    found = restore.denoise(tmp_path / "cat.png", sigma=0.1)
    assert found.mode == "RGB" and error(np.asarray(found) / 255, clean) < 0.25 * error(seen / 255, clean)
    array = restore.denoise(seen, sigma=0.1, channel_axis=-1)
    assert (array == np.asarray(found)).all()
    first = restore.denoise(torch.from_numpy(np.moveaxis(seen, -1, 0)), sigma=0.1, channel_axis=0)
    assert (first.numpy() == np.moveaxis(array, -1, 0)).all()
    mask = np.zeros(clean.shape[:2], bool)
    mask[20:24, 30:34] = True
    filled = restore.complete(seen, mask, sigma=0.1, channel_axis=-1)
    assert filled.shape == seen.shape
    assert error(filled[mask] / 255, clean[mask]) < 0.02


def test_colours_keep_what_is_grey_grey() -> None:
    """A plane without colour is nothing but noise, and ends without it."""
    clean = np.repeat(photograph("camera.png")[CROP][..., None] / 255, 3, axis=-1)
    found = restore.denoise(noisy(clean), sigma=0.1, channel_axis=-1)
    assert np.ptp(found, axis=-1).mean() < 0.03
    assert error(found, clean) < 0.2 * 0.1**2


def test_a_transparent_photograph_keeps_its_alpha(tmp_path: Path) -> None:
    seen = np.rint(255 * noisy(photograph("chelsea.png", "RGB")[100:140, 120:170] / 255).clip(0, 1)).astype(np.uint8)
    alpha = np.where(np.arange(50) < 25, 128, 255).astype(np.uint8) * np.ones((40, 1), np.uint8)
    Image.fromarray(np.dstack([seen, alpha])).save(tmp_path / "cat.png")
    found = restore.denoise(tmp_path / "cat.png", sigma=0.1, force=True)
    assert found.mode == "RGBA" and (np.asarray(found)[..., 3] == alpha).all()


# ------------------------------------------------------------------------------------------------------ what is refused


def test_without_sigma_a_photograph_is_refused_and_the_remedy_works(tmp_path: Path, clean: np.ndarray) -> None:
    seen = np.rint(255 * noisy(clean).clip(0, 1)).astype(np.uint8)
    with pytest.raises(ModelError, match="give sigma, the standard deviation of its noise"):
        restore.denoise(seen)
    colours = photograph("chelsea.png", "RGB")[100:140, 120:170]
    with pytest.raises(ModelError, match=r"in colour.*give sigma"):
        restore.denoise(colours, channel_axis=-1)
    Image.fromarray(colours).save(tmp_path / "cat.png")
    with pytest.raises(ModelError, match=r"is in colour.*give sigma"):
        restore.denoise(tmp_path / "cat.png")


def test_noise_alone_is_no_photograph() -> None:
    with pytest.raises(ModelError, match="explain"):
        restore.denoise(np.random.default_rng(0).random((64, 64)), sigma=0.02)


@pytest.mark.parametrize("sigma", [-0.1, 0, float("nan"), float("inf"), True])
def test_a_bad_sigma_is_refused(prior: restore.Restorer, clean: np.ndarray, sigma: float) -> None:
    with pytest.raises(UsageError, match="sigma"):
        prior.denoise(clean, sigma=sigma)


def test_salt_and_pepper_and_values_far_out_are_refused(prior: restore.Restorer, clean: np.ndarray) -> None:
    with pytest.raises(UsageError, match="no salt or pepper; give sigma"):
        prior.denoise(clean, 0.1)
    with pytest.raises(InputError, match="outside"):
        prior.denoise(clean + 5, sigma=0.1)


def test_other_priors_know_no_colours() -> None:
    colours = photograph("chelsea.png", "RGB")[100:140, 120:170]
    with pytest.raises(ModelError, match="knows no colours"):
        restore.denoise(colours, "tap-mnist-real", sigma=0.1, channel_axis=-1)
