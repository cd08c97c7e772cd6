"""Whether the code runs on values, or is being traced into a graph."""

from __future__ import annotations

import torch


def tracing() -> bool:
    """True while `restore.export` traces: no value can be looked at then, so that checks on values are left out.

    What they would have refused the graph answers with `converged` false instead.
    """
    return torch.compiler.is_exporting()
