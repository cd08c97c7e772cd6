"""Small priors of grey images for tests that need some prior, but none that knows anything."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import torch
from machines import seeded

from restore.learning.gradients.independent import independent_units
from restore.priors import RBM, LayeredPrior
from restore.priors.bits import pack
from restore.registry import UNITS
from restore.units import Units
from restore.units.layers import blank, layer_of
from restore.zoo import TrainedPrior, save
from restore.zoo.description import Description
from restore.zoo.inference import Inference

SPIKED, TRUNCATED = "truncated-gauss-bernoulli", "truncated-gaussian"


def grey_prior(
    visible: str = SPIKED,
    hidden_type: str = "bernoulli",
    *,
    shape: tuple[int, int] = (5, 7),
    hidden: int = 4,
    deeper: tuple[int, ...] = (),
    scale: float = 0.3,
    solver: str = "tap",
    curvature: float = 4.0,
    tol: float = 1e-5,
    starts: int = 1,
    name: str = "grey",
) -> TrainedPrior:
    """A prior of grey images with normal couplings; `curvature` is that of Gaussian hidden units."""
    draw, pixels = seeded(3), shape[0] * shape[1]
    images = torch.rand(40, pixels, generator=draw) ** 2
    images = torch.where(torch.rand(40, pixels, generator=draw) < 0.5, 0.0, images)
    if visible == "bernoulli":
        images = images.round()
    layer = independent_units(blank(visible, pixels, images), images)
    sizes = (pixels, hidden, *deeper)

    def drawn(size: int) -> Units:
        named = {
            "bias": 0.3 * torch.randn(size, generator=draw),
            "quadratic": torch.full((size,), curvature),
            "presence": torch.randn(size, generator=draw),
        }
        return layer_of(hidden_type, {name: named[name] for name in UNITS[hidden_type].parameters})

    above = tuple(drawn(size) for size in sizes[1:])
    # Half precision holds these exactly.
    couplings = tuple((scale * torch.randn(low, high, generator=draw)).half().float() for low, high in pairwise(sizes))
    machine = LayeredPrior((layer, *above), couplings) if deeper else RBM((layer, *above), couplings)
    header = Description(
        name,
        shape,
        127,
        "noise",
        "none",
        inference=Inference(solver=solver, max_iter=500, tol=tol, modes=0, starts=starts),  # type: ignore[arg-type]
        family="deep" if deeper else "rbm",
        visible=visible,
        hidden_type=hidden_type,
        deeper=deeper,
        hidden=hidden,
    )
    means = images.mean(0).clamp(0.01, 0.99)
    alone = layer.with_parameters({name: value.clone() for name, value in layer.parameters.items()})
    return TrainedPrior(header, machine, means, pack(images[:0]), alone if header.grey else None)


def saved_grey(folder: Path, prior: TrainedPrior) -> Path:
    """The folder of a prior, written below `folder`."""
    target = folder / prior.description.name
    save(target, prior, "# A prior of grey images\n\n## Scores\n\nNone.\n")
    return target
