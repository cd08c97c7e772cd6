"""Published priors get another digest of their recipe, and keep their tensors."""

from __future__ import annotations

import hashlib
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from restamp import moved, outdated, payload, restamp, with_header

from restore import zoo
from restore.channels import Damage
from restore.errors import ModelError
from restore.inference.onnx.contract import read_intact
from restore.inference.onnx.engine import OnnxEngine

PUBLISHED = zoo.published_folder() / "tap-mnist-25"


def test_a_prior_with_another_digest_is_the_same_prior(tmp_path: Path) -> None:
    folder, digest = Path(shutil.copytree(PUBLISHED, tmp_path / "prior")), "1234567890abcdef" * 4
    result = restamp(folder, digest)
    assert result[zoo.describe(PUBLISHED).recipe] == digest == zoo.describe(folder).recipe
    for name in (zoo.WEIGHTS, zoo.GRAPH, zoo.CARD):
        assert (PUBLISHED / name).read_bytes() != (folder / name).read_bytes()
    assert payload((PUBLISHED / zoo.WEIGHTS).read_bytes()) == payload((folder / zoo.WEIGHTS).read_bytes())
    # It is refused unless graph and weights belong together, and the graph is sound.
    engine = OnnxEngine.load(folder)
    assert engine.facts.header == zoo.describe(folder)
    # It finds its tensors there, though their header is longer.
    seen = np.eye(28)[None]
    np.testing.assert_array_equal(
        engine.solve(seen, Damage(0.1)).means, OnnxEngine.load(PUBLISHED).solve(seen, Damage(0.1)).means
    )
    assert restamp(folder, digest) == {key: key for key in result.values()}


def test_a_header_has_the_share_of_white_of_a_prior_of_any_size(tmp_path: Path) -> None:
    published = zoo.published_folder() / "conv-art"
    folder, header = Path(shutil.copytree(published, tmp_path / "prior")), zoo.describe(published)
    assert header.white == pytest.approx(float(zoo.load(published).pixel_means.mean()), abs=1e-4)
    weights, graph = folder / zoo.WEIGHTS, folder / zoo.GRAPH
    content, without = weights.read_bytes(), replace(header, white=0.0)
    weights.write_bytes(with_header(content, without))
    shorter, shift = weights.read_bytes(), len(weights.read_bytes()) - len(content)
    graph.write_bytes(moved(read_intact(graph), without, hashlib.sha256(shorter).hexdigest(), shift))
    assert OnnxEngine.load(folder).header == zoo.describe(folder) == without
    restamp(folder, header.recipe)
    assert OnnxEngine.load(folder).header == zoo.describe(folder) == header
    assert weights.read_bytes() == content


def test_a_damaged_graph_is_left_alone(tmp_path: Path) -> None:
    folder = Path(shutil.copytree(PUBLISHED, tmp_path / "prior"))
    content = (folder / zoo.GRAPH).read_bytes().replace(b"tap-mnist-25", b"tap-mnist-26")
    (folder / zoo.GRAPH).write_bytes(content)
    with pytest.raises(ModelError):
        restamp(folder, "1234567890abcdef" * 4)
    assert (folder / zoo.GRAPH).read_bytes() == content
    assert (folder / zoo.WEIGHTS).read_bytes() == (PUBLISHED / zoo.WEIGHTS).read_bytes()


def test_a_record_names_its_recipes() -> None:
    record = {"points": [{"name": "a", "recipe": "1"}, {"run": "b", "recipe": "2"}, {"name": "c", "recipe": "3"}]}
    assert dict(outdated(record, {"a": "7", "b": "8"})) == {"1": "7", "2": "8"}
