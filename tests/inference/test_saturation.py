"""Graphs on pictures that leave no doubt: there a runtime's sigmoid or tanh may leave [0, 1] or [-1, 1]."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from restore.channels.damage import Damage
from restore.inference.onnx.engine import OnnxEngine
from restore.inference.torch_engine import Engine
from restore.priors.bits import unpack
from restore.status import Status
from restore.zoo import find, load

ROWS, COLUMNS = np.mgrid[:64, :64]
PICTURES = {
    "white": np.ones((64, 64)),
    "black": np.zeros((64, 64)),
    "checkerboard": ((ROWS // 13 + COLUMNS // 13) % 2).astype(float),
    "disc": (np.hypot(ROWS - 32, COLUMNS - 32) > 9).astype(float),
    "lines": ((ROWS % 12 < 2) | (COLUMNS % 20 < 2)).astype(float),
}
LEVELS = (1e-12, 0.002, 0.1, 0.5)


def pictures(shape: tuple[int, int]) -> np.ndarray:
    return np.stack([picture[: shape[0], : shape[1]] for picture in PICTURES.values()])


@pytest.mark.parametrize(
    "name", ["conv-text", *(pytest.param(name, marks=pytest.mark.thorough) for name in ("conv-art", "conv-mnist"))]
)
def test_a_graph_answers_as_torch_does_however_sure_it_is(name: str) -> None:
    graph: Any = OnnxEngine.load(find(name))
    reference: Any = Engine.of(load(find(name)), torch.device("cpu"))
    picture = pictures((64, 64) if graph.header.whole else graph.header.image_shape)
    for p in LEVELS:
        posterior, expected = (engine.solve(picture, Damage(p)) for engine in (graph, reference))
        assert (posterior.status != Status.DIVERGED).all() and (expected.status != Status.DIVERGED).all(), p
        means, variances = posterior.means, posterior.variances
        assert means.min() >= 0 and means.max() <= 1 and variances.min() >= 0, p
        np.testing.assert_allclose(means, expected.means, atol=2e-4, err_msg=str(p))


def test_a_value_that_is_no_number_is_a_picture_that_diverged(monkeypatch: pytest.MonkeyPatch) -> None:
    """And not a fault of the file, which would stop all pictures of a batch."""
    engine = OnnxEngine.load(find("tap-mnist"))
    pictures = np.stack([np.zeros(engine.header.image_shape)] * 2)
    plain = OnnxEngine._run_once

    def broken(self: OnnxEngine, *args: Any) -> dict[str, np.ndarray]:
        posterior = plain(self, *args)
        posterior["means"][0] = np.nan
        return posterior

    monkeypatch.setattr(OnnxEngine, "_run_once", broken)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")  # both in one batch
    posterior = engine.solve(pictures, Damage(0.1))
    assert posterior.status.tolist() == [Status.DIVERGED, Status.CONVERGED]


def test_a_hole_is_filled_in_as_many_iterations_however_large_the_picture_around_it() -> None:
    """By the average change of all pixels, nearly all of them known, the solver would stop at once."""
    from restore.inference.candidates import Prior

    trained = load(find("conv-art"))
    several = replace(trained.description.inference, max_iter=6)
    swept = replace(trained, description=replace(trained.description, inference=several))
    prior, actual = Prior(Engine.of(swept, torch.device("cpu"))), []
    for size in (60, 120):
        rows, columns = np.mgrid[:size, :size]
        stroke = (np.abs(columns - size // 2) < 5).astype(float)
        hidden = (np.abs(rows - size // 2) < 6) & (np.abs(columns - size // 2) < 6)
        actual.append(prior.solve(np.where(hidden, 0, stroke)[None], Damage(hidden=hidden[None])))
    assert actual[0].iterations[0] == actual[1].iterations[0] > 2


LEVELS_FALLING = (0.05, 0.01, 1e-3, 1e-6, 1e-12)


def changed_by(engine: Engine, picture: np.ndarray) -> np.ndarray:
    """The share of pixels that change in each picture (N, H, W) at each level, (levels, N)."""
    answers = (engine.solve(picture, Damage(p)).means.reshape(picture.shape) > 0.5 for p in LEVELS_FALLING)
    return np.array([(answer != (picture > 0.5)).mean((1, 2)) for answer in answers])


@pytest.mark.parametrize(
    "name", ["tap-mnist-25", *(pytest.param(name, marks=pytest.mark.thorough) for name in ("conv-mnist", "tap-mnist"))]
)
def test_the_smaller_p_is_the_fewer_pixels_change(name: str) -> None:
    """On noisy digits, drawn from a prior, however wrong p is: what binds pixels has a bound."""
    engine = Engine.of(load(find(name)), torch.device("cpu"))
    modes = load(find("tap-mnist")).modes[:12]
    clean = unpack(modes, 784).reshape(-1, 28, 28).numpy() > 0.5
    draw = np.random.default_rng(0)
    for flips in (0.1, 0.3):
        changed = changed_by(engine, (clean ^ (draw.random(clean.shape) < flips)).astype(float))
        # One of several likely solutions may give way to another; that is no more than some pixels of a digit.
        assert (np.diff(changed, axis=0) < 0.02).all() and (np.diff(changed.mean(1)) <= 1e-3).all(), flips
        assert changed[-1].max() == 0


@pytest.mark.parametrize("name", ["conv-text", pytest.param("conv-art", marks=pytest.mark.thorough)])
def test_noise_is_no_picture_however_weak_it_is_said_to_be(name: str) -> None:
    """A prior of all places could see paper, or ink, in noise, and find itself confirmed from place to place."""
    engine, draw = Engine.of(load(find(name)), torch.device("cpu")), np.random.default_rng(0)
    noise = np.stack([draw.random((64, 64)) < share for share in (0.1, 0.3, 0.5, 0.7, 0.9)])
    drawn = np.stack([PICTURES[drawing] > 0.5 for drawing in ("disc", "lines", "checkerboard")])
    noisy = [drawn ^ (draw.random(drawn.shape) < flips) for flips in (0.1, 0.3)]
    changed = changed_by(engine, np.concatenate([noise, *noisy]).astype(float))
    assert (np.diff(changed, axis=0) < 5e-3).all() and (np.diff(changed.mean(1)) <= 1e-3).all()
    assert changed[-1].max() == 0
