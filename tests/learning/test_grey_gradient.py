"""Learning from grey levels: gradients against finite differences, the gauge of a pixel, and trainings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from directions import assert_close, grey_images, moved_by
from machines import random_machine, seeded
from torch import Tensor

from restore.learning.gradients.centring import GreyScale, centred
from restore.learning.recipe.recipe import Recipe, parse
from restore.learning.rules.tap_likelihood import TAPLikelihood
from restore.learning.run.session import Session
from restore.learning.train import train
from restore.priors import RBM
from restore.registry import UNITS
from restore.solvers.tap import cavity_fields
from restore.units import Bernoulli, Spiked
from restore.units.layers import blank

VISIBLE = ("truncated", "spiked-truncated")

# --- the gauge ---


@pytest.mark.parametrize("kind", VISIBLE)
@pytest.mark.parametrize("rate", [0.01, 1.0])
@pytest.mark.parametrize("unit", [0.2, 0.7])
def test_a_grey_scale_is_a_plain_step_in_the_parameters_of_rescaled_pixels(kind: str, rate: float, unit: float) -> None:
    machine, images = random_machine((kind, 4), ("bernoulli", 3), scale=0.6), grey_images(6, 4)
    assert isinstance(machine, RBM)
    mu, centre = torch.rand(2, 4, generator=seeded(1), dtype=torch.float64)
    lam = torch.rand(3, generator=seeded(2), dtype=torch.float64)
    named = machine.parameters

    def plain(told: dict[str, Tensor]) -> RBM:
        # exp(slope y - curvature y²/2 + (y - nu)ᵀ weights (h - lam) + cᵀh) for y = (x - centre) / unit and
        # nu = (mu - centre) / unit, multiplied out in x; constants in x and h go into log Z.
        weights = told["weights"] / unit
        curvature = told["curvature"] / unit**2
        bias = told["slope"] / unit + curvature * centre - weights @ lam
        rest = {"presence": told["presence"]} if "presence" in told else {}
        hidden = told["hidden"] - weights.T @ mu
        visible = machine.visible.with_parameters({"bias": bias, "quadratic": curvature, **rest})
        return RBM((visible, Bernoulli(hidden)), (weights,))

    start = {"weights": named["weights.0"] * unit, "curvature": named["units.0.quadratic"] * unit**2}
    start["slope"] = unit * (named["units.0.bias"] + named["weights.0"] @ lam - named["units.0.quadratic"] * centre)
    start["hidden"] = named["units.1.bias"] + named["weights.0"].T @ mu
    if "units.0.presence" in named:
        start["presence"] = named["units.0.presence"]
    assert_close(plain(start).parameters, named, 1e-12)

    # The part of the likelihood that images decide is enough: both halves of a gradient transform alike.
    leaves = {name: value.clone().requires_grad_() for name, value in start.items()}
    score = -plain(leaves).free_energy(images).mean()
    slopes = dict(zip(leaves, torch.autograd.grad(score, list(leaves.values())), strict=True))
    # Constants that the rescaled form has beside: (y - nu)ᵀ weights lam at x = 0, and what the slab is there.
    wanted = plain({name: value + rate * slopes[name] for name, value in start.items()})
    with torch.enable_grad():
        own = {name: value.clone().requires_grad_() for name, value in named.items()}
        score = -machine.with_parameters(own).free_energy(images).mean()
        gradient = dict(zip(own, torch.autograd.grad(score, list(own.values())), strict=True))
    got = moved_by(machine, centred(machine.couplings, gradient, (mu, lam), GreyScale(unit, centre)), rate)
    assert_close(got.parameters, wanted.parameters, 1e-9)


def test_the_centre_is_the_mean_of_the_pixels_that_are_not_black() -> None:
    machine, images = random_machine(("spiked-truncated", 3), ("bernoulli", 2)), grey_images(20, 3)
    images[:, 2] = 0
    state = TAPLikelihood(grey_unit=0.2).init(machine, images, seeded())
    wanted = [float(column[column > 0].mean()) if bool((column > 0).any()) else 0.0 for column in images.T]
    assert state["centre"].tolist() == pytest.approx(wanted)
    assert "centre" not in TAPLikelihood().init(machine, images, seeded())


def test_a_grey_unit_is_what_the_step_is_taken_in() -> None:
    machine, images = random_machine(("spiked-truncated", 4), ("bernoulli", 3)), grey_images(9, 4)
    learner, plain = TAPLikelihood(grey_unit=0.3), TAPLikelihood(centring=False)
    state = learner.init(machine, images, seeded())
    step = learner.step(machine, images, state, seeded())
    raw = plain.step(machine, images, plain.init(machine, images, seeded()), seeded()).gradient
    offsets = [step.state["offset.0"], step.state["offset.1"]]
    assert_close(step.gradient, centred(machine.couplings, raw, offsets, GreyScale(0.3, state["centre"])), 1e-14)


# --- starts ---


@pytest.mark.parametrize("kind", VISIBLE)
def test_redrawn_starts_are_drawn_from_the_cavity_marginals(kind: str) -> None:
    machine, images = random_machine((kind, 3), ("bernoulli", 4), scale=0.8), grey_images(50, 3)
    learner = TAPLikelihood(starts="redrawn", solutions=4000, iterations=50, damping=0.3)
    state = learner.init(machine, images, seeded())
    state = learner.step(machine, images, state, seeded()).state
    kept = tuple(state[f"solution.{index}"] for index in range(4))
    drawn = learner._start(machine, images, state, seeded(7))[0]
    fields = cavity_fields(machine, 0, list(kept[:2]), list(kept[2:]))
    means, variances = machine.layers[0].moments(fields)
    room = 4 / np.sqrt(len(drawn))
    torch.testing.assert_close(drawn.mean(0), means.mean(0), rtol=0, atol=room * 0.5)
    # The machine has one solution, so that draws vary as a pixel does.
    torch.testing.assert_close(drawn.var(0), variances.mean(0), rtol=0, atol=room * 0.25)
    black = (drawn == 0).double().mean(0)
    if isinstance(machine.layers[0], Spiked):
        present = machine.layers[0].expected_statistics(fields)["presence"].mean(0)
        torch.testing.assert_close(black, 1 - present, rtol=0, atol=room * 0.5)
    else:
        assert not black.any()


# --- whole trainings ---


SHAPE = (4, 4)


def stripes(count: int, seed: int = 0) -> Tensor:
    """Images of 4x4 pixels that have one or two light rows on black, (N, 16)."""
    draw = seeded(seed)
    rows = torch.rand(count, 4, 1, generator=draw) < 0.4
    levels = 0.6 + 0.3 * torch.rand(count, 4, 4, generator=draw)
    return torch.where(rows, levels, 0.0).flatten(1)


def recipe(epochs: int = 3, **tables: Any) -> Recipe:
    made: dict[str, Any] = {
        "name": "stripes",
        "seed": 1,
        "storage": "float32",
        "data": {"source": "stripes"},
        "prior": {"hidden": 3, "visible": "truncated-gauss-bernoulli"},
        "learner": {"method": "tap", "starts": "redrawn", "grey_unit": 0.3, "solutions": 50, "iterations": 5},
        "training": {"epochs": epochs, "batch": 25},
        "optimizer": {"rate": 0.02, "weight_decay": 0.0},
        "inference": {"max_iter": 200, "tol": 1e-3},
    }
    return parse({key: made.get(key, {}) | tables[key] if isinstance(tables.get(key), dict) else tables.get(key, value)
                  for key, value in (made | tables).items()})  # fmt: skip


@pytest.mark.parametrize("hidden", sorted(UNITS))
@pytest.mark.parametrize("deeper", [[], [2]], ids=["rbm", "deep"])
def test_every_kind_of_hidden_unit_can_be_trained_and_kept(hidden: str, deeper: list[int], tmp_path: Path) -> None:
    family = {"family": "deep", "deeper": deeper} if deeper else {}
    settings = recipe(2, prior={"hidden_type": hidden, "weight_scale": 0.1} | family)
    prior = train(settings, stripes(50), SHAPE, Session(tmp_path, "x")).prior
    header = prior.description
    assert header.kind.unit_kinds(header, header.image_shape) == (
        "truncated-gauss-bernoulli",
        *[hidden] * (1 + len(deeper)),
    )
    named = prior.machine.parameters
    assert all(bool(torch.isfinite(value).all()) for value in named.values())
    # Every parameter has learnt something of its own.
    assert len({value.data_ptr() for value in named.values()}) == len(named)
    start = blank(hidden, 3, named["weights.0"]).parameters
    assert not any(torch.equal(named[f"units.1.{name}"], value) for name, value in start.items())
