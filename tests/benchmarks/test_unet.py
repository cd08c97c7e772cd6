"""The network that benchmarks compare priors with."""

from __future__ import annotations

from itertools import count
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from benchmarks.filters import unet
from benchmarks.filters.binary import Seen

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
