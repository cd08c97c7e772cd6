"""What is in the file of an exported graph, and the engine that runs it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from exports import LEARNT, MADE, RATES, SHAPE, TOLERANCE, Exported, kinds
from priors import random_prior

from restore import zoo
from restore.channels.damage import Damage
from restore.inference.onnx import contract
from restore.inference.onnx.engine import OnnxEngine
from restore.inference.torch_engine import Engine
from restore.zoo import WEIGHTS

# ------------------------------------------------------------------------------------------------------ the file


@pytest.mark.parametrize("name", kinds(MADE))
def test_a_file_is_sound_and_old_enough_for_every_runtime(name: str, exported: Callable[[str], Exported]) -> None:
    case = exported(name)
    onnx.checker.check_model(str(case.path), full_check=True)
    assert case.model.ir_version == 8
    assert {(entry.domain, entry.version) for entry in case.model.opset_import} == {("", 18)}
    assert not case.model.functions
    operations = [node.op_type for node in case.model.graph.node]
    assert operations.count("Loop") == 1


@pytest.mark.parametrize("name", kinds(MADE))
def test_metadata_say_all_about_a_file(name: str, exported: Callable[[str], Exported]) -> None:
    case = exported(name)
    result = case.session.get_modelmeta().custom_metadata_map
    header = zoo.describe(case.folder).to_header()
    assert {key: result[key] for key in header} == header
    assert result["format_version"] == "2" and result["graph_version"] == "2"
    channels = {"field": "field", "spiked": "noise and mask", "truncated": "noise and mask"}
    assert result["channel"] == channels.get(name, "learnt" if name in LEARNT else "flips and mask")
    assert result["polarity"] in contract.POLARITIES
    assert result["licence"] == "Apache-2.0" and result["name"] == name
    assert json.loads(result["image_shape"]) == list(case.header.image_shape)
    assert result["weights_sha256"] == hashlib.sha256((case.folder / WEIGHTS).read_bytes()).hexdigest()
    assert result.keys() - header.keys() == {
        "graph_version", "channel", "polarity", "weights_sha256", "images_at_once", "file_sha256"
    }  # fmt: skip
    assert case.model.producer_name == "restore"
    content = case.path.read_bytes()
    assert result.pop("file_sha256") == hashlib.sha256(content[: content.rindex(b"\x72")]).hexdigest()
    assert case.facts.to_metadata() == result


def test_the_polarity_of_dark_strokes(tmp_path: Path) -> None:
    dark = replace(random_prior(SHAPE, modes=0), pixel_means=torch.full((35,), 0.8))
    facts = contract.GraphFacts(dark.description, "flips and mask", True, "0" * 64, 16)
    assert facts.to_metadata()["polarity"] == "dark on light"
    assert contract.GraphFacts.from_metadata(facts.to_metadata(), "here") == facts


@pytest.mark.parametrize("name", kinds(["tap", "relaxed"]))
def test_weights_are_stored_once(name: str, exported: Callable[[str], Exported]) -> None:
    """Nothing that follows from the weights is stored beside them, such as their squares."""
    sizes = [int(np.prod(tensor.dims)) for tensor in exported(name).model.graph.initializer]
    assert sum(size >= 35 * 5 for size in sizes) == 1
    kinds = [tensor.data_type for tensor in exported(name).model.graph.initializer]
    assert kinds.count(onnx.TensorProto.FLOAT16) == (name == "relaxed")


# ---------------------------------------------------------------------------------------------------- the engine


def both(case: Exported) -> tuple[OnnxEngine, Engine]:
    return OnnxEngine.load(case.path), Engine.of(case.trained, torch.device("cpu"))


@pytest.mark.parametrize("count", [1, 2, 16, 17, 40])
@pytest.mark.parametrize("name", kinds(["tap", "sum"]))
def test_engines_agree_on_any_number_of_images(name: str, count: int, exported: Callable[[str], Exported]) -> None:
    ours, peer = both(exported(name))
    grey = np.random.default_rng(0).integers(0, 2, (count, *SHAPE)).astype(np.float32)
    hidden = np.random.default_rng(1).random((count, *SHAPE)) < 0.2
    told = [(None, None)] if name == "sum" else [(0.1, None), (None, hidden), (0.2, hidden), (RATES[0] / 2, None)]
    for p, mask in told:
        result, expected = (engine.solve(grey, Damage(p, hidden=mask)) for engine in (ours, peer))
        np.testing.assert_allclose(result.inversion, expected.inversion, atol=1e-6)
        every = [[answer.means, answer.variances, *answer.layers] for answer in (result, expected)]
        for values, wanted in zip(*every, strict=True):
            np.testing.assert_allclose(values, wanted, atol=2 * TOLERANCE)
        assert (result.status == expected.status).all() and (abs(result.iterations - expected.iterations) <= 1).all()
        for field in ("iterations", "status"):
            assert getattr(result, field).dtype == getattr(expected, field).dtype
