"""Repair damaged images with trained energy-based priors and deterministic fixed-point solvers.

    import restore
    clean = restore.denoise(image, model="tap-mnist", p=0.1)
    whole = restore.complete(image, mask)

Names are loaded on first use, so that `import restore` and the command line start without torch.
"""

from __future__ import annotations

# Not imported from `typing`: until the command line can take signals, as little as possible is loaded.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from restore.api import Restorer, complete, denoise, list_models, load, train
    from restore.errors import (
        InputError,
        ModelError,
        OutputError,
        PartialFailure,
        RestoreError,
        TrainingError,
        UsageError,
    )

__version__ = "0.1.0"

_API = ("Restorer", "complete", "denoise", "list_models", "load", "train")
_ERRORS = ("InputError", "ModelError", "OutputError", "PartialFailure", "RestoreError", "TrainingError", "UsageError")


def __getattr__(name: str) -> Any:
    from importlib import import_module

    for module, names in (("restore.api", _API), ("restore.errors", _ERRORS)):
        if name in names:
            return getattr(import_module(module), name)
    raise AttributeError(f"module 'restore' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_API, *_ERRORS])


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
