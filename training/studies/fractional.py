"""Do fractional RBMs pay? The gradient in α, and powers of its own for each unit (FW, sec. 3.1 and 3.3).

Digits shrunk to 4x4 pixels have 65,536 states, over which all is exact: a machine grows by the unit of largest gain,
and then the bias alone, the bias and α, or the bias and all powers go to their maximum. The problem is concave, so
there is one. For a published prior the gain of α is predicted to second order from samples of it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count

import numpy as np
import torch
from fractional_rbm import FractionalRBM
from harness import Asked, main, publish, read, write
from opened import plain_machine
from oracle import binary_states
from torch import Tensor

from restore.console import say
from restore.evaluation.card import table
from restore.inference.torch_engine import Engine
from restore.priors import RBM
from restore.solvers.samplers.gibbs import gibbs_steps
from restore.units import log_one_plus_exp

# Images that learn and are tested, sides of the blocks that become a pixel, and the sizes at which machines are shown.
IMAGES, BLOCK, SIZES = 10_000, 7, (5, 10, 20)

# The penalty on a unit, λ: small beside the gains of units here, as that of growth is beside those on whole digits.
PENALTY = 1e-4

# What is optimised beside the bias once a unit is added.
FREE = ("nothing", "α", "all powers")

# The least power.
LEAST = 0.01

# The published prior whose α is looked at, chains, and sweeps from the images.
PRIOR, CHAINS, SWEEPS = "fw-mnist", 1000, 300

# Powers with which proposals are tried, some chains and sweeps each.
POWERS, TRIED, PROPOSALS = (0.9, 0.99, 1.01), 100, 20


@dataclass(frozen=True)
class Grown:
    """A grown machine: what was free, its units and powers, and its exact mean log-likelihoods in nats."""

    free: str
    units: int
    least: float
    most: float
    training: float
    test: float


@dataclass(frozen=True)
class Slope:
    """A published prior in which α / t is free.

    Attributes:
        prior: its name.
        gradient, error: of the log-likelihood in α / t at 1, in nats, and its standard error.
        gain: what α could gain to second order, in nats.
        accepted: share of the proposals accepted (sec. 3.3) with each of `POWERS` for all units.
    """

    prior: str
    gradient: float
    error: float
    gain: float
    accepted: tuple[float, ...]


@dataclass(frozen=True)
class Machine:
    """Weights of the units, bias last, (H, D + 1), their powers and the visible bias, as arrays."""

    units: np.ndarray
    powers: np.ndarray
    bias: np.ndarray

    @property
    def prior(self) -> FractionalRBM:
        units, bias, powers = (torch.from_numpy(part) for part in (self.units, self.bias, self.powers))
        return FractionalRBM(RBM.binary(units[:, :-1].T.contiguous(), bias, units[:, -1].contiguous()), powers)


def small(images: Tensor) -> Tensor:
    """Digits (N, 784) with a pixel for each block, 1 if a quarter of it is ink."""
    blocks = images.view(-1, 28 // BLOCK, BLOCK, 28 // BLOCK, BLOCK).mean((2, 4))
    return (blocks.flatten(1) > 0.25).double()


def grown(images: Tensor, free: str, seed: int) -> Iterator[Machine]:
    """The machine after each round, without end."""
    from scipy.optimize import minimize

    states = binary_states(images.shape[1], images)
    draw = torch.Generator().manual_seed(seed)
    mean = images.mean(0).numpy()
    machine = Machine(np.empty((0, len(mean) + 1)), np.empty(0), np.log((mean + 1e-3) / (1 - mean + 1e-3)))
    with_one = [torch.cat([visible, torch.ones(len(visible), 1).double()], 1) for visible in (images, states)]

    def gain(point: np.ndarray) -> tuple[float, np.ndarray]:
        """λ/2 |w|² minus the exact gain of a unit of power 1, and its gradient."""
        weights = torch.from_numpy(point)
        at_images, at_states = (visible @ weights for visible in with_one)
        tilted = model.log() + log_one_plus_exp(at_states)
        after = torch.softmax(tilted, 0) * torch.sigmoid(at_states)
        value = float(torch.logsumexp(tilted, 0) - log_one_plus_exp(at_images).mean())
        pull = torch.sigmoid(at_images) @ with_one[0] / len(images)
        slope = PENALTY * weights + after @ with_one[1] - pull
        return value + PENALTY / 2 * float(weights @ weights), slope.numpy()

    for _ in count():
        prior = machine.prior
        model = torch.softmax(-prior.free_energy(states), 0)
        starts = [torch.randn(len(mean) + 1, generator=draw).double().numpy() for _ in range(3)]
        unit = min((minimize(gain, start, jac=True, method="L-BFGS-B") for start in starts), key=lambda one: one.fun).x
        machine = settled(
            Machine(np.vstack([machine.units, unit]), np.append(machine.powers, 1.0), machine.bias), images, free
        )
        yield machine


def settled(machine: Machine, images: Tensor, free: str) -> Machine:
    """The machine at its maximum in the bias and in what else is free."""
    from scipy.optimize import minimize

    states = binary_states(images.shape[1], images)
    prior, pixels = machine.prior, images.shape[1]
    features = [torch.cat([visible, prior.softplus(visible)], 1) for visible in (images, states)]
    wanted = features[0].mean(0)
    units = len(machine.powers)

    def spread(point: np.ndarray) -> np.ndarray:
        """All parameters, from those that are free."""
        powers = {"nothing": np.ones(units), "α": np.full(units, point[-1]), "all powers": point[pixels:]}[free]
        return np.concatenate([point[:pixels], powers])

    def loss(point: np.ndarray) -> tuple[float, np.ndarray]:
        at = torch.from_numpy(spread(point))
        log_weights = features[1] @ at
        slope = (torch.softmax(log_weights, 0) @ features[1] - wanted).numpy()
        inner = {"nothing": slope[:0], "α": slope[pixels:].sum(keepdims=True), "all powers": slope[pixels:]}[free]
        value = float(torch.logsumexp(log_weights, 0) - at @ wanted)
        return value, np.concatenate([slope[:pixels], inner])

    start = machine.powers[: {"nothing": 0, "α": 1, "all powers": units}[free]]
    bounds: list[tuple[float | None, None]] = [(None, None)] * pixels + [(LEAST, None)] * len(start)
    point = np.concatenate([machine.bias, start])
    found = spread(minimize(loss, point, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": 500}).x)
    return Machine(machine.units, found[pixels:], found[:pixels])


def likelihood(prior: FractionalRBM, images: Tensor) -> float:
    """The exact mean log-likelihood of images (N, D), in nats."""
    log_z = torch.logsumexp(-prior.free_energy(binary_states(images.shape[1], images)), 0)
    return float(-prior.free_energy(images).mean() - log_z)


@torch.inference_mode()
def slope(asked: Asked, name: str) -> Slope:
    """The gradient in α / t of a published prior at 1, and its gain to second order: g² / 2 over the variance."""
    engine = Engine.load(name, "cpu")
    machine = plain_machine(engine, "samples")
    assert isinstance(machine, RBM)
    images = asked.images("mnist", "train", IMAGES)
    draw = torch.Generator().manual_seed(asked.seed)
    chains = gibbs_steps(machine, images[torch.randperm(len(images), generator=draw)[:CHAINS]], SWEEPS, draw)
    prior = FractionalRBM(machine, torch.ones(machine.hidden.size))
    data, model = (prior.softplus(visible).double().sum(1) for visible in (images, chains))
    gradient, variance = float(data.mean() - model.mean()), float(model.var())
    error = math.sqrt(float(data.var()) / len(data) + variance / len(model))
    accepted = [
        float(FractionalRBM(machine, power * prior.powers).metropolis_steps(chains[:TRIED], PROPOSALS, draw)[1])
        for power in POWERS
    ]
    return Slope(name, gradient, error, gradient**2 / (2 * variance), tuple(accepted))


def as_table(found: list[Grown]) -> str:
    """Markdown: a row per size and what is free."""
    rows = [
        [str(one.units), one.free, f"{one.least:.2f} ... {one.most:.2f}", f"{one.training:.4f}", f"{one.test:.4f}"]
        for one in sorted(found, key=lambda one: (one.units, FREE.index(one.free)))
    ]
    return table(["units", "free beside the bias", "powers", "training, nats", "test, nats"], rows)


def study(asked: Asked) -> None:
    """Grow small fractional machines exactly; write fractional.json and a table."""
    path, settings = asked.records / "fractional.json", {"seed": asked.seed}
    known = read(path, settings, grown=Grown, slopes=Slope)
    found: list[Grown] = known["grown"]
    slopes: list[Slope] = known["slopes"]

    def keep() -> None:
        write(path, settings | {"grown": found, "slopes": slopes})

    images, test = (small(asked.images("mnist", part, IMAGES)) for part in ("train", "test"))
    for free in FREE:
        if any(one.free == free for one in found):
            continue
        for units, machine in enumerate(grown(images, free, asked.seed), 1):
            if units in SIZES:
                values = (likelihood(machine.prior, part) for part in (images, test))
                powers = machine.powers
                found.append(Grown(free, units, float(powers.min()), float(powers.max()), *values))
                say(f"{found[-1]}")
            if units == max(SIZES):
                break
        keep()
    if not slopes:
        slopes.append(slope(asked, PRIOR))
        say(f"{slopes[-1]}")
        keep()
    publish(asked, {"fractional": as_table(found)})


if __name__ == "__main__":
    main(study)
