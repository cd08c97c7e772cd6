"""Detect that code is being traced into a graph, and take tensors out of what it uses."""

from __future__ import annotations

import io
import pickle
import sys
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any


def tracing() -> bool:
    """True while `restore.export` traces; values are not known then, so checks of values are skipped.

    Where such a check would raise an error, the graph answers with `converged` false.
    """
    # If torch is not loaded, nothing is being traced; do not load it to ask.
    torch = sys.modules.get("torch")
    return torch is not None and torch.compiler.is_exporting()


def lifted(value: Any) -> tuple[tuple[Any, ...], Callable[[Sequence[Any]], Any]]:
    """The tensors and free sizes within a value, each once, and a function that makes the same value of others.

    Functions stay as they are, with the tensors that they enclose. What is pickled never leaves this process.
    """
    import torch

    parts: dict[int, Any] = {}

    class Lifting(pickle.Pickler):
        def persistent_id(self, item: Any) -> int | None:
            if not isinstance(item, torch.Tensor | torch.SymInt | FunctionType):
                return None
            parts[id(item)] = item
            return id(item)

    stored = io.BytesIO()
    Lifting(stored).dump(value)
    used = tuple(item for item in parts.values() if not isinstance(item, FunctionType))

    def rebuilt(others: Sequence[Any]) -> Any:
        class Placing(pickle.Unpickler):
            persistent_load = staticmethod((parts | dict(zip(map(id, used), others, strict=True))).__getitem__)

        return Placing(io.BytesIO(stored.getvalue())).load()

    return used, rebuilt
