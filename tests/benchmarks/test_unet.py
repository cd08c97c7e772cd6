"""The network that benchmarks compare priors with."""

from __future__ import annotations

from itertools import count
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from benchmarks.filters import unet
from benchmarks.filters.binary import Seen
from restore.learning.course import Pages
from restore.units import Bernoulli

SIDE = 16


def test_the_network_learns_to_restore(monkeypatch: pytest.MonkeyPatch) -> None:
    # A step takes a second, on any processor.
    steps = count()
    monkeypatch.setattr(unet, "time", SimpleNamespace(process_time=lambda: float(next(steps))))
    draw = np.random.default_rng(0)
    stripes = np.arange(SIDE) // 4 % 2 > 0
    clean = np.stack([np.roll(np.broadcast_to(stripes, (SIDE, SIDE)), move, 1) for move in draw.integers(8, size=64)])
    course = unet.course_for(torch.from_numpy(clean).flatten(1).float(), (SIDE, SIDE), ("flip:0.1",))
    network = unet.trained(course, 80, seed=0, width=4)
    flipped = clean ^ (draw.random(clean.shape) < 0.1)
    nothing = np.zeros((SIDE, SIDE), bool)
    left = [network.repair(Seen(seen, 0.1, nothing), 0.0) != truth for seen, truth in zip(flipped, clean, strict=True)]
    assert np.mean(left) < 0.03


def test_the_network_learns_to_read_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    steps, side = count(), 48
    monkeypatch.setattr(unet, "time", SimpleNamespace(process_time=lambda: float(next(steps))))
    draw = np.random.default_rng(0)
    paper = draw.random((48, side, side)) < 0.9
    grey = np.where(paper, 0.8, 0.3) * np.linspace(0.4, 1, side) + 0.02 * draw.standard_normal(paper.shape)
    levels = (255 * grey).clip(0, 255).astype(np.uint8) & 0xFE
    joined = torch.from_numpy(levels | paper).flatten(1).float() / 255
    even = Bernoulli(torch.zeros(side * side))
    network = unet.trained(Pages(joined, joined[:0], (side, side), None, even), 300, seed=0, width=4)
    # A page of another size, lit from the other side.
    read = np.concatenate([network.read(page[:, ::-1][:45, :43]) for page in levels[:8]])
    truth = np.concatenate([~page[:, ::-1][:45, :43] for page in paper[:8]])
    assert np.mean(read != truth) < 0.03
