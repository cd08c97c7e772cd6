"""Binary RBMs as other programs keep them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from safetensors.torch import save_file
from torch import Tensor

from restore.priors import RBM


def parameters(machine: RBM) -> tuple[Tensor, Tensor, Tensor]:
    return machine.weights, machine.visible.parameters["bias"], machine.hidden.parameters["bias"]


def sklearn(w: Tensor, v: Tensor, h: Tensor) -> dict[str, Tensor]:
    return {"components_": w.T, "intercept_visible_": v, "intercept_hidden_": h}


def pgmax(w: Tensor, v: Tensor, h: Tensor) -> dict[str, Tensor]:
    return {"bh": h, "bv": v, "W": w.T}


def written(path: Path, tensors: Mapping[str, Tensor]) -> Path:
    if path.suffix == ".npz":
        np.savez(path, **{name: value.numpy() for name, value in tensors.items()})
    else:
        save_file({name: value.clone().contiguous() for name, value in tensors.items()}, path)
    return path
