"""The study of conditional RBMs, from recipes to tables, on a data set made on the spot."""

from __future__ import annotations

import torch
from crbm_noise import DrawnOnce
from machines import seeded

from restore.channels import parse_task


def test_damage_that_is_drawn_once_is_the_same_in_every_epoch() -> None:
    images = (torch.rand(20, 784, generator=seeded(0)) < 0.3).float()
    course, index = DrawnOnce(images, images[:0], (28, 28), parse_task("flip:0.2"), seed=3), torch.arange(20)
    first, again = (course.batch(index.flip(0) if seed else index, seeded(seed)) for seed in (0, 1))
    assert torch.equal(first.observed, again.observed.flip(0)) and torch.equal(first.clean, images)
    assert 0.15 < float((first.observed != images).float().mean()) < 0.25
    assert not torch.equal(first.observed, DrawnOnce(images, images[:0], (28, 28), course.task, 4).observed)
