"""Trace the graph of a prior in another process while it is trained: that takes longer than the rest of its export.

The operations of a graph follow from the kind of a prior and the sizes of its tensors. The final weights are put in at
the end, see `restore.export.graph.simplified`.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import weakref
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import onnx
from safetensors.torch import load_file
from torch import Tensor

from restore import zoo
from restore.export.graph import trace
from restore.export.packing import beside_weights
from restore.inference.onnx.contract import Facts
from restore.zoo.description import Description
from restore.zoo.tiling import Tiling


class Ahead:
    """The graph of a prior that is still trained.

    Args:
        sketch: a prior of the same kind and sizes.
    """

    def __init__(self, sketch: zoo.TrainedPrior) -> None:
        folder = tempfile.TemporaryDirectory()
        zoo.save(Path(folder.name), sketch, "")
        self._kind = kind_of(sketch.description, load_file(Path(folder.name) / zoo.WEIGHTS))
        self._process = subprocess.Popen(
            [sys.executable, "-m", __name__, folder.name], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        # Also if training is stopped, and nobody asks for the graph.
        self._end = weakref.finalize(self, _end, self._process, folder)

    def trace(self, facts: Facts, stored: Mapping[str, Tensor]) -> onnx.ModelProto:
        """As `restore.export.graph.trace`, which is called if the prior has become another one than was sketched."""
        content = b""
        if self._kind == kind_of(facts.about, stored):
            content, _ = self._process.communicate()
        self._end()
        return onnx.load_from_string(content) if content else trace(facts, stored)


def _end(process: subprocess.Popen[bytes], folder: tempfile.TemporaryDirectory[str]) -> None:
    with process:
        process.kill()
    folder.cleanup()


def kind_of(about: Description, stored: Mapping[str, Tensor]) -> str:
    """All that the operations of a graph follow from, as a text to compare."""
    # These settings are its inputs.
    inference = replace(about.inference, max_iter=1, tol=0.0, damping=0.0)
    alike = replace(about, inference=inference, log_partition=0.0, tiling=Tiling(), recipe="", unfinished="", run="")
    tensors = {name: (str(value.dtype), list(value.shape)) for name, value in stored.items()}
    return json.dumps([alike.to_header(), tensors], sort_keys=True)


def _written(facts: Facts, stored: Mapping[str, Tensor]) -> onnx.ModelProto:
    model = trace(facts, stored)
    sys.stdout.buffer.write(model.SerializeToString())
    return model


if __name__ == "__main__":
    beside_weights(Path(sys.argv[1]), _written)
