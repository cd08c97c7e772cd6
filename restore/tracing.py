"""Detect that code is being traced into a graph."""

from __future__ import annotations

import sys


def tracing() -> bool:
    """True while `restore.export` traces; values are not known then, so checks of values are skipped.

    Where such a check would raise an error, the graph answers with `converged` false.
    """
    # If torch is not loaded, nothing is being traced; do not load it to ask.
    torch = sys.modules.get("torch")
    return torch is not None and torch.compiler.is_exporting()
