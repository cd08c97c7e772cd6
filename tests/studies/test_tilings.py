"""The choice of messages between windows."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from tilings import _fullest, best_tiling

from restore import zoo
from restore.inference.torch_engine import Engine
from restore.priors import RBM
from restore.zoo.description import Description
from restore.zoo.inference import Inference
from restore.zoo.tiling import Tiling

SIDE = 2


def alike(strength: float, tiling: Tiling) -> Engine:
    """A prior of windows whose pixels are all black or all white, either way as probable."""
    pixels = SIDE**2
    machine = RBM.binary(
        torch.full((pixels, 1), strength),
        torch.full((pixels,), -strength / 2),
        torch.full((1,), -strength * pixels / 2),
    )
    inference = Inference(modes=0, starts=1, max_iter=30, tol=1e-3)
    header = Description("alike", (SIDE, SIDE), 127, "nothing", "none", inference=inference, tiling=tiling, hidden=1)
    prior = zoo.TrainedPrior(header, machine, torch.full((pixels,), 0.5), torch.zeros(0, 1, dtype=torch.uint8))
    return Engine.of(prior, torch.device("cpu"))


@pytest.mark.filterwarnings("ignore:.*independent pixels")
def test_windows_that_know_little_listen_to_others(monkeypatch: pytest.MonkeyPatch) -> None:
    # Of an image of one colour each window sees four pixels, and its neighbours see more.
    silent = Tiling(overlap=2, rounds=0, worth=0.0)
    monkeypatch.setattr("tilings.TASKS", ("flip:0.2",))
    found = best_tiling(alike(4.0, silent), [torch.ones(40, 40)])
    assert found.rounds > 0 and found.worth > 0
    assert found == replace(silent, overlap=found.overlap, rounds=found.rounds, worth=found.worth)


@pytest.mark.filterwarnings("ignore:.*independent pixels")
def test_without_anything_to_gain_the_tiling_stays() -> None:
    # No window says anything about its pixels, so that nothing is sent.
    own = Tiling(overlap=2, rounds=1, worth=0.2)
    assert best_tiling(alike(0.0, own), [torch.ones(20, 20)]) == own


def test_the_piece_with_most_edges_is_tried() -> None:
    image = torch.zeros(6, 9)
    image[4, 7] = 1
    assert torch.equal(_fullest(image, (3, 4)), image[3:6, 4:8])
    assert _fullest(image, (100, 100)).shape == image.shape
    assert _fullest(image, (100, 4)).shape == (6, 4)
