"""Windows around holes: they give what whole parts give, and nothing else is solved."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from restore.channels.damage import Damage, Observed
from restore.families import Features, Spec
from restore.inference.candidates import Prior
from restore.inference.engine import PictureEngine, Posterior
from restore.inference.open import open_engine
from restore.inference.tiles import blend
from restore.inference.tiles.blocks import PART_SIDE
from restore.inference.tiles.holes import reach_of
from restore.inference.torch_engine import Engine
from restore.priors import ConvolutionalDBM
from restore.zoo import TrainedPrior, describe, find
from restore.zoo.description import Description
from restore.zoo.inference import Inference

HOLE = Damage(hidden=np.ones((1, 1, 1), bool))


def picture(shape: tuple[int, int], spots: int, seed: int = 0) -> Observed:
    """Stripes that bend, with holes of up to nine pixels a side, some at the borders."""
    draw, (down, across) = np.random.default_rng(seed), np.indices(shape)
    hidden = np.zeros(shape, bool)
    hidden[:3, 40:60] = hidden[-2:, -2:] = True
    for top, left, size in zip(*(draw.integers(0, most, spots) for most in (*shape, 10)), strict=True):
        hidden[top : top + size, left : left + size] = True
    return Observed((np.sin(down / 5) + np.cos(across / 7) > 0).astype(float), Damage(hidden=hidden))


def answer(engine: PictureEngine, seen: Observed, invert: bool = False) -> Posterior:
    return Prior(engine, invert).posterior(seen, lambda share: None)


@pytest.fixture
def whole(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Answers from whole parts."""

    def solved(*question: Any) -> Posterior:
        with monkeypatch.context() as patch:
            patch.setattr(blend, "reach_of", lambda header, damage: 0)
            return answer(*question)

    yield solved


@pytest.mark.parametrize(("name", "invert"), [("conv-text", False), ("conv-art", True)])
def test_windows_give_what_parts_give_but_for_the_last_bit(name: str, invert: bool, whole: Any) -> None:
    engine, seen = open_engine(name, engine="onnx"), picture((PART_SIDE + 61, 150), 9)
    windows, parts = answer(engine, seen, invert), whole(engine, seen, invert)
    np.testing.assert_allclose(windows.means, parts.means, rtol=0, atol=1e-7)
    np.testing.assert_allclose(windows.variances, parts.variances, rtol=0, atol=1e-7)
    for name in ("iterations", "blind", "inversion"):
        np.testing.assert_array_equal(getattr(windows, name), getattr(parts, name))
    assert windows.residual > 0


LAYOUTS = (
    (Features(2, 3, 1, "spin"),),
    (Features(2, 3, 1, "rectified"), Features(3, 2, 2, "spin"), Features(3, 3, 1, "spin")),
    (Features(2, 6, 2, "spin"), Features(2, 3, 1, "rectified"), Features(2, 2, 2, "spin")),
    (Features(2, 5, 1, "spin"), Features(2, 9, 3, "spin")),
)


def small_engine(layers: tuple[Features, ...]) -> Engine:
    settings = Inference("up_and_down", max_iter=1, damping=0.0, modes=0, starts=1)
    spec = Spec(family="deep_convolutional", layers=layers)
    header = Description("small", (24, 24), 127, "", "matched", inference=settings, **vars(spec))
    draw = torch.Generator().manual_seed(3)
    shared = {name: 0.4 * torch.randn(shape, generator=draw) for name, shape in header.shapes.items() if "." in name}
    shared["units.0.centre"] = torch.full((1,), 0.4)
    machine = ConvolutionalDBM.of(shared, (24, 24), [(layer.stride, layer.units) for layer in layers])
    prior = TrainedPrior(header, machine, torch.full((24 * 24,), 0.4), torch.zeros(0, 24 * 24, dtype=torch.uint8))
    return Engine.of(prior, torch.device("cpu"))


@pytest.mark.parametrize("layers", LAYOUTS, ids=len)
def test_windows_reach_as_far_as_a_sweep_carries(layers: tuple[Features, ...], whole: Any) -> None:
    engine, seen = small_engine(layers), picture((150, 131), 3)
    assert reach_of(engine.header, HOLE) > 0
    np.testing.assert_allclose(answer(engine, seen).means, whole(engine, seen).means, atol=1e-6)


def test_only_what_is_around_holes_is_solved() -> None:
    solved = list[int]()

    class Counted(Engine):
        def solve(self, pictures: np.ndarray, *others: Any) -> Posterior:
            solved.append(pictures.size)
            return super().solve(pictures, *others)

    engine = Counted(**vars(small_engine(LAYOUTS[1])))
    hidden = np.zeros((600, 500), bool)
    answer(engine, Observed(np.ones((600, 500)), Damage(hidden=hidden)))
    assert not solved
    hidden[200, 100] = True
    found = answer(engine, Observed(np.ones((600, 500)), Damage(hidden=hidden)))
    assert 0 < sum(solved) <= (2 * reach_of(engine.header, HOLE) + 2 * engine.header.step) ** 2
    assert (found.means[0][~hidden] == 1).all() and 0 < found.means[0][200, 100] < 1


def test_other_damage_and_machines_have_no_bound() -> None:
    header = describe(find("conv-text"))
    assert reach_of(header, HOLE) == 16
    more = replace(header.inference, max_iter=2)
    assert not reach_of(replace(header, inference=more), HOLE)
    assert not any(reach_of(header, replace(HOLE, **{kind: 0.1})) for kind in ("p", "sigma"))
    assert not reach_of(header, Damage())
    assert not any(reach_of(describe(find(name)), HOLE) for name in ("conv-scan", "conv-mnist", "em-photographs"))
