"""A page read at two sizes: as it is, and at half its size, where thick strokes and wide stains are as others are."""

from __future__ import annotations

from dataclasses import dataclass, replace

from torch import Tensor

from restore.errors import UsageError
from restore.fields import Fields
from restore.priors import BoltzmannMachine, ConditionalDBM
from restore.priors.page import doubled, halved
from restore.solvers.loop import State, damped
from restore.solvers.mean_field import value_of
from restore.solvers.solution import Solution
from restore.solvers.up_and_down import UpAndDown

# The share of the page at half its size: with a half, twice as many of the dots of small print are lost (by hand).
SHARE = 1 / 3


@dataclass(frozen=True)
class TwoSizes(UpAndDown):
    """`UpAndDown` in a machine of pages at both sizes; the log-odds of a pixel are a weighted average of both.

    That is the normalised geometric mean of what two experts say (a logarithmic opinion pool; Heskes, NIPS 1998).

    The state is that of the page as it is, where the image's means follow from both, then that at half its size.

    >>> import torch
    >>> from restore.priors import RBM
    >>> TwoSizes().solve(RBM.binary(torch.ones(2, 1), torch.zeros(2), torch.zeros(1)))
    Traceback (most recent call last):
    ...
    restore.errors.UsageError: two_sizes is for a machine that is given a page; take up_and_down
    """

    def solve(self, machine: BoltzmannMachine, start: Tensor | None = None) -> Solution:
        # A graph's loop has what the machine has, and would else make it once more.
        page = _paged(machine)
        return super().solve(replace(page, small=page.halved), start)

    def init(self, machine: BoltzmannMachine, start: Tensor) -> State:
        page = _paged(machine)
        return (*super().init(page, start), *super().init(page.halved, halved(start, page.image_shape)))

    def step(self, machine: BoltzmannMachine, state: State) -> State:
        page = _paged(machine)
        depth = len(page.layers)
        _, *large = super().step(page, state[:depth])
        small = super().step(page.halved, state[depth:])
        mean = value_of(page.layers[0], self.fields_of_image(page, (state[0], *large, *small)))
        (mean,) = damped((mean,), (state[0],), self.damping)
        return (mean, *large, *small)

    def moments(self, machine: BoltzmannMachine, state: State) -> tuple[list[Tensor], list[Tensor]]:
        return super().moments(machine, state[: len(machine.layers)])

    def fields_of_image(self, machine: BoltzmannMachine, state: State) -> Fields:
        page = _paged(machine)
        depth = len(page.layers)
        own = page.layers[0].parameters["bias"]
        coarse = page.halved.layers[0].parameters["bias"] + state[depth + 1]
        return Fields((1 - SHARE) * state[1] + SHARE * (doubled(coarse, page.image_shape) - own))


def _paged(machine: BoltzmannMachine) -> ConditionalDBM:
    if not isinstance(machine, ConditionalDBM) or machine.page is None:
        raise UsageError("two_sizes is for a machine that is given a page; take up_and_down")
    return machine
