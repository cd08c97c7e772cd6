"""Repair damaged images with trained energy-based priors and deterministic fixed-point solvers.

    import restore
    clean = restore.denoise(image, model="tap-mnist", p=0.1)
    whole = restore.complete(image, mask)

Names are loaded when they are first used, so that `import restore` and the command line start without torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from restore.errors import InputError, ModelError, OutputError, PartialFailure, RestoreError, TrainingError, UsageError

if TYPE_CHECKING:
    from restore.api import Restorer, complete, denoise, list_models, load, train

__version__ = "0.1.0"

_LAZY = ("Restorer", "complete", "denoise", "list_models", "load", "train")


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(import_module("restore.api"), name)
    raise AttributeError(f"module 'restore' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_LAZY])


__all__ = [
    "InputError",
    "ModelError",
    "OutputError",
    "PartialFailure",
    "RestoreError",
    "Restorer",
    "TrainingError",
    "UsageError",
    "complete",
    "denoise",
    "list_models",
    "load",
    "train",
]
