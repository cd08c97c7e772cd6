"""The temperature of a prior: where held-out images are likeliest, and in restoring; and a whole training."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from machines import with_weights
from priors import random_prior

import restore
from restore import zoo
from restore.channels import parse_task
from restore.fields import Fields
from restore.inference.torch_engine import Engine, solve
from restore.learning.finish import best, fitted
from restore.learning.recipe.plan import usual
from restore.priors import RBM
from restore.solvers import HardMeanField, MeanField, Solution, UpAndDown, solver_of
from restore.zoo import TrainedPrior

SHAPE = (4, 5)
TASKS = (parse_task("flip:0.1"), parse_task("flip:0.3"))


def told(odds: np.ndarray, temperature: float) -> np.ndarray:
    return 1 / (1 + np.exp(-odds / temperature))


@pytest.mark.parametrize("temperature", [0.7, 1.0, 1.8])
def test_pixels_that_come_up_as_often_as_a_temperature_says_are_fitted_by_it(temperature: float) -> None:
    draw = np.random.default_rng(0)
    odds = [draw.normal(0, spread, (500, 200)) for spread in (1, 3)]
    alone = [best([each], draw.random(each.shape) < told(each, temperature)) for each in odds]
    # The standard error of 1/T is (sum of z² p (1 - p))^-1/2, here below .007.
    np.testing.assert_allclose(alone, temperature, rtol=0.04)


def test_no_task_decides_by_the_size_of_its_loss() -> None:
    """The best temperature is the minimum over a grid of the product of the losses."""
    draw = np.random.default_rng(1)
    white = draw.random((30, 40)) < 0.5
    signs = np.where(white, 1, -1)
    odds = [signs * draw.normal(mean, mean, white.shape) for mean in (0.5, 8)]
    grid = np.geomspace(0.5, 4, 4001)
    right = np.stack([[told(signs * each, t) for t in grid] for each in odds])
    losses = -np.log(right).mean((2, 3))
    assert best(odds, white) == pytest.approx(grid[losses.prod(0).argmin()], rel=2e-3)
    # The sum, which the large one decides, is least elsewhere.
    assert abs(np.log(grid[losses.sum(0).argmin()] / best(odds, white))) > 0.1


def test_images_without_an_answer_do_not_count() -> None:
    draw = np.random.default_rng(2)
    odds = draw.normal(0, 3, (20, 30))
    white = draw.random(odds.shape) < told(odds, 1.5)
    lost = np.concatenate([odds, np.full((1, 30), np.nan)])
    assert best([lost], np.concatenate([white, white[:1]])) == best([odds], white)


def test_what_no_task_left_open_does_not_count() -> None:
    draw = np.random.default_rng(2)
    odds = draw.normal(0, 3, (20, 30))
    white = draw.random(odds.shape) < told(odds, 1.5)
    certain = np.full(odds.shape, np.nan)
    assert best([odds, certain], white) == best([odds], white) > 1.2
    assert best([certain], white) == 1


def prior(temperature: float = 1.0) -> TrainedPrior:
    made = random_prior(SHAPE, modes=0)
    # So strong that it is far too sure of other images than its own.
    made = replace(made, machine=with_weights(made.machine, 3.0))
    inference = replace(made.description.inference, starts=1, solver="mean_field", tol=1e-6)
    return replace(made, description=replace(made.description, inference=inference, temperature=temperature))


def test_it_is_fitted_to_what_the_prior_restores_whatever_its_own() -> None:
    clean = (torch.rand(50, 20, generator=torch.Generator().manual_seed(3)) < 0.5).float()
    found = fitted(prior(), clean, TASKS, 4)
    assert found == fitted(prior(2.0), clean, TASKS, 4)
    generator = torch.Generator().manual_seed(4)
    damaged = [task.damage(clean, SHAPE, generator) for task in TASKS]

    def loss(temperature: float) -> float:
        engine = Engine.of(prior(temperature), torch.device("cpu"))
        means = (engine.restore(each.observed, each.damage.channel(grey=False)).means[0].double() for each in damaged)
        return float(sum(torch.nn.functional.binary_cross_entropy(mean, clean.double()).log() for mean in means))

    assert found > 1.1
    assert loss(found) < min(loss(0.97 * found), loss(1.03 * found), loss(1.0))


def test_a_temperature_divides_the_log_odds_of_pixels_alone() -> None:
    evidence = TASKS[0].damage(torch.ones(3, 20), SHAPE, torch.Generator().manual_seed(0))
    fields = evidence.damage.channel(grey=False).evidence(evidence.observed)

    def solved(temperature: float) -> Solution:
        made = prior(temperature)
        return solve(made, solver_of(made.description.inference), fields)

    plain, hot = solved(1.0), solved(1.6)
    torch.testing.assert_close(1.6 * torch.logit(hot.means[0]), torch.logit(plain.means[0]), rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(hot.variances[0], hot.means[0] * (1 - hot.means[0]))
    for name in ("means", "variances"):
        assert torch.equal(getattr(hot, name)[1], getattr(plain, name)[1])


def test_log_odds_that_a_mean_cannot_hold_are_divided_all_the_same() -> None:
    """Of log-odds of 40 a mean in single precision is 1, and of -40 it is not 0."""
    machine = RBM.binary(torch.tensor([[40.0], [-40.0]]), torch.zeros(2), torch.full((1,), 50.0)).tilt(
        Fields(torch.zeros(1, 2))
    )
    solver = MeanField(damping=0.0)
    solution = solver.solve(machine)
    assert solution.means[0].tolist()[0][0] == 1.0
    hot = replace(solver, temperature=4.0).solve(machine)
    torch.testing.assert_close(hot.means[0].log(), torch.tensor([[-4.54e-5, -10.00005]]), rtol=1e-3, atol=1e-7)


@pytest.mark.usefixtures("without_graph")
def test_what_learns_by_restoring_gets_one_if_images_are_held_out(tmp_path: Path) -> None:
    """Squares of noise cannot be learnt, and a prior that believes to know them is too sure."""
    images = np.random.default_rng(5).random((40, 8, 8)) < 0.5
    restore.train(images, epochs=5, run=tmp_path / "noise", device="cpu")
    header = zoo.load(tmp_path / "noise").description
    assert header.method == "matched" and header.inference.starts == 1
    assert header.temperature > 1.02
    assert zoo.card_of(zoo.find(str(tmp_path / "noise"))).count(str(header.temperature)) == 1


# --- restoring what was learnt ---


def blocks(count: int, shape: tuple[int, int], seed: int) -> np.ndarray:
    """Images of squares with sides of 4 pixels, each black or white."""
    draw = np.random.default_rng(seed)
    coarse = draw.random((count, shape[0] // 4, shape[1] // 4)) < 0.5
    return coarse.repeat(4, 1).repeat(4, 2)


@pytest.mark.thorough
def test_it_restores_what_it_has_learnt() -> None:
    # Without a run there is no graph, which would take longest.
    prior = restore.train(blocks(80, (12, 12), 0), epochs=60, device="cpu")
    header = prior.description
    layers = usual("convolutional")["prior"]["layers"]
    assert ([[*layer] for layer in header.layers], header.method) == (layers, "matched")
    clean = blocks(40, (12, 12), 1)
    flipped = np.random.default_rng(2).random(clean.shape) < 0.1
    restored = prior.denoise(clean ^ flipped, p=0.1)
    # A tenth of the pixels was wrong; a median of 3x3 pixels rounds all corners.
    assert (restored != clean).mean() < 0.5 * flipped.mean()


def test_dividing_by_a_temperature_changes_log_odds_alone_however_many_iterations_there_were() -> None:
    """What is computed after the last iteration, from its answer, has not been learnt."""
    machine = random_prior(SHAPE).machine
    evidence = Fields(torch.randn(6, 20, generator=torch.Generator().manual_seed(3)))
    tilted, start = machine.tilt(evidence), torch.sigmoid(evidence.linear)
    for kind in (MeanField, UpAndDown, HardMeanField):
        for count in (1, 2):
            solver = kind(max_iter=count, tol=0.0, damping=0.0)
            plain, divided = (replace(solver, temperature=by).solve(tilted, start) for by in (1.0, 1.7))
            torch.testing.assert_close(
                torch.logit(divided.means[0].double()) * 1.7, torch.logit(plain.means[0].double()), atol=1e-4, rtol=1e-4
            )
            torch.testing.assert_close(divided.variances[0], divided.means[0] * (1 - divided.means[0]))
