"""onnxruntime prints when it fails in a way that it did not foresee; what reads a graph prints nothing."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from restore import zoo
from restore.errors import ModelError
from restore.inference.onnx.contract import SIZE, sealed
from restore.inference.onnx.engine import OnnxEngine

# Each is there once: what a node reads but no other makes, which an error quotes; and a size of an input.
NAMES = {"of a value": b"\n\x05val_0", "of a size": b"p_height"}


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_a_graph_with_names_in_no_encoding_is_refused_silently(
    name: bytes, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    published = zoo.published_folder() / "tap-mnist-25"
    content = (published / zoo.GRAPH).read_bytes()[:-SIZE]
    shutil.copy(published / zoo.WEIGHTS, tmp_path)
    (tmp_path / zoo.GRAPH).write_bytes(sealed(content.replace(name, name[:-1] + b"\xff")))
    with pytest.raises(ModelError) as caught:
        OnnxEngine.load(tmp_path)
    assert caught.value.subject == str(tmp_path / zoo.GRAPH)
    assert capfd.readouterr() == ("", "")
