"""Images whose noise level nobody knows: what engines are given, what users get, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from exports import Exported
from grey_priors import grey_prior
from PIL import Image
from priors import random_conditional, random_prior
from restore.inference.noise.levels import BLOCK
from restore.inference.pictures import PictureEngine, restore_pictures

import restore
from restore.channels import BitFlip, bit_flip, gaussian_noise, salt_and_pepper
from restore.errors import InputError, UsageError
from restore.inference.damage import Damage
from restore.inference.onnx.engine import OnnxEngine
from restore.inference.torch_engine import Engine, solve
from restore.marginals import Marginals, Status

FLIPS, IMPULSES, NOISE = bit_flip.LEVELS, salt_and_pepper.LEVELS, gaussian_noise.LEVELS

ROOT = Path(__file__).parents[2]
CPU = torch.device("cpu")
SHAPE = (5, 7)
DRAW = np.random.default_rng(0)
INK = (DRAW.random((5, *SHAPE)) < 0.3).astype(np.float64)
HIDDEN = DRAW.random((5, *SHAPE)) < 0.3
GREY = np.where(DRAW.random((5, *SHAPE)) < 0.4, 0.0, DRAW.random((5, *SHAPE)))
HOLES = np.random.default_rng(1).random(INK.shape) < 0.3
PER_IMAGE = np.array([0.05, 0.1, 0.2, 0.3, 0.4])[:, None, None]


@pytest.fixture(scope="module", params=["torch", "onnx"])
def engine(request: pytest.FixtureRequest, exported: Callable[[str], Exported]) -> PictureEngine:
    """A small prior in torch, and one in onnxruntime."""
    if request.param == "torch":
        return Engine.of(random_prior(SHAPE), CPU)
    return OnnxEngine.load(exported("tap").path)


def grey_engine() -> Engine:
    return Engine.of(grey_prior(), CPU)


def same(found: Marginals, expected: list[Marginals]) -> None:
    for name in ("log_partition", "iterations", "status"):
        together = np.concatenate([getattr(alone, name) for alone in expected])
        np.testing.assert_allclose(getattr(found, name), together, rtol=1e-6, atol=1e-3, err_msg=name)
    means = np.concatenate([alone.means[0] for alone in expected])
    np.testing.assert_allclose(found.means[0], means, atol=1e-4)


# ---------------------------------------------------------------------------------------------------- level per image


@pytest.mark.thorough
@pytest.mark.parametrize("masked", [False, True])
def test_engines_take_a_level_per_image(engine: PictureEngine, masked: bool) -> None:
    images, hidden = INK, HOLES if masked else None
    found, _ = engine.marginals(images, Damage(PER_IMAGE, hidden=hidden))
    levels = PER_IMAGE.ravel().tolist()
    alone = [
        engine.marginals(images[[row]], Damage(level, hidden=None if hidden is None else hidden[[row]]))[0]
        for row, level in enumerate(levels)
    ]
    same(found, alone)


@pytest.mark.parametrize("p", [None, 0.1, PER_IMAGE], ids=["none", "one", "per-image"])
def test_a_spread_per_image(p: Any) -> None:
    engine = grey_engine()
    found, gain = engine.marginals(GREY, Damage(p, sigma=2 * PER_IMAGE, hidden=HIDDEN))
    alone = []
    for row in range(5):
        told = float(p[row, 0, 0]) if isinstance(p, np.ndarray) else p
        one, own = engine.marginals(
            GREY[[row]], Damage(told, sigma=float(2 * PER_IMAGE[row, 0, 0]), hidden=HIDDEN[[row]])
        )
        assert gain[row] == pytest.approx(own[0], abs=1e-4)
        alone.append(one)
    same(found, alone)


# ------------------------------------------------------------------------------------------------- what is restored


@pytest.mark.thorough
@pytest.mark.parametrize("masked", [False, True])
def test_the_chosen_level_is_restored_with_and_reported(engine: PictureEngine, masked: bool) -> None:
    images = INK[:2]
    hidden = list(HOLES[:2]) if masked else None
    restored, found = restore_pictures(engine, list(images), Damage.of("auto", hidden=hidden))
    noise = found.noise
    assert noise is not None and found.evidence is not None
    assert noise.evidence.shape == (2, len(FLIPS.places)) and found.model == engine.description.name
    for row, level in enumerate(noise.chosen):
        told = None if hidden is None else [hidden[row]]
        (alone,), its = restore_pictures(engine, [images[row]], Damage.of(float(level), hidden=told))
        np.testing.assert_allclose(restored[row].means, alone.means, atol=1e-3)
        assert its.noise is None and its.evidence is not None
        assert found.evidence[row] == pytest.approx(its.evidence[0], abs=1e-3)
        # The level is as good as the best that was tried, but for the solver's tolerance.
        assert its.evidence[0] > noise.evidence[row].max() - 0.05
        chosen = restored[row].level
        assert chosen is not None and (chosen.name, chosen.value) == ("p", level) and alone.level is None
        assert chosen.sentence == f"p = {level:.3g} was found"


@pytest.mark.thorough
def test_hidden_pixels_have_no_say(engine: PictureEngine) -> None:
    images, hidden = INK[:2], HOLES[:2]
    (_, found), (_, same) = (
        restore_pictures(engine, list(seen), Damage.of("auto", hidden=list(hidden)))
        for seen in (images, np.where(hidden, 1 - images, images))
    )
    assert found.noise is not None and same.noise is not None
    np.testing.assert_allclose(found.noise.chosen, same.noise.chosen, rtol=1e-6)


@pytest.mark.thorough
def test_both_engines_find_the_same_evidence(exported: Callable[[str], Exported]) -> None:
    case = exported("tap")
    graph, peer = OnnxEngine.load(case.path), Engine.of(case.trained, CPU)
    (_, found), (_, expected) = (restore_pictures(one, list(INK), Damage.of("auto")) for one in (graph, peer))
    assert found.noise is not None and expected.noise is not None
    np.testing.assert_allclose(found.noise.evidence, expected.noise.evidence, rtol=0, atol=5e-3)


@pytest.mark.thorough
def test_evidence_that_is_compared_is_good_to_a_tenth_of_a_nat() -> None:
    engine = Engine.load("tap-mnist-100", "cpu")
    image = np.asarray(Image.open(ROOT / "assets" / "digit-noisy.png").convert("L")) / 255
    _, found = restore_pictures(engine, [image], Damage.of("auto"))
    assert found.noise is not None
    # Under stronger noise it depends on the iteration limit which starts settle, and so on more than the tolerance.
    levels = found.noise.tried[found.noise.tried < 0.25]
    precise = replace(
        engine.trained,
        machine=engine.trained.machine.to(torch.float64),
        pixel_means=engine.trained.pixel_means.double(),
    )
    seen = engine.pixels(np.repeat(image[None], len(levels), 0)).double()
    evidence = BitFlip(torch.from_numpy(levels)[:, None]).evidence(seen)
    fixed = solve(precise, replace(engine.solver, tol=1e-9, max_iter=20_000), evidence)
    assert (fixed.status == int(Status.CONVERGED)).all()
    black = Damage(levels[:, None, None]).log_black(engine.description, np.repeat(image[None], len(levels), 0))
    told, wanted = found.noise.evidence[0, : len(levels)], fixed.log_partition.numpy() + black
    tried = np.isfinite(told)
    assert tried.sum() >= 3
    np.testing.assert_allclose(told[tried], wanted[tried], rtol=0, atol=0.1)


def test_many_images_are_tried_in_blocks() -> None:
    engine = Engine.of(random_prior(SHAPE), CPU)
    images = (np.random.default_rng(1).random((BLOCK + 3, *SHAPE)) < 0.4).astype(float)
    _, found = restore_pictures(engine, list(images), Damage.of("auto"))
    _, last = restore_pictures(engine, list(images[-2:]), Damage.of("auto"))
    assert found.noise is not None and last.noise is not None
    np.testing.assert_allclose(found.noise.chosen[-2:], last.noise.chosen, rtol=1e-3)


@pytest.mark.parametrize(
    ("told", "scale"),
    [
        ({"sigma": "auto"}, NOISE),
        ({"sigma": "auto", "p": 0.1}, NOISE),
        ({"p": "auto", "sigma": 0.2}, IMPULSES),
    ],
    ids=["sigma", "sigma-with-p", "p-with-sigma"],
)
def test_levels_of_grey_images(told: dict[str, Any], scale: Any) -> None:
    noisy = GREY + np.random.default_rng(2).normal(0, 0.2, GREY.shape)
    noisy = np.where(np.random.default_rng(3).random(GREY.shape) < 0.1, 1.0, noisy)
    _, found = restore_pictures(grey_engine(), list(noisy), Damage.of(**told))
    assert found.noise is not None
    np.testing.assert_array_equal(found.noise.tried, scale.levels)
    # A fifth of the scale either way: 35 pixels are few.
    typical = np.median(found.noise.chosen)
    assert 0.12 < typical < 0.3 if scale is NOISE else 0.05 < typical < 0.2


# -------------------------------------------------------------------------------------------------------- in Python


@pytest.fixture(scope="module")
def digit() -> np.ndarray:
    """The digit of the README."""
    from PIL import Image

    clean = np.asarray(Image.open(Path(__file__).parents[2] / "assets" / "digit.png")) / 255
    return (clean > 0.5).astype(float)


@pytest.mark.thorough
@pytest.mark.parametrize("p", [0.05, 0.1, 0.2])
def test_flips_of_a_digit_are_counted(p: float, digit: np.ndarray) -> None:
    flipped = np.random.default_rng(7).random((2, *digit.shape)) < p
    noisy = np.where(flipped, 1 - digit, digit)
    _, found = restore.denoise(noisy, "pcd-mnist", p="auto", return_solution=True)
    assert abs(np.median(found.noise.chosen) - flipped.mean()) < 0.03


def test_noisy_floats_may_lie_outside_where_sigma_is_chosen() -> None:
    prior = restore.Restorer(grey_engine())
    noisy = GREY.copy()
    noisy[:, 0, 0] = 3.0
    assert prior.denoise(noisy, sigma="auto").shape == GREY.shape
    noisy[:, 0, 0] = 4.5
    with pytest.raises(InputError):
        prior.denoise(noisy, sigma="auto")


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "35-text": ({"p": "some"}, r"p is a flip probability in \[0, 1\], auto or scan, not some"),
    "35-lines": ({"p": "a\nb"}, "not a.nb"),
    "35-sigma-text": ({"sigma": "some"}, "a finite number above 0, not some"),
    "35-sigma-array": ({"sigma": np.full(SHAPE, 0.1)}, "a finite number above 0"),
    "35-sigma-of-binary": ({"sigma": "auto"}, "black and white images"),
    "35-both": ({"p": "auto", "sigma": "auto"}, "cannot both be auto"),
    "35-array-of-texts": ({"p": np.full(SHAPE, "auto")}, "p is a flip probability"),
}


@pytest.mark.parametrize(("told", "says"), BAD.values(), ids=BAD)
def test_levels_that_are_none(told: dict[str, Any], says: str) -> None:
    prior = restore.Restorer(Engine.of(random_prior(SHAPE), CPU))
    with pytest.raises(UsageError, match=says) as caught:
        prior.denoise(INK, **told)
    assert "\n" not in str(caught.value)
    with pytest.raises(UsageError, match=says):
        prior.complete(INK, HIDDEN, **told)


def test_35_a_conditional_prior_has_learnt_its_noise() -> None:
    prior = restore.Restorer(Engine.of(random_conditional(SHAPE), CPU))
    for told in ({"p": "auto"}, {"sigma": "auto"}):
        with pytest.raises(UsageError) as caught:
            prior.denoise(INK, **told)
        assert "\n" not in str(caught.value)
    _, found = prior.denoise(INK, return_solution=True)
    assert found.evidence is None and found.noise is None
