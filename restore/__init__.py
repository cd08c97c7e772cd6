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

    from restore.api import Restorer, batches, complete, denoise, find_marks, list_models, load, train
    from restore.errors import (
        InputError,
        ModelError,
        NotRestored,
        OutputError,
        PartialFailure,
        RestoreError,
        RestoreWarning,
        TrainingError,
        UsageError,
    )

__version__ = "0.1.0"

__all__ = [
    "InputError",
    "ModelError",
    "NotRestored",
    "OutputError",
    "PartialFailure",
    "RestoreError",
    "RestoreWarning",
    "Restorer",
    "TrainingError",
    "UsageError",
    "batches",
    "complete",
    "denoise",
    "find_marks",
    "list_models",
    "load",
    "train",
]


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name not in __all__:
        raise AttributeError(f"module 'restore' has no attribute {name!r}")
    place = "errors" if name.endswith(("Error", "Failure", "Warning", "NotRestored")) else "api"
    return getattr(import_module(f"restore.{place}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
