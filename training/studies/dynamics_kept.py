"""The solutions of a probe as a file beside the run: what pictures take of them would fill a record with numbers."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import torch
from probing.solutions import Solutions
from safetensors import SafetensorError, safe_open
from safetensors.torch import save

from restore.files import write_atomically


def write(path: Path, of: Mapping[str, str], solutions: Solutions) -> None:
    """Keep solutions, with what they are of: the prior and the starts. A folder that is missing is made."""
    tensors = {f"means.{layer}": mean.contiguous() for layer, mean in enumerate(solutions.means)}
    tensors |= {name: getattr(solutions, name).contiguous() for name in ("log_partition", "led_to", "status")}
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, save(tensors, dict(of)))


def read(path: Path, of: Mapping[str, str]) -> Solutions | None:
    """The solutions that were kept; None if there are none, or of something else."""
    try:
        with safe_open(path, "pt") as file:
            if file.metadata() != of:
                return None
            tensors: dict[str, torch.Tensor] = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (OSError, SafetensorError):
        return None
    means = [tensors.pop(f"means.{layer}") for layer in range(len(tensors) - 3)]
    return Solutions(tuple(means), **tensors)
