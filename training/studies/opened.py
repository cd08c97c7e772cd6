"""What studies ask of an open prior beyond restoring: its machine, and what its hidden units say of images."""

from __future__ import annotations

import numpy as np
import torch

from restore.errors import ModelError
from restore.inference.torch_engine import Engine
from restore.priors import RBM, FullyVisible, LayeredPrior


def free_machine(engine: Engine, what: str) -> LayeredPrior | FullyVisible:
    """The machine of a prior; raises ModelError, which names what was asked for, if it is conditional or a mixture."""
    machine = engine.trained.machine
    if not isinstance(machine, LayeredPrior | FullyVisible):
        raise ModelError(f"has no {what} of images; choose a prior that is not conditional", engine.header.name)
    return machine


def plain_machine(engine: Engine, what: str) -> RBM | FullyVisible:
    """The same; raises ModelError, too, if it is not binary or has several hidden layers."""
    machine, header = free_machine(engine, what), engine.header
    if not header.plain or not isinstance(machine, RBM | FullyVisible):
        raise ModelError(f"is not binary or has several layers: no {what}; choose a binary one", header.name)
    return machine


def features(engine: Engine, grey: np.ndarray) -> np.ndarray:
    """E[h | v], the expected hidden units given grey levels (N, H, W) in [0, 1]; (N, units), float32."""
    machine = free_machine(engine, "features")
    if not isinstance(machine, RBM):
        raise ModelError("has no single layer of hidden units; choose a prior that has one", engine.header.name)
    seen = torch.from_numpy(engine.header.as_known(grey)).flatten(1)
    with torch.inference_mode():
        return machine.transform(seen.to(machine.couplings[0].weights)).cpu().numpy()
