"""Row 72: what no prior explains better than independent pixels do is not restored."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from commands import Run
from grey_priors import SPIKED, TRUNCATED, grey_prior
from machines import random_rbm, seeded
from mnist_data import mnist, needs_mnist
from PIL import Image
from priors import random_conditional, random_prior, saved_prior
from restore.inference.explained import ODDS, OFF, Observed, independent
from restore.inference.pictures import restore_pictures
from scipy.optimize import minimize
from scipy.stats import norm

import restore
from restore.errors import ModelError
from restore.inference.damage import Damage
from restore.inference.onnx.engine import OnnxEngine
from restore.inference.torch_engine import Engine
from restore.priors import RBM
from restore.priors.exact import binary_states, exact_moments
from restore.ray_data import Worker
from restore.zoo import TrainedPrior, find
from restore.zoo.description import Description
from restore.zoo.inference import Inference

CPU = torch.device("cpu")
SHAPE = (4, 5)
PIXELS = 20
ASSETS = Path(__file__).parents[2] / "assets"


def small(bias: float = 0.0, **settings: Any) -> TrainedPrior:
    """A prior that TAP solves well, and that can be enumerated."""
    machine = random_rbm(PIXELS, 4, scale=0.3, dtype=torch.float32)
    machine = machine.with_parameters(machine.parameters | {"units.0.bias": machine.visible.parameters["bias"] + bias})
    inference = Inference(**{"modes": 0, "starts": 1, "max_iter": 500, "tol": 1e-6} | settings)
    about = Description("small", SHAPE, 4, 127, "none", "none", inference=inference)
    return TrainedPrior(about, machine, exact_moments(machine).visible, torch.zeros(0, 3, dtype=torch.uint8))


def exact(prior: TrainedPrior, images: np.ndarray, p: float) -> np.ndarray:
    """log p of images (N, H, W) under flips, by enumeration."""
    states = binary_states(PIXELS, torch.zeros((), dtype=torch.float64))
    log_p = -prior.machine.to(torch.float64).free_energy(states)  # type: ignore[union-attr]
    log_p = (log_p - log_p.logsumexp(0)).numpy()
    found = []
    for image in images.reshape(-1, PIXELS):
        flipped = (states.numpy() != image).sum(1)
        found.append(np.logaddexp.reduce(log_p + flipped * np.log(p) + (PIXELS - flipped) * np.log1p(-p)))
    return np.array(found)


def shortfalls(engine: Any, images: np.ndarray, **told: Any) -> np.ndarray:
    lack = restore_pictures(engine, list(images), Damage.of(**told))[1].shortfall
    assert lack is not None
    return lack


# --- the rival ---


@pytest.mark.parametrize("p", [0.0, 0.1, 0.5, 0.9, "each"])
def test_independent_pixels_have_the_share_of_white_that_suits_the_image_best(p: Any) -> None:
    draw = np.random.default_rng(1)
    images, hidden = (draw.random((6, *SHAPE)) < 0.3).astype(float), draw.random((6, *SHAPE)) < 0.2
    level = draw.uniform(0.05, 0.9, SHAPE) if p == "each" else p
    found = independent(small().description, Observed(images, Damage(level, hidden=hidden)))
    shares = np.linspace(0, 1, 4001)[1:-1, None, None, None]
    right, wrong = np.where(images > 0, 1 - level, level), np.where(images > 0, level, 1 - level)
    with np.errstate(divide="ignore"):
        grid = np.where(hidden, 0, np.log(shares * right + (1 - shares) * wrong)).sum((2, 3)).max(0)
    # The grid ends just before certainty, and lies at most half a step beside the best share.
    assert (found >= grid - 1e-9).all()
    np.testing.assert_allclose(found, grid, atol=0.01)


@pytest.mark.parametrize("sigma", [None, 0.05, 0.4])
def test_independent_grey_pixels_are_normal_with_the_mean_and_spread_that_suit_the_image_best(sigma: Any) -> None:
    draw = np.random.default_rng(2)
    images, hidden = draw.uniform(0.1, 0.9, (3, *SHAPE)), draw.random((3, *SHAPE)) < 0.2
    found = independent(grey_prior(TRUNCATED).description, Observed(images, Damage(sigma=sigma, hidden=hidden)))
    least = max(sigma or 0, 0.01)
    for one, image, mask in zip(found, images, hidden, strict=True):

        def cost(at: np.ndarray, seen: np.ndarray = image[~mask]) -> float:
            return float(-norm.logpdf(seen, at[0], np.hypot(at[1], least)).sum())

        best = -minimize(cost, [0.4, 0.3], method="Nelder-Mead", options={"xatol": 1e-6, "fatol": 1e-9}).fun
        assert one == pytest.approx(best, abs=1e-5)


def test_independent_grey_pixels_may_be_exactly_black_where_the_priors_may() -> None:
    draw = np.random.default_rng(3)
    images = np.where(draw.random((1, *SHAPE)) < 0.6, 0, draw.uniform(0.3, 0.9, SHAPE))
    dark, light = images[images == 0], images[images > 0]
    share = len(dark) / PIXELS
    mixed = len(dark) * np.log(share / (0.01 * np.sqrt(2 * np.pi))) + len(light) * np.log(1 - share)
    wanted = mixed + norm.logpdf(light, light.mean(), light.std()).sum()
    seen = Observed(images, Damage())
    assert independent(grey_prior(SPIKED).description, seen)[0] == pytest.approx(wanted, abs=1e-6)
    plain = norm.logpdf(images, images.mean(), images.std()).sum()
    assert independent(grey_prior(TRUNCATED).description, seen)[0] == pytest.approx(plain, abs=1e-6)


# --- the comparison ---


@pytest.mark.thorough
@pytest.mark.parametrize("p", [0.01, 0.1])
def test_the_shortfall_is_that_by_enumeration(p: float) -> None:
    prior, images = small(bias=-8), np.ones((1, *SHAPE))
    # An image with less noise than .1 is also judged at .1, and the better verdict counts.
    leads = [-exact(prior, images, level) + PIXELS * np.log1p(-level) for level in (p, 0.1)]
    assert min(leads)[0] > np.log(ODDS) + OFF + np.log(PIXELS) / 2
    np.testing.assert_allclose(shortfalls(Engine.of(prior, CPU), images, p=p), min(leads), atol=0.05)


@pytest.mark.thorough
def test_images_of_the_priors_own_are_explained() -> None:
    prior = small()
    states = binary_states(PIXELS, torch.zeros((), dtype=torch.float64))
    weights = (-prior.machine.to(torch.float64).free_energy(states)).softmax(0)  # type: ignore[union-attr]
    images = states[torch.multinomial(weights, 300, True, generator=seeded())].reshape(-1, *SHAPE).numpy()
    for p in (0.05, 0.2, 0.45):
        noisy = np.where(np.random.default_rng(0).random(images.shape) < p, 1 - images, images)
        assert not shortfalls(Engine.of(prior, CPU), noisy, p=p).any()


def test_nothing_is_concluded_where_nothing_is_known() -> None:
    """A solver that has not converged, a conditional prior, certain pixels, and noise that hides everything."""
    light = np.ones((1, *SHAPE))
    stopped = Engine.of(small(bias=-8, max_iter=1, tol=0.0), CPU)
    assert np.isnan(stopped.log_partition) and not shortfalls(stopped, light, p=0.1).any()
    foreign = Engine.of(small(bias=-8), CPU)
    assert not shortfalls(foreign, light, p=0.0).any() and not shortfalls(foreign, light, p=0.5).any()
    assert shortfalls(foreign, light, p=0.0, hidden=[np.eye(*SHAPE) > 0]).all()
    seer = Engine.of(random_conditional(), CPU)
    assert np.isnan(seer.log_partition) and not shortfalls(seer, np.ones((1, 10, 12))).any()


def test_a_level_of_noise_that_is_chosen_does_not_explain_what_none_explains() -> None:
    # Pixels of this prior are independent, and white in one case of e**8.
    prior = random_prior(modes=0)
    machine = RBM.binary(torch.zeros(120, 5), torch.full((120,), -8.0), torch.zeros(5))
    about = replace(prior.description, inference=Inference(modes=0, starts=1, tol=1e-6))
    engine = Engine.of(replace(prior, description=about, machine=machine), CPU)
    found = restore_pictures(engine, [np.ones((10, 12))], Damage.of("auto"))[1]
    assert found.noise is not None and found.shortfall is not None
    white, level = 1 / (1 + np.exp(8)), found.noise.tried
    # Independent pixels are best without noise, and explain an image of one colour altogether.
    best = 120 * np.log(white * (1 - level) + (1 - white) * level).max()
    assert found.shortfall[0] == pytest.approx(120 * np.log1p(-level[0]) - best, abs=0.01)


# --- published priors ---


def inked(name: str) -> np.ndarray:
    return (np.asarray(Image.open(ASSETS / name).convert("L")) > 127).astype(float)


def foreign() -> dict[str, np.ndarray]:
    board = np.add.outer(np.arange(28) // 4, np.arange(28) // 4) % 2
    noise = np.random.default_rng(0).random((28, 28)) < 0.5
    return {
        "checkerboard": board,
        "noise": noise,
        "inverted": 1 - inked("digit-noisy.png"),
        "fish": inked("silhouette.png"),
    }


@pytest.mark.thorough
@pytest.mark.parametrize("load", [lambda: Engine.load("tap-mnist", "cpu"), lambda: OnnxEngine.load(find("tap-mnist"))])
def test_both_engines_refuse_what_is_foreign_to_digits_alone(load: Callable[[], Any]) -> None:
    images = np.stack([*foreign().values(), inked("digit-noisy.png")]).astype(float)
    lack = shortfalls(load(), images, p=0.1)
    # Each by much more than the margin of 23 nats.
    assert (lack[:-1] > 100).all() and lack[-1] == 0


@pytest.mark.thorough
@needs_mnist
def test_digits_of_the_test_set_are_explained() -> None:
    engine = OnnxEngine.load(find("tap-mnist"))
    # Other digits in each case.
    *noisy, clean = (mnist("test").images[:64] > 127).astype(float).reshape(4, 16, 28, 28)
    draw = np.random.default_rng(0)
    for images, p in zip(noisy, (0.05, 0.2, 0.4), strict=True):
        assert not shortfalls(engine, np.where(draw.random(images.shape) < p, 1 - images, images), p=p).any()
    hole = np.zeros((28, 28), bool)
    hole[7:21, 7:21] = True
    assert not shortfalls(engine, clean, hidden=[hole] * 16).any()
    # What is foreign takes the solver longest.
    assert shortfalls(engine, 1 - clean[:4], hidden=[hole] * 4).all()


# --- for the users ---

# It tells them apart as `tap-mnist` does, in half of the time.
NAME = "tap-mnist-50"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A digit, and images that are none."""
    place = tmp_path / "in"
    place.mkdir()
    for name, ink in (foreign() | {"digit": inked("digit-noisy.png")}).items():
        Image.fromarray((255 * ink).astype(np.uint8)).save(place / f"{name}.png")
    return place


