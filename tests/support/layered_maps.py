"""What the tests of mean field and TAP share."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from restore.priors import BoltzmannMachine
from restore.solvers import TAP, MeanField

both = pytest.mark.parametrize("kind", [MeanField, TAP], ids=["mean-field", "tap"])

PRECISE: dict[str, Any] = {"max_iter": 5000, "tol": 1e-14, "damping": 0.5}


def halves(machine: BoltzmannMachine, batch: int = 1) -> Tensor:
    return torch.full((batch, machine.layers[0].size), 0.5, dtype=machine.couplings[0].weights.dtype)
