"""Small priors for tests that need some prior, but none that knows anything."""

from __future__ import annotations

from pathlib import Path

import torch

from restore.description import Description, Inference
from restore.priors import RBM
from restore.zoo import TrainedPrior, save


def random_prior(
    shape: tuple[int, int] = (10, 12), hidden: int = 5, modes: int = 7, name: str = "random", seed: int = 0
) -> TrainedPrior:
    """A prior with random weights for images of a shape."""
    generator = torch.Generator().manual_seed(seed)
    pixels = shape[0] * shape[1]
    machine = RBM.binary(
        0.3 * torch.randn(pixels, hidden, generator=generator),
        -torch.rand(pixels, generator=generator),
        torch.zeros(hidden),
    )
    inference = Inference(modes=modes, starts=3)
    description = Description(name, shape, hidden, 127, "noise", "none", inference=inference)
    drawn = torch.rand(modes, pixels, generator=generator) < 0.3
    return TrainedPrior(description, machine, torch.full((pixels,), 0.3), drawn.float())


def saved_prior(folder: Path, shape: tuple[int, int] = (10, 12)) -> Path:
    """The folder of such a prior, written below `folder`."""
    target = folder / f"random-{shape[1]}x{shape[0]}"
    save(target, random_prior(shape, name=target.name), "# A random prior\n\n## Scores\n\nNone.\n")
    return target
