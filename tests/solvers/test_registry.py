"""The registries say the truth about what they name."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

from restore.errors import UsageError
from restore.fields import Fields
from restore.priors import RBM, FullyVisible, GaussianMixture
from restore.registry import SOLVERS, UNITS
from restore.solvers import solver_of
from restore.units import Bernoulli
from restore.units.layers import blank
from restore.zoo.inference import Inference

every_unit = pytest.mark.parametrize("name", UNITS)
# Those that read pages alone have a test of their own.
every_solver = pytest.mark.parametrize("name", [name for name, kind in SOLVERS.items() if kind.coarser == 1])


@every_unit
def test_of_a_unit_type_are_known_parameters_values_and_bounds(name: str) -> None:
    kind, layer = UNITS[name], blank(name, 2, torch.zeros(1, dtype=torch.float64))
    assert tuple(layer.parameters) == tuple(kind.parameters)
    assert kind.bits == isinstance(layer, Bernoulli)
    assert (kind.bits or kind.grey) == (layer.support == (0, 1))
    nothing = Fields(torch.zeros(2, dtype=torch.float64))
    assert math.isfinite(float(layer.log_partition(nothing).sum()))


MIXTURE = GaussianMixture(torch.zeros(1, 2, 1), torch.ones(1), torch.zeros(1))


def settings(name: str) -> Inference:
    return Inference(name, max_iter=50, tol=1e-4, modes=0, starts=int(SOLVERS[name].starts))


@every_solver
def test_a_solver_solves_the_machines_that_it_says(name: str) -> None:
    kind, solver = SOLVERS[name], solver_of(settings(name))
    bits, zeros = torch.zeros(2, 3), torch.zeros(2)
    plain = RBM.binary(zeros[:, None] + 0.1, zeros, torch.zeros(1)).tilt(Fields(bits[:, :2]))
    grey = RBM((blank("truncated-gaussian", 2, zeros), Bernoulli(torch.zeros(1))), (zeros[:, None] + 0.1,))
    dense = FullyVisible.binary(0.1 - 0.1 * torch.eye(2), zeros)
    layers = "layered" in kind.structures
    kinds = ((plain, layers), (grey, layers and kind.any_units), (dense, "pairwise" in kind.structures))
    if "mixture" in kind.structures:
        solver.solve(MIXTURE.tilt(Fields(bits[:, :2], bits[:1, :2])))
    for machine, fits in kinds:
        tilted = machine.tilt(Fields(bits[:, :2]))
        if fits:
            solver.solve(tilted)
        else:
            with pytest.raises(UsageError):
                solver.solve(tilted)


@every_solver
def test_a_solver_takes_a_start_or_has_its_own(name: str) -> None:
    machine: Any = RBM.binary(torch.full((2, 1), 0.1), torch.zeros(2), torch.zeros(1)).tilt(Fields(torch.zeros(3, 2)))
    solver = solver_of(settings(name))
    if "mixture" in SOLVERS[name].structures:
        machine = MIXTURE
    if SOLVERS[name].starts:
        solver.solve(machine, torch.full((3, 2), 0.5))
        return
    with pytest.raises(UsageError, match="starts by itself"):
        solver.solve(machine, torch.full((3, 2), 0.5))
    with pytest.raises(UsageError, match="set modes and starts to 0"):
        Inference(name)
