"""Principal components, one set or a mixture: they are the likeliest, and can be trained, kept and used."""

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
from oracle import joint_normal
from refusals import refused
from scipy.stats import multivariate_normal
from torch import Tensor

from restore import zoo
from restore.channels import GaussianNoise
from restore.errors import TrainingError
from restore.learning.recipe.recipe import parse
from restore.learning.rules.mixture import ExpectationMaximisation, Maximisation, densities
from restore.learning.rules.principal import PrincipalComponents
from restore.learning.run.session import Session
from restore.learning.train import train
from restore.priors import RBM
from restore.solvers import solver_of
from restore.units import Gaussian
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


# --- refusals ---


@pytest.mark.parametrize(
    ("images", "hidden"),
    [(some_images(), PIXELS), (some_images(count=1), 2), (some_images(count=3), 2), (torch.full((9, PIXELS), 0.5), 1)],
    ids=["hidden", "one", "few", "constant"],
)
def test_images_without_so_many_components(images: Tensor, hidden: int) -> None:
    with refused(TrainingError, "components" if hidden == PIXELS or len(images) < 2 else "[prior] hidden"):
        state_of(images, hidden)


TABLE: dict[str, Any] = {
    "name": "mine",
    "data": {"source": "x"},
    "prior": {"hidden": HIDDEN, "visible": "truncated-gaussian", "hidden_type": "gaussian"},
    "learner": {"method": "principal"},
    "storage": "float32",
}


# --- the pipeline ---


def test_it_is_trained_kept_and_restores(tmp_path: Path) -> None:
    images = some_images(count=400).float()
    recipe = parse(TABLE)
    assert recipe.inference == Inference("mean_field", 5000, 1e-3, 0.0, modes=0, starts=1)
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


def two_kinds(count: int, pixels: int, seed: int) -> Tensor:
    """Patches that vary along one of two directions, at any level; double precision."""
    draw = seeded(seed)
    directions = torch.randn(2, pixels, generator=draw).double()
    kind = torch.randint(2, (count,), generator=draw)
    along = 0.2 * torch.randn(count, 1, generator=draw).double() * directions[kind]
    level = 0.5 + 0.2 * torch.randn(count, 1, generator=draw).double()
    return level + along + 0.02 * torch.randn(count, pixels, generator=draw).double()


def rounds(images: Tensor, learner: Maximisation) -> tuple[list[float], dict[str, Tensor]]:
    """The log-likelihood before each round, and the last state."""
    draw, found = seeded(0), []
    state = learner.begin(images, draw)
    for _ in range(learner.rounds):
        result = learner.advance(images, state, draw)
        state = dict(result.state)
        found.append(result.monitors["nats_per_pixel"])
    return found, state


@settings(max_examples=15, deadline=None)
@given(components=st.integers(1, 4), hidden=st.integers(1, 3), seed=st.integers(0, 99))
def test_the_likelihood_never_falls(components: int, hidden: int, seed: int) -> None:
    found, _ = rounds(two_kinds(60, 6, seed), Maximisation(components, hidden, 12))
    assert (np.diff(found) > -1e-9).all()


def test_it_ends_with_the_kinds_that_patches_are_of() -> None:
    """Two directions and a noise, known before: each component has one of them."""
    images = two_kinds(4000, 6, seed=7)
    _, state = rounds(images, Maximisation(2, 1, 60))
    draw = seeded(7)
    truth = torch.randn(2, 6, generator=draw).double()
    truth = truth - truth.mean(1, keepdim=True)
    found = state["loadings"][:, :, 0]
    alike = (torch.nn.functional.normalize(found) @ torch.nn.functional.normalize(truth).T).abs()
    assert sorted(alike.argmax(1).tolist()) == [0, 1] and alike.amax(1).min() > 0.99
    torch.testing.assert_close(found.norm(dim=1)[alike.argmax(0)], 0.2 * truth.norm(dim=1), rtol=0.1, atol=0)
    torch.testing.assert_close(state["noise"].sqrt(), torch.full((2,), 0.02).double(), rtol=0.1, atol=0)
    assert state["level"].item() == pytest.approx(0.2, rel=0.2)


def test_densities_are_those_of_normal_distributions_of_what_is_left_without_means() -> None:
    draw, pixels = seeded(1), 5
    images = two_kinds(50, pixels, seed=1)
    _, state = rounds(images, Maximisation(3, 2, 3))
    # A basis of what has the mean 0.
    basis = np.linalg.svd(np.ones((1, pixels)))[2][1:]
    patches = torch.randn(4, pixels, generator=draw).double()
    patches = patches - patches.mean(1, keepdim=True)
    for component, found in enumerate(densities(state)(patches).T):
        loadings = basis @ state["loadings"][component].numpy()
        covariance = loadings @ loadings.T + state["noise"][component].item() * np.eye(pixels - 1)
        expected = multivariate_normal(np.zeros(pixels - 1), covariance).logpdf(patches.numpy() @ basis.T)
        np.testing.assert_allclose(found.numpy(), expected + state["log_share"][component].item(), rtol=1e-9)


def test_the_machine_has_one_direction_more_for_the_mean() -> None:
    _, state = rounds(two_kinds(50, 6, seed=1), Maximisation(2, 1, 2))
    machine = ExpectationMaximisation().machine(state)
    assert machine.loadings.shape == (2, 6, 2)
    assert (machine.loadings[:, :, 1] == state["level"].float()).all()
    again = machine.of(machine.parameters)
    assert all((again.parameters[name] == value).all() for name, value in machine.parameters.items())


def test_too_few_patches_are_refused() -> None:
    with refused(TrainingError, "components"):
        Maximisation(4, 2, 1).begin(two_kinds(3, 6, seed=0), seeded(0))
    with refused(TrainingError, "hidden"):
        Maximisation(2, 5, 1).begin(two_kinds(30, 6, seed=0), seeded(0))
