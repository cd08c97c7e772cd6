"""Base of solvers by moments: settings, starting point, order of updates, and the loop.

Such a solver computes one layer's new mean and variance from the state of all layers. A sweep updates the odd layers
and then the even ones; holding one side fixed while the other moves makes the iteration of a bipartite machine converge
(TAP machine, Alg. 1). The single layer of a fully visible machine is updated as a whole, from the old values of all
units; with strong couplings it needs damping to converge.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field

import torch
from torch import Tensor

from restore.fields import Fields
from restore.priors import BoltzmannMachine
from restore.priors.stability import stable
from restore.solvers.loop import Change, State, average_change, check_settings, damped, iterate, largest_change
from restore.solvers.messages import bp_kernel
from restore.solvers.solution import Solution
from restore.tracing import tracing
from restore.units import Bernoulli
from restore.zoo.inference import DAMPING


def _fusible(state: Tensor) -> bool:
    """True if Triton's kernel can update units in this state, which no gradient passes."""
    return (
        state.is_cuda
        and state.dtype == torch.float32
        and not torch.is_grad_enabled()
        and bp_kernel.usable(state.device)
    )


def first_means(machine: BoltzmannMachine, start: Tensor | None) -> Tensor:
    """Visible means to start from, (batch, D): the given ones, or the image's units without neighbours.

    NaN, which ends as diverged, if the machine is unstable: without biases a solver would stand still at 0.
    """
    if start is None:
        start, _ = machine.layers[0].moments(Fields(torch.zeros(1, 1).to(machine.couplings[0].weights)))
    # A prior that is exported has been checked.
    return start if tracing() else torch.where(stable(machine).unsqueeze(-1), start, torch.nan)


def mean_field_state(machine: BoltzmannMachine, start: Tensor) -> State:
    """The state that follows from visible means (batch, D): means of all layers, then variances of all layers.

    The variances of the image are zero, as for data (TAP machine, Alg. 1). Each other layer is the mean-field answer to
    the layer before.
    """
    means = [start]
    variances = [torch.zeros_like(start)]
    # Not strict: the coupling of a fully visible machine has no other layer.
    for layer, coupling in zip(machine.layers[1:], machine.couplings, strict=False):
        mean, variance = layer.moments(Fields(coupling.up(means[-1])))
        means.append(mean)
        variances.append(variance)
    return (*means, *variances)


@dataclass(frozen=True)
class LayeredMap(ABC):
    """A fixed-point solver by moments; `watched` decides when it has converged.

    The log-odds of the image's bits are divided by `temperature`. Without `weighs` log Z is NaN: in a convolutional
    machine it would take longer than the iterations.
    """

    max_iter: int = 1000
    tol: float = 1e-5
    damping: float = DAMPING
    weighs: bool = field(default=True, repr=False)
    temperature: float = field(default=1.0, repr=False)

    def __post_init__(self) -> None:
        check_settings(self.max_iter, self.tol, self.damping)

    def init(self, machine: BoltzmannMachine, start: Tensor) -> State:
        """The state that starts from visible means (batch, D)."""
        return mean_field_state(machine, start)

    def moments(self, machine: BoltzmannMachine, state: State) -> tuple[list[Tensor], list[Tensor]]:
        """Means and variances of every layer in a state."""
        depth = len(machine.layers)
        return list(state[:depth]), list(state[depth:])

    @abstractmethod
    def inputs(
        self, machine: BoltzmannMachine, layer: int, means: list[Tensor], variances: list[Tensor]
    ) -> tuple[Tensor, Tensor | None]:
        """W a from the neighbours' means, and (W∘W) c from their variances if the method uses them."""

    @abstractmethod
    def fields(self, machine: BoltzmannMachine, layer: int, means: list[Tensor], variances: list[Tensor]) -> Fields:
        """The fields on one layer from its neighbours; with these its units have their marginals."""

    def fields_of_image(self, machine: BoltzmannMachine, state: State) -> Fields:
        """The fields on the image in a state."""
        depth = len(machine.layers)
        return self.fields(machine, 0, list(state[:depth]), list(state[depth:]))

    @abstractmethod
    def log_partition(self, machine: BoltzmannMachine, means: list[Tensor], variances: list[Tensor]) -> Tensor:
        """The method's estimate of log Z at a fixed point; shape (batch,), float64."""

    def step(self, machine: BoltzmannMachine, state: State) -> State:
        depth = len(machine.layers)
        means, variances = list(state[:depth]), list(state[depth:])
        for layer in (*range(1, depth, 2), *range(0, depth, 2)):
            old = (means[layer], variances[layer])
            units = machine.layers[layer]
            if isinstance(units, Bernoulli) and _fusible(old[0]):
                from restore.solvers.update_triton import updated

                inputs = self.inputs(machine, layer, means, variances)
                with torch.cuda.device_of(old[0]):
                    means[layer], variances[layer] = updated(units.bias, *inputs, *old, self.damping)
            else:
                new = units.moments(self.fields(machine, layer, means, variances))
                means[layer], variances[layer] = damped(new, old, self.damping)
        return (*means, *variances)

    def stepped(self, machine: BoltzmannMachine, state: State, count: int) -> State:
        """The state after exactly `count` iterations, through which gradients flow."""
        for _ in range(count):
            state = self.step(machine, state)
        return state

    def watched(self, machine: BoltzmannMachine) -> Change:
        """Change of a state: the largest of all means, or of all means and variances.

        The variances of binary units follow their means. Those of other units can still move, even without bound, while
        the means rest: in a machine without biases the means are 0 from the start.

        Where a coupling fits images of any size it is the average change of the pixels' means: among a million pixels
        one always moves.
        """
        if machine.couplings[0].any_size:
            return average_change
        binary = all(isinstance(layer, Bernoulli) for layer in machine.layers)
        return largest_change(len(machine.layers) * (1 if binary else 2))

    def tempered(self, machine: BoltzmannMachine, state: State) -> tuple[Tensor, Tensor]:
        """Means and variances of layer 0, whose units are bits, with their log-odds divided by the temperature.

        (Guo et al., ICML 2017, section 4.2.) The log-odds are those of the fields that gave the state: those of a mean
        near 1 are lost to rounding, and a library's sigmoid may exceed 1.
        """
        units = machine.layers[0]
        assert isinstance(units, Bernoulli)  # a header with a temperature says so
        mean = torch.sigmoid(units.log_odds(self.fields_of_image(machine, state)) / self.temperature)
        return mean, mean * (1 - mean)

    def solve(self, machine: BoltzmannMachine, start: Tensor | None = None) -> Solution:
        """As in `FixedPoint`; the default start is the means of the image's units without neighbours."""
        start = first_means(machine, start)
        outcome = iterate(
            self.step,
            machine,
            self.init(machine, start),
            max_iter=self.max_iter,
            tol=self.tol,
            change=self.watched(machine),
            large=machine.couplings[0].any_size,
        )
        means, variances = self.moments(machine, outcome.state)
        log_z = self.log_partition(machine, means, variances) if self.weighs else outcome.residual.double() * torch.nan
        if self.temperature != 1:
            means[0], variances[0] = self.tempered(machine, outcome.state)
        return Solution(
            tuple(means),
            tuple(variances),
            log_z,
            outcome.iterations,
            outcome.residual,
            outcome.status,
        )
