"""The mean field of an Ising model as a simple restorer, against its equation."""

from __future__ import annotations

import math

import torch
from machines import seeded
from mean_field import IsingField

from restore.channels import Damage

SHAPE = (3, 4)


def test_it_ends_where_the_equation_holds() -> None:
    coupling, p = 0.3, 0.2
    image = (torch.rand(1, 12, generator=seeded(1)) < 0.5).float()
    hidden = torch.zeros(1, 12, dtype=torch.bool).index_fill(1, torch.tensor([5]), True)
    white = IsingField(SHAPE, coupling).restore(image, Damage(p, hidden=hidden.reshape(1, *SHAPE).numpy()))
    spins = (2 * white - 1).reshape(SHAPE).tolist()
    for row in range(3):
        for column in range(4):
            beside = [(row - 1, column), (row + 1, column), (row, column - 1), (row, column + 1)]
            around = sum(spins[one][other] for one, other in beside if 0 <= one < 3 and 0 <= other < 4)
            index = 4 * row + column
            told = 0.0 if index == 5 else (2 * image[0, index].item() - 1) * math.log((1 - p) / p) / 2
            # Couplings this weak make the mean field a contraction, by 4 * 0.3 at most: the damped steps are settled.
            assert math.isclose(spins[row][column], math.tanh(coupling * around + told), abs_tol=1e-3)
