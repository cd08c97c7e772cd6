"""Graphs of priors of grey images and of layers find what the library finds."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from exports import SHAPE, Exported
from priors import grey_prior, saved_grey

from restore import zoo
from restore.channels.damage import Damage
from restore.errors import UsageError
from restore.export.packing import standalone
from restore.inference.onnx.engine import OnnxEngine
from restore.inference.torch_engine import Engine
from restore.status import Status

# To export such a prior takes half a minute.
pytestmark = pytest.mark.thorough


def engines(exported: Callable[[str], Exported], name: str) -> tuple[OnnxEngine, Engine]:
    case = exported(name)
    return OnnxEngine.load(case.path), Engine.load(str(case.folder), "cpu")


def pictures(count: int = 5) -> np.ndarray:
    draw = np.random.default_rng(0)
    clean = np.where(draw.random((count, *SHAPE)) < 0.5, 0.0, draw.random((count, *SHAPE)))
    clean[:, 0, 0] = 1
    return clean


DAMAGE = [(0.1, None, False), (None, 0.1, False), (0.2, 0.1, True), (None, None, True), (None, 0.0, False)]


@pytest.mark.parametrize("name", ["spiked", "truncated"])
@pytest.mark.parametrize(("sigma", "p", "masked"), DAMAGE)
def test_a_graph_of_a_grey_prior_finds_what_the_library_finds(
    name: str, sigma: float | None, p: float | None, masked: bool, exported: Callable[[str], Exported]
) -> None:
    images = pictures() + (0 if sigma is None else np.random.default_rng(1).normal(0, sigma, (5, *SHAPE)))
    hidden = np.random.default_rng(2).random((5, *SHAPE)) < 0.3 if masked else None
    result, wanted = (engine.solve(images, Damage(p, sigma=sigma, hidden=hidden)) for engine in engines(exported, name))
    assert (wanted.status == Status.CONVERGED).all() and (result.status == wanted.status).all()
    every = [[answer.means, answer.variances, *answer.layers] for answer in (result, wanted)]
    for number, (values, expected) in enumerate(zip(*every, strict=True)):
        np.testing.assert_allclose(values, expected, atol=5e-5, err_msg=str(number))
    np.testing.assert_allclose(result.inversion, wanted.inversion, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize(
    ("name", "value"),
    [("sigma", -0.1), ("sigma", np.nan), ("sigma", np.inf), ("p", 1.1), ("p", np.nan), ("image", np.nan)],
)
def test_what_is_no_damage_gets_no_answer(name: str, value: float, exported: Callable[[str], Exported]) -> None:
    graph, _ = engines(exported, "spiked")
    told = {
        "image": np.float32(pictures()),
        "sigma": np.full((1, 1, 1), 0.1, np.float32),
        "p": np.zeros((1, 1, 1), np.float32),
        "mask": np.zeros((1, 1, 1), bool),
    }
    assert graph.run(graph.header, told)["converged"].all()
    told[name] = told[name].copy()
    told[name][0, 0, 0] = value
    outputs = graph.run(graph.header, told)
    assert not outputs["converged"][0] and np.isinf(outputs["residual"][0]) and outputs["log_partition"][0] == -np.inf
    assert outputs["converged"][1:].all() == (name == "image")
    assert all(np.isfinite(outputs[kind]).all() for kind in ("restored", "means", "variances"))


def test_evidence_of_grey_images_is_no_single_field(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        standalone(saved_grey(tmp_path, grey_prior()), field=True)
    assert str(caught.value).startswith("grey ")


@pytest.mark.thorough
@pytest.mark.parametrize("shape", [(12, 8), (9, 13), (41, 37)])
@pytest.mark.parametrize("name", ["layers", "halves"])
def test_a_graph_restores_as_torch_does(name: str, shape: tuple[int, int], exported: Callable[[str], Exported]) -> None:
    folder, draw = exported(name).folder, np.random.default_rng(0)
    damaged, hidden = draw.random((3, *shape)) < 0.3, draw.random((3, *shape)) < 0.2
    for damage in (Damage(0.1), Damage(0.0, hidden=hidden)):
        engines = Engine.of(zoo.load(folder), torch.device("cpu")), OnnxEngine.load(folder)
        one, other = (engine.solve(damaged.astype(np.float32), damage) for engine in engines)
        # A last move near the tolerance may fall on either side of it.
        assert (one.status == other.status).all() and (abs(one.iterations - other.iterations) <= 1).all()
        assert one.layers == other.layers == ()
        np.testing.assert_allclose(other.means, one.means, atol=1e-5)
        assert (other.means <= 1).all()
