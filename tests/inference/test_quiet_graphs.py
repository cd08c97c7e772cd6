"""onnxruntime prints when it fails in a way that it did not foresee; what reads a graph prints nothing."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from restore import zoo
from restore.errors import ModelError
from restore.inference.onnx.engine import OnnxEngine
from restore.inference.onnx.seal import SIZE, sealed


def test_a_graph_with_names_in_no_encoding_is_refused_silently(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    published = zoo.published_folder() / "tap-mnist-25"
    content = (published / zoo.GRAPH).read_bytes()[:-SIZE]
    # The output of a node keeps its name, and the node that reads it asks for another, which the error quotes.
    produced, read, rest = content.split(b"val_0", 2)
    shutil.copy(published / zoo.WEIGHTS, tmp_path)
    (tmp_path / zoo.GRAPH).write_bytes(sealed(produced + b"val_0" + read + b"val\xff0" + rest))
    with pytest.raises(ModelError) as caught:
        OnnxEngine.load(tmp_path)
    assert isinstance(caught.value.__cause__, ValueError)
    assert capfd.readouterr() == ("", "")
