"""Graphs of priors of grey images, and of deep machines, find what the library finds."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from priors import SPIKED, TRUNCATED, grey_prior, saved_grey

from restore.channels.damage import Damage
from restore.errors import UsageError
from restore.export.packing import standalone
from restore.inference.onnx.engine import OnnxEngine
from restore.inference.torch_engine import Engine
from restore.status import Status
from restore.zoo import TrainedPrior

# To export such a prior takes half a minute.
pytestmark = pytest.mark.thorough

SHAPE = (5, 7)

# The first has every law of real values: pixels with an atom, and hidden units without bounds. The second has no other,
# under the solver, from the start and of the kinds of a published prior.
MADE: dict[str, Callable[[], TrainedPrior]] = {
    "spiked": lambda: grey_prior(SPIKED, "gaussian", scale=0.2, starts=0),
    "truncated": lambda: grey_prior(TRUNCATED, "gaussian", scale=0.1, solver="mean_field"),
}


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], tuple[Engine, OnnxEngine]]:
    done: dict[str, tuple[Engine, OnnxEngine]] = {}

    def call(name: str) -> tuple[Engine, OnnxEngine]:
        if name not in done:
            folder = saved_grey(tmp_path_factory.mktemp(name), MADE[name]())
            path = folder.parent / "graph.onnx"
            path.write_bytes(standalone(folder))
            done[name] = Engine.load(str(folder), "cpu"), OnnxEngine.load(path)
        return done[name]

    return call


def pictures(count: int = 5) -> np.ndarray:
    draw = np.random.default_rng(0)
    clean = np.where(draw.random((count, *SHAPE)) < 0.5, 0.0, draw.random((count, *SHAPE)))
    clean[:, 0, 0] = 1
    return clean


DAMAGE = [(0.1, None, False), (None, 0.1, False), (0.2, 0.1, True), (None, None, True), (None, 0.0, False)]


@pytest.mark.parametrize("name", ["spiked", pytest.param("truncated", marks=pytest.mark.slow)])
@pytest.mark.parametrize(("sigma", "p", "masked"), DAMAGE)
def test_a_graph_of_a_grey_prior_finds_what_the_library_finds(
    name: str, sigma: float | None, p: float | None, masked: bool, exported: Callable[[str], tuple[Engine, OnnxEngine]]
) -> None:
    torch_engine, graph = exported(name)
    images = pictures() + (0 if sigma is None else np.random.default_rng(1).normal(0, sigma, (5, *SHAPE)))
    hidden = np.random.default_rng(2).random((5, *SHAPE)) < 0.3 if masked else None
    result, wanted = (engine.solve(images, Damage(p, sigma=sigma, hidden=hidden)) for engine in (graph, torch_engine))
    assert (wanted.status == Status.CONVERGED).all() and (result.status == wanted.status).all()
    every = [[answer.means, answer.variances, *answer.layers] for answer in (result, wanted)]
    for number, (values, expected) in enumerate(zip(*every, strict=True)):
        np.testing.assert_allclose(values, expected, atol=5e-5, err_msg=str(number))
    np.testing.assert_allclose(result.inversion, wanted.inversion, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize(
    ("name", "value"),
    [("sigma", -0.1), ("sigma", np.nan), ("sigma", np.inf), ("p", 1.1), ("p", np.nan), ("image", np.nan)],
)
def test_what_is_no_damage_gets_no_answer(
    name: str, value: float, exported: Callable[[str], tuple[Engine, OnnxEngine]]
) -> None:
    graph = exported("spiked")[1]
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
