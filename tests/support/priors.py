"""Small priors for tests that need some prior, but none that knows anything, and engines of them."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import torch
from machines import random_rbm, seeded
from oracle import exact_moments
from torch import Tensor

from restore.families import Features, Spec
from restore.inference.torch_engine import Engine
from restore.learning.gradients.independent import independent_units
from restore.priors import RBM, ConditionalRBM, LayeredPrior
from restore.priors.bits import pack
from restore.registry import UNITS
from restore.units import Bernoulli, Units
from restore.units.layers import blank, layer_of
from restore.zoo import TrainedPrior, save
from restore.zoo.description import Description
from restore.zoo.inference import Inference


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
    description = Description(name, shape, 127, "noise", "none", inference=inference, hidden=hidden)
    drawn = torch.rand(modes, pixels, generator=generator) < 0.3
    return TrainedPrior(description, machine, torch.full((pixels,), 0.3), pack(drawn))


def saved_prior(folder: Path, shape: tuple[int, int] = (10, 12)) -> Path:
    """The folder of such a prior, written below `folder`."""
    target = folder / f"random-{shape[1]}x{shape[0]}"
    save(target, random_prior(shape, name=target.name), "# A random prior\n\n## Scores\n\nNone.\n")
    return target


def random_conditional(shape: tuple[int, int] = (10, 12), hidden: int = 5, max_iter: int = 50) -> TrainedPrior:
    """A conditional prior with random weights, which mostly copies what it sees."""
    prior = random_prior(shape, hidden, modes=0, name="seer")
    generator = torch.Generator().manual_seed(1)
    pixels = shape[0] * shape[1]
    inputs = 6 * torch.eye(pixels), 0.2 * torch.randn(hidden, pixels, generator=generator)
    machine = ConditionalRBM(
        RBM.binary(prior.machine.weights, torch.full((pixels,), -3.0), torch.zeros(hidden)), *inputs
    )
    description = replace(
        prior.description,
        family="crbm",
        task="flip:0.1",
        inference=Inference("sum_product", max_iter=max_iter, tol=1e-3, damping=0.0, modes=0, starts=0),
    )
    return TrainedPrior(description, machine, prior.pixel_means, prior.modes)


def random_deep_prior(
    shape: tuple[int, int] = (10, 12), hidden: int = 6, deeper: tuple[int, ...] = (4, 3)
) -> TrainedPrior:
    """A prior with several layers of hidden units and random weights."""
    prior = random_prior(shape, hidden, modes=0, name="layers")
    generator = torch.Generator().manual_seed(2)
    assert isinstance(prior.machine, RBM)
    upper = [torch.randn(pair, generator=generator) for pair in pairwise((hidden, *deeper))]
    biases = [torch.randn(size, generator=generator) for size in (hidden, *deeper)]
    machine = LayeredPrior(
        (prior.machine.visible, *(Bernoulli(bias) for bias in biases)), (prior.machine.weights, *upper)
    )
    description = replace(prior.description, family="deep", deeper=deeper, inference=Inference(modes=0, starts=1))
    return replace(prior, description=description, machine=machine)


def random_convolutional_deep_prior(
    shape: tuple[int, int] = (12, 8), family: str = "deep_convolutional", first: int = 1
) -> TrainedPrior:
    """A prior of layers of features of every type, the first at every `first`-th place, with random weights."""
    inference = Inference("up_and_down", max_iter=40, tol=1e-7, damping=0.0, modes=0, starts=1)
    layers = (
        Features(4, 3 * first, first, "rectified"),
        Features(4, 3, 1, "spin"),
        Features(5, 2, 2, "rectified"),
        Features(3, 6, 2, "truncated-gaussian"),
    )
    spec = Spec(family=family, layers=layers)
    means = torch.full((shape[0] * shape[1],), 0.3)
    machine = spec.kind.initial(spec, shape, means, 0.4, torch.Generator().manual_seed(0))
    description = Description("layers", shape, 127, "noise", "none", inference=inference, **vars(spec))
    return TrainedPrior(description, machine, means, pack(torch.zeros(0, len(means))))


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


SHAPE = (3, 4)

PIXELS = 12


def trained(scale: float = 0.3, **settings: object) -> TrainedPrior:
    machine = random_rbm(PIXELS, 6, scale=scale, dtype=torch.float32)
    inference = Inference(**{"modes": 5, "starts": 4, "max_iter": 500, "tol": 1e-6} | settings)  # type: ignore[arg-type]
    return TrainedPrior(
        Description("tiny", SHAPE, 127, "made up", "tap", inference=inference, hidden=6),
        machine,
        exact_moments(machine).visible,
        pack(torch.bernoulli(torch.full((5, PIXELS), 0.5), generator=seeded(2))),
    )


def engine_of(**settings: object) -> Engine:
    return Engine.of(trained(**settings), torch.device("cpu"))


def some_images(count: int, seed: int = 1) -> Tensor:
    return torch.bernoulli(torch.full((count, PIXELS), 0.5), generator=seeded(seed))