@pytest.mark.thorough
@pytest.mark.parametrize("name", foreign())
def test_row72_it_is_refused(run: Run, folder: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = folder / f"{name}.png"
    assert run("denoise", path, "--model", NAME, "--p", 0.1) == 4
    (line,) = capsys.readouterr().err.splitlines()
    assert str(path) in line and f"{NAME} explains it no better than independent pixels" in line
    assert ("try --invert" in line) == (name in ("inverted", "fish")) and "resize" not in line
    output = folder / f"{name}.restored.png"
    assert not output.exists()
    assert run("denoise", path, "--model", NAME, "--p", 0.1, "--force") == 0
    assert "would be a guess" in capsys.readouterr().err and output.exists()


@pytest.mark.thorough
def test_row72_of_many_images_the_others_are_restored(
    run: Run, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ("denoise", folder, "--model", NAME, "--p", 0.1, "-o", f"{tmp_path}/out/", "--json")
    assert run(*command) == 6
    told = {Path(one["input"]).stem: one for one in map(json.loads, capsys.readouterr().out.splitlines())}
    assert {name for name, one in told.items() if "would be a guess" in one.get("error", "")} == set(foreign())
    assert [path.name for path in (tmp_path / "out").glob("*.png")] == ["digit.restored.png"]
    assert run(*command, "--force") == 0


def test_row72_holes_are_not_filled_with_guesses(run: Run, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = folder / "checkerboard.png"
    command = ("complete", path, "--mask", ASSETS / "digit-hole.png", "--model", NAME)
    assert run(*command) == 4 and "would be a guess" in capsys.readouterr().err
    assert not (folder / "checkerboard.restored.png").exists()


@pytest.mark.thorough
def test_row72_python_raises_and_warns_if_forced() -> None:
    prior = restore.load(NAME)
    images = [(255 * ink).astype(np.uint8) for ink in (inked("digit-noisy.png"), *foreign().values())]
    with pytest.raises(
        ModelError, match=rf"^the image: {NAME} explains .*; leave model out, or give p=\"auto\" if .*than told$"
    ):
        prior.denoise(images[1], 0.1)
    with pytest.raises(ModelError, match=r"^image 1 of 5, from 0: .*; so it did for 3 more .*return_solution=True"):
        prior.denoise(images, 0.1)
    with pytest.raises(ModelError, match="it looks inverted: try invert"):
        prior.denoise(images[3], 0.1)
    found, solution = prior.denoise(images, 0.1, return_solution=True)
    assert (solution.shortfall > 0).tolist() == [False, True, True, True, True]
    assert all((one == image).all() for one, image in zip(found[1:], images[1:], strict=True))
    assert (found[0] == prior.denoise(images[0], 0.1)).all()
    with pytest.warns(UserWarning, match=r"^image 1 of 5, from 0: .* would be a guess; so it did for 3 more of them$"):
        forced = prior.denoise(images, 0.1, force=True)
    assert all((one != image).any() for one, image in zip(forced[1:], images[1:], strict=True))


@pytest.mark.thorough
def test_row72_ray_data_names_the_image_or_keeps_it() -> None:
    images = np.stack([255 * inked("digit-noisy.png"), 255 * foreign()["noise"]]).astype(np.uint8)
    batch = {"image": images, "path": np.array(["a.png", "b.png"])}

    def worker(status: str | None, **told: Any) -> Worker:
        return Worker(NAME, "cpu", "onnx", "image", None, ("clean", status), {"p": 0.1, **told})

    with pytest.raises(ModelError, match=rf"^b\.png: {NAME} explains it no better .* column for the status"):
        worker(None)(batch)
    found = worker("outcome")(batch)
    assert found["outcome"].tolist() == ["converged", "unexplained"] and (found["clean"][1] == images[1]).all()
    with pytest.warns(UserWarning, match="would be a guess"):
        forced = worker("outcome", force=True)(batch)
    assert "unexplained" not in forced["outcome"] and (forced["clean"][1] != images[1]).any()


def test_row32_an_empty_mask_gives_a_copy_of_any_image(run: Run, tmp_path: Path) -> None:
    model = saved_prior(tmp_path / "models")
    Image.fromarray(np.full((10, 12), 255, np.uint8)).save(tmp_path / "light.png")
    Image.fromarray(np.zeros((10, 12), np.uint8)).save(tmp_path / "mask.png")
    assert run("complete", tmp_path / "light.png", "--mask", tmp_path / "mask.png", "--model", model) == 0
    assert (np.asarray(Image.open(tmp_path / "light.restored.png")) == 255).all()
