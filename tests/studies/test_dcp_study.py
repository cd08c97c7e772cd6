"""The study of S-DCP: what can be reached at best on its small sets."""

from __future__ import annotations

import dcp_small as small
import numpy as np
import pytest
import torch
from dcp_small import BEST
from machines import random_rbm
from oracle import log_likelihood, log_likelihood_gradient
from scipy.optimize import minimize
from torch import Tensor

from restore.data import binarise, load


def images_of(name: str) -> Tensor:
    return torch.from_numpy(binarise(load(name).images))


def test_the_best_is_that_of_the_set_itself() -> None:
    for name, best in BEST.items():
        patterns, counts = images_of(name).unique(dim=0, return_counts=True)
        shares = counts / counts.sum()
        assert float((shares * shares.log()).sum()) == pytest.approx(best, abs=1e-6)
        assert len(patterns) == {"shifting-bar": 9, "bars-and-stripes": 14}[name]


def ascent(images: Tensor, hidden: int, seed: int) -> float:
    """Where the exact mean log-likelihood ends from one start, by L-BFGS."""
    machine = random_rbm(images.shape[1], hidden, scale=1.0, seed=seed)
    named = machine.parameters

    def slope(point: np.ndarray) -> tuple[float, np.ndarray]:
        parts = torch.from_numpy(point).split([value.numel() for value in named.values()])
        moved = machine.with_parameters(
            {name: part.view_as(named[name]) for name, part in zip(named, parts, strict=True)}
        )
        gradient = log_likelihood_gradient(moved, images)
        value = -float(log_likelihood(moved, images).mean())
        return value, -torch.cat([gradient[name].flatten() for name in named]).numpy()

    start = torch.cat([value.flatten() for value in named.values()]).numpy()
    return -float(minimize(slope, start, jac=True, method="L-BFGS-B", options={"maxiter": 1500}).fun)


@pytest.mark.thorough
@pytest.mark.parametrize(("hidden", "end"), [(4, small.REACHABLE["bars-and-stripes"]), (5, BEST["bars-and-stripes"])])
def test_the_best_ascent_ends_at_what_is_reachable(hidden: int, end: float) -> None:
    images = images_of("bars-and-stripes").double()
    assert max(ascent(images, hidden, seed) for seed in range(10)) == pytest.approx(end, abs=2e-4)
