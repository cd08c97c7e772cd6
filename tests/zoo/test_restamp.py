"""Published priors get another digest of their recipe, and keep their tensors."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from restamp import outdated, payload, restamp

from restore import zoo
from restore.errors import ModelError
from restore.inference.onnx.engine import OnnxEngine

PUBLISHED = zoo.published_folder() / "tap-mnist-25"


def test_a_prior_with_another_digest_is_the_same_prior(tmp_path: Path) -> None:
    folder, digest = Path(shutil.copytree(PUBLISHED, tmp_path / "prior")), "1234567890abcdef" * 4
    result = restamp(folder, digest)
    assert result[zoo.describe(PUBLISHED).recipe] == digest == zoo.describe(folder).recipe
    for name in (zoo.WEIGHTS, zoo.GRAPH, zoo.CARD):
        before, after = ((place / name).read_bytes() for place in (PUBLISHED, folder))
        # Checksums of the whole files follow.
        assert len(before) == len(after) and before != after
    assert payload((PUBLISHED / zoo.WEIGHTS).read_bytes()) == payload((folder / zoo.WEIGHTS).read_bytes())
    # It is refused unless graph and weights belong together, and the graph is sound.
    assert OnnxEngine.load(folder).facts.header == zoo.describe(folder)
    assert restamp(folder, digest) == {key: key for key in result.values()}


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
