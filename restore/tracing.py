"""Whether the code runs on values, or is being traced into a graph."""

from __future__ import annotations

import sys


def tracing() -> bool:
    """True while `restore.export` traces: no value can be looked at then, so that checks on values are left out.

    What they would have refused the graph answers with `converged` false instead.
    """
    # Nothing is traced where torch is not loaded, and nobody loads it to ask.
    torch = sys.modules.get("torch")
    return torch is not None and torch.compiler.is_exporting()
