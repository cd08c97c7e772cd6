"""Deep convolutional priors with their sweeps as a graph, which takes images of any size."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from exports import Exported

from restore import zoo
from restore.channels.damage import Damage
from restore.inference.onnx.engine import OnnxEngine
from restore.inference.torch_engine import Engine


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
