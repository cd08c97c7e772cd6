"""Principal components as a machine: that it is the likeliest, and that it can be trained, kept and used."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from machines import seeded
from torch import Tensor

from restore import zoo
from restore.channels import GaussianNoise
from restore.errors import TrainingError, UsageError
from restore.learning.recipe.recipe import parse
from restore.learning.rules.principal import PrincipalComponents, components_machine
from restore.learning.run.session import Session
from restore.learning.train import train
from restore.priors import RBM
from restore.priors.exact import joint_normal
from restore.solvers import MeanField, solver_of
from restore.units import Gaussian, TruncatedGaussian
from restore.zoo.inference import Inference

PIXELS, HIDDEN, COUNT = 6, 2, 40


def some_images(pixels: int = PIXELS, count: int = COUNT, seed: int = 0) -> Tensor:
    """Grey levels of about 0.5 that depend on each other."""
    draw = seeded(seed)
    mixed = torch.randn(pixels, pixels, generator=draw).double()
    return (0.5 + 0.02 * torch.randn(count, pixels, generator=draw).double() @ mixed).clamp(0, 1)


def state_of(images: Tensor, hidden: int = HIDDEN) -> dict[str, Tensor]:
    learner = PrincipalComponents(hidden)
    found = learner.advance(images, learner.begin(images, seeded()), seeded())
    assert found.verdict
    return dict(found.state)


def boundless(state: dict[str, Tensor]) -> RBM:
    """The machine in double precision, as if grey levels had no bounds."""
    layers = (Gaussian(state[f"units.{index}.bias"], state[f"units.{index}.quadratic"]) for index in (0, 1))
    return RBM(tuple(layers), (state["weights.0"],))


def log_likelihood(state: dict[str, Tensor], images: Tensor) -> Tensor:
    """Mean over images, exact, of the machine without bounds."""
    machine = boundless(state)
    return (-machine.free_energy(images) - joint_normal(machine)[0]).mean()


@settings(max_examples=25)
@given(pixels=st.integers(2, 7), hidden=st.integers(1, 6), seed=st.integers(0, 1000))
def test_its_pixels_have_the_covariance_of_the_paper_and_the_mean_of_the_images(
    pixels: int, hidden: int, seed: int
) -> None:
    hidden = min(hidden, pixels - 1)
    images = some_images(pixels, seed=seed).numpy()
    state = state_of(torch.from_numpy(images), hidden)
    _, mean, covariance = joint_normal(boundless(state))
    # Eq. 7 and 8, by singular values of the images instead of a covariance.
    _, values, rows = np.linalg.svd(images - images.mean(0))
    variances = values**2 / len(images)
    noise = variances[hidden:].mean()
    loadings = rows[:hidden].T * np.sqrt(variances[:hidden] - noise)
    wanted = loadings @ loadings.T + noise * np.eye(pixels)
    np.testing.assert_allclose(covariance[:pixels, :pixels], wanted, rtol=1e-7, atol=1e-9 * wanted.max())
    np.testing.assert_allclose(mean[:pixels], images.mean(0), rtol=1e-8)
    # What the bias of a hidden unit cancels is as large as that, and very large where images hardly leave a plane.
    np.testing.assert_allclose(mean[pixels:], 0, atol=1e-6 + 1e-8 * float(state["units.1.bias"].abs().max()))


def test_no_change_of_a_parameter_makes_the_images_likelier() -> None:
    """By finite differences: the slope is zero for every weight and bias, and for the curvature all pixels share."""
    images = some_images()
    state = state_of(images)
    best, draw = float(log_likelihood(state, images)), seeded(3)
    for name in ("weights.0", "units.0.bias", "units.0.quadratic", "units.1.bias"):
        for _ in range(5):
            along = torch.randn(state[name].shape, generator=draw).double()
            if name == "units.0.quadratic":
                along = torch.ones_like(along)
            step = 1e-4 * state[name].norm() / along.norm()
            up, down = (
                float(log_likelihood(state | {name: state[name] + sign * step * along}, images)) for sign in (1, -1)
            )
            assert up < best
            assert down < best
            assert abs(up - down) < 1e-2 * (2 * best - up - down)


def test_more_components_are_likelier_and_others_less_so() -> None:
    images = some_images()
    few, more = (float(log_likelihood(state_of(images, hidden), images)) for hidden in (1, 3))
    assert more > few
    assert few > float(log_likelihood(state_of(some_images(seed=1), 1), images))


def test_bounds_far_away_change_nothing() -> None:
    state = state_of(0.5 + 0.05 * (some_images() - 0.5))
    machine = components_machine(state)
    assert isinstance(machine.visible, TruncatedGaussian)
    channel = GaussianNoise(0.02)
    noisy = 0.5 + channel.corrupt(torch.zeros(5, PIXELS), seeded(1))
    fields = channel.evidence(noisy)
    found = MeanField(max_iter=5000, tol=1e-6).solve(machine.tilt(fields))
    _, exact, _ = joint_normal(boundless(state).tilt(type(fields)(fields.linear.double(), fields.quadratic.double())))
    # Means of mean field are exact for Gaussian units.
    assert torch.allclose(found.means[0].double(), exact[:, :PIXELS], atol=1e-4)


# --- refusals ---


@pytest.mark.parametrize(
    ("images", "hidden"),
    [(some_images(), PIXELS), (some_images(count=1), 2), (some_images(count=3), 2), (torch.full((9, PIXELS), 0.5), 1)],
    ids=["hidden", "one", "few", "constant"],
)
def test_images_without_so_many_components(images: Tensor, hidden: int) -> None:
    with pytest.raises(TrainingError):
        state_of(images, hidden)


TABLE: dict[str, Any] = {
    "name": "mine",
    "data": {"source": "x"},
    "prior": {"hidden": HIDDEN, "visible": "truncated-gaussian", "hidden_type": "gaussian"},
    "learner": {"method": "principal"},
    "storage": "float32",
}


@pytest.mark.parametrize(
    "change",
    [
        {"prior": {"hidden": 2}},
        {"prior": TABLE["prior"] | {"hidden_type": "bernoulli"}},
        {"prior": TABLE["prior"] | {"visible": "truncated-gauss-bernoulli"}},
        {"prior": TABLE["prior"] | {"family": "deep", "deeper": [3]}},
        {"prior": TABLE["prior"] | {"hidden": "auto"}},
        {"training": {"epochs": 3}},
        {"optimizer": {"rate": 0.1}},
        {"learner": {"method": "principal", "rounds": 2}},
        {"learner": {"method": "frank_wolfe"}},
    ],
    ids=["plain", "hidden", "visible", "deep", "auto", "epochs", "optimizer", "rounds", "other"],
)
def test_recipes_that_do_not_fit(change: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        parse(TABLE | change)


# --- the pipeline ---


def test_it_is_trained_kept_and_restores(tmp_path: Path) -> None:
    images = some_images(count=400).float()
    recipe = parse(TABLE)
    assert (recipe.limit, recipe.inference) == (1, Inference("mean_field", 5000, 1e-3, 0.0, modes=0, starts=1))
    trained = train(recipe, images, (2, 3), Session(tmp_path / "run", "x"))
    (record,) = (json.loads(line) for line in (tmp_path / "run" / "log.jsonl").read_text().splitlines())
    assert record["seconds"] >= 0
    assert 0 < record["explained"] < 1
    assert "in closed form" in trained.verdict
    zoo.save(tmp_path / "mine", trained.prior, "# mine\n")
    loaded = zoo.load(tmp_path / "mine")
    assert loaded.description == trained.prior.description
    for name, value in state_of(images).items():
        assert torch.equal(loaded.machine.parameters[name], value.float())
    channel = GaussianNoise(0.05)
    noisy = channel.corrupt(images, seeded(2))
    machine = loaded.machine.tilt(channel.evidence(noisy))
    found = solver_of(loaded.description.inference).solve(machine, noisy.clamp(0, 1))
    alone = loaded.pointwise.moments(channel.evidence(noisy))[0]
    errors = [float((restored - images).square().mean()) for restored in (found.means[0], alone)]
    assert errors[0] < 0.9 * errors[1]


def test_a_finished_run_is_resumed_to_the_same_prior(tmp_path: Path) -> None:
    images = some_images().float()
    first, again = (
        train(parse(TABLE), images, (2, 3), Session(tmp_path, "x", resume=resume)).prior.machine.parameters
        for resume in (False, True)
    )
    assert all(torch.equal(value, again[name]) for name, value in first.items())
