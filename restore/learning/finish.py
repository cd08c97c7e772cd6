"""The last additions to a prior: its own modes, as starts for its solver, and a temperature.

Modes are TAP solutions without evidence. The temperature is how much surer a solver is of pixels than it is right, on
images held out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from restore.channels import Damage, Damaged, Task
from restore.channels.values import log_odds_of
from restore.inference.torch_engine import Engine
from restore.learning.course import pages_of
from restore.priors import RBM, FullyVisible, LayeredPrior
from restore.priors.bits import pack
from restore.solvers.samplers.gibbs import gibbs_steps, layered_steps
from restore.solvers.tap import TAP
from restore.zoo import TrainedPrior
from restore.zoo.inference import Inference

# Gibbs sweeps that lead a chain away from the training image it starts at.
MODE_SWEEPS = 500

# The number of chains side by side.
CHAINS = 1000

# The number of sweeps between two looks at the clock, if time is limited.
SWEEPS_PER_LOOK = 10

# The most images restored after each damage: with 500, temperatures of published priors differ by less than .03.
TEMPERATURE_IMAGES = 200

# The bounds of the search for a temperature.
COLD, HOT = 0.5, 4.0


def own_modes(
    prior: LayeredPrior | FullyVisible,
    images: Tensor,
    inference: Inference,
    generator: torch.Generator,
    late: Callable[[], bool] | None = None,
) -> Tensor:
    """Find as many modes as an inference has: TAP solutions from samples, as packed binary images (modes, bytes).

    Gibbs chains start at training images (N, D) and leave them, so that modes are found as often as they have mass.
    """
    move: Callable[..., Tensor] = gibbs_steps if isinstance(prior, RBM | FullyVisible) else layered_steps
    at_once = MODE_SWEEPS if late is None else SWEEPS_PER_LOOK
    solver = TAP(max_iter=inference.max_iter, tol=inference.tol, damping=inference.damping)
    count = inference.modes
    blocks = list[Tensor]()
    for first in range(0, count, CHAINS):
        chosen = torch.randint(len(images), (min(CHAINS, count - first),), generator=generator, device=images.device)
        chains = images[chosen]
        for _ in range(0, MODE_SWEEPS, at_once):
            if late is None or not late():
                chains = move(prior, chains, at_once, generator)
        blocks.append(pack(solver.solve(prior, chains).means[0] > 0.5))
    return torch.cat(blocks) if blocks else pack(images[:0])


def fitted(prior: TrainedPrior, images: Tensor, tasks: Sequence[Task], seed: int) -> float:
    """The temperature at which a prior's probabilities fit the first of some images (M, D) best, after damage.

    Learning by restoring makes a solver right of images that were learnt, and so too sure of others.

    Args:
        prior: of black and white images; its own temperature is ignored.
        images: images of 0 and 1 that it has not learnt from; pages with their truth for a machine of pages.
        tasks: how to damage them; not for pages.
        seed: of the damage.
    """
    generator = torch.Generator(images.device).manual_seed(seed)
    header = replace(prior.description, temperature=1.0)
    clean = images[:TEMPERATURE_IMAGES]
    engine = Engine.of(replace(prior, description=header), clean.device)
    if header.kind.pages:
        page, clean = pages_of(clean)
        damaged = [Damaged(page, Damage())]
    else:
        damaged = [task.damage(clean, header.image_shape, generator) for task in tasks]
    odds = []
    for batch in damaged:
        means = engine.restore(batch.observed, header.channel(batch.damage)).means[0].cpu()
        values = log_odds_of(means.numpy().astype(np.float64))
        hidden = batch.damage.hidden
        if hidden is not None and not batch.damage.touched:
            # What is known for certain says nothing, and would decide alone where no pixel is hidden.
            values[~torch.as_tensor(hidden).cpu().numpy().reshape(values.shape)] = np.nan
        odds.append(values)
    return best(odds, clean.cpu().numpy() > 0.5)


def best(log_odds: Sequence[np.ndarray], white: np.ndarray) -> float:
    """The temperature that divides log-odds (M, D) of several tasks so that what is white, (M, D), is likeliest.

    The sum of the logarithms of all tasks' losses is least there, so that none decides by its size alone. Pixels
    whose log-odds are NaN do not count.

    >>> white = np.arange(10) > 0
    >>> round(best([np.full(10, 4.4)], white), 1)  # right of nine in ten, which is log-odds of 2.2
    2.0
    """
    from scipy.optimize import minimize_scalar

    every = (np.where(white, -values, values)[~np.isnan(values)] for values in log_odds)
    wrong = [values for values in every if values.size]
    if not wrong:
        return 1.0

    def loss(temperature: float) -> float:
        return float(np.sum([np.log(np.logaddexp(0, values / temperature).mean()) for values in wrong]))

    return round(float(minimize_scalar(loss, bounds=(COLD, HOT), method="bounded").x), 3)
