"""The GPU's kernels in Triton's interpreter, which computes them with numpy, a program at a time."""

from __future__ import annotations

import importlib.util
import sys
from functools import cache
from types import ModuleType
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

needs_triton = pytest.mark.skipif(
    importlib.util.find_spec("triton") is None, reason="triton is not installed; pip install 'restore-prior[gpu]'"
)


@cache
def interpreted(name: str) -> ModuleType:
    """A copy of a module of kernels whose kernels the interpreter runs."""
    from triton import knobs
    from triton.runtime.interpreter import ReduceOps

    ReduceOps.generic_reduce = _reduced
    found = importlib.util.find_spec(name)
    assert found is not None and found.loader is not None
    spec = importlib.util.spec_from_file_location(f"interpreted_{name.rpartition('.')[2]}", found.origin)
    assert spec is not None and spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = made
    with patch.object(type(knobs.runtime), "interpret", True):
        spec.loader.exec_module(made)
    return made


def _reduced(self: Any, given: Any) -> Any:
    """What the interpreter does one number at a time, a half of them with the other half at a time."""
    assert self.axis is not None and not self.keep_dims
    types = [each.dtype for each in given]
    parts = [np.moveaxis(each.handle.data, self.axis, 0) for each in given]
    while len(parts[0]) > 1:
        half = len(parts[0]) // 2
        both = [part[:half] for part in parts], [part[half:] for part in parts]
        pairs = [self.to_tensor(part, kind) for each in both for part, kind in zip(each, types, strict=True)]
        found = self.combine_fn.fn(*pairs)
        parts = [each.handle.data for each in (found if isinstance(found, tuple) else (found,))]
    return [self.to_tensor(part[0], kind) for part, kind in zip(parts, types, strict=True)]
