"""Trace a prior with its solver into an ONNX graph, from grey values to marginals.

The graph runs the library's own code: the modules below call what the engine calls, and PyTorch's exporter records it.
Nothing here depends on the kind of layers or solver, or on the kind of pixels once an image has become evidence.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import onnx
import torch
from onnxscript.optimizer import optimize
from torch import Tensor

from restore.channels import BitFlip, GaussianNoise, Occlusion, SaltAndPepper
from restore.families import OBSERVED
from restore.fields import Fields
from restore.inference.onnx.contract import GraphFacts
from restore.inference.torch_engine import grey_polarity_gain, polarity_gain, solve
from restore.solvers import Solution, solver_of
from restore.status import Status
from restore.zoo import TrainedPrior, assembled
from restore.zoo.description import Description

# The operators of a graph, and the format of its file: those that ONNX Runtime reads from version 1.20 on.
OPSET = 18
IR_VERSION = 8

# Stands for the dots in tensor names, which attributes of a module must not have.
DOT = "__"

# Height and width of the example for a graph that takes images of any size.
FREE_SHAPE = (41, 37)

# Constants with more elements are not computed in advance.
FOLDED = 64


class Graph(torch.nn.Module):
    """Base of the graphs, which differ in their inputs: a prior's header, and the tensors of its weights file."""

    def __init__(self, header: Description, stored: Mapping[str, Tensor]) -> None:
        super().__init__()
        self.header = header
        for name, value in stored.items():
            self.register_buffer(name.replace(".", DOT), value)

    def trained(self, images: Tensor) -> TrainedPrior:
        """The prior for images (N, H, W), in their size if it takes any."""
        stored = {name.replace(DOT, "."): value for name, value in self.named_buffers()}
        prior = assembled(self.header, stored)
        return prior.of_size((images.shape[1], images.shape[2])) if self.header.kind.any_size else prior


def _answer(
    prior: TrainedPrior, evidence: Fields, valid: Tensor, max_iter: Tensor, tol: Tensor, damping: Tensor
) -> tuple[Tensor, ...]:
    """The outputs for evidence (images, D); those of images not `valid`, (images,), are marked as failed."""
    # Tensors instead of numbers, as they are inputs of the graph.
    settings: dict[str, Any] = {"max_iter": max_iter, "tol": tol, "damping": damping}
    solver = replace(solver_of(prior.description.inference), **settings)
    solution = solve(prior, solver, evidence)
    # The checks of `check_settings`.
    valid = valid & (max_iter >= 1) & (tol >= 0) & (damping >= 0) & (damping < 1)
    return _outputs(solution, valid, prior.description)


class Flips(Graph):
    """Restores a binary image whose damage is given."""

    def forward(
        self, image: Tensor, p: Tensor, mask: Tensor, max_iter: Tensor, tol: Tensor, damping: Tensor
    ) -> tuple[Tensor, ...]:
        prior = self.trained(image)
        ink = _ink(image, self.header)
        channel = Occlusion(mask, BitFlip(p))
        finite = torch.isfinite(image).all(-1).all(-1)
        possible = (p >= 0) & (p <= 1)
        valid = finite & possible.all(-1).all(-1)
        outputs = _answer(prior, Fields(channel.evidence(ink).linear.flatten(1)), valid, max_iter, tol, damping)
        # Adding the image gives the mask its size, even if sizes are 1; the exporter would drop an `expand`.
        hidden = (mask + 0 * ink).flatten(1) > 0
        return (*outputs, polarity_gain(ink.flatten(1), hidden, prior.pixel_means))


class Grey(Graph):
    """Restores a grey image whose damage is given."""

    def forward(
        self, image: Tensor, sigma: Tensor, p: Tensor, mask: Tensor, max_iter: Tensor, tol: Tensor, damping: Tensor
    ) -> tuple[Tensor, ...]:
        prior = self.trained(image)
        # Adding the image gives these its size, even if sizes are 1; the exporter would drop an `expand`.
        pixels = image.flatten(1)
        covered = (mask + 0 * image).flatten(1) > 0
        noise = SaltAndPepper((p + 0 * image).flatten(1), GaussianNoise((sigma + 0 * image).flatten(1)))
        channel = Occlusion(covered, noise=noise)
        valid = torch.isfinite(image) & (p >= 0) & (p <= 1) & (sigma >= 0) & torch.isfinite(sigma)
        outputs = _answer(prior, channel.evidence(pixels), valid.all(-1).all(-1), max_iter, tol, damping)
        return (*outputs, grey_polarity_gain(pixels, channel, prior.pointwise))


class Shared(Graph):
    """Restores grey images with the same noise and mask, which share part of the work."""

    def forward(
        self, image: Tensor, sigma: Tensor, mask: Tensor, max_iter: Tensor, tol: Tensor, damping: Tensor
    ) -> tuple[Tensor, ...]:
        prior = self.trained(image)
        every = image.new_zeros(self.header.image_shape)
        channel = Occlusion((mask + every).flatten(1) > 0, noise=GaussianNoise((sigma + every).flatten(1)))
        valid = torch.isfinite(image).all(-1).all(-1) & ((sigma >= 0) & torch.isfinite(sigma)).all()
        pixels = image.flatten(1)
        outputs = _answer(prior, channel.evidence(pixels), valid, max_iter, tol, damping)
        return (*outputs, grey_polarity_gain(pixels, channel, prior.pointwise))


class Page(Graph):
    """Finds the ink of a grey page."""

    def forward(
        self, image: Tensor, mask: Tensor, max_iter: Tensor, tol: Tensor, damping: Tensor
    ) -> tuple[Tensor, ...]:
        prior = self.trained(image)
        valid = torch.isfinite(image).all(-1).all(-1)
        # Adding the image gives the mask its size, even if sizes are 1; the exporter would drop an `expand`.
        hidden = (mask + 0 * image).flatten(1) > 0
        evidence = Occlusion(hidden, GaussianNoise(1.0)).evidence(image.flatten(1))
        outputs = _answer(prior, evidence, valid, max_iter, tol, damping)
        return (*outputs, torch.zeros_like(outputs[-2]))


class Learnt(Graph):
    """Restores an image with a prior that has learnt the damage."""

    def forward(self, image: Tensor, max_iter: Tensor, tol: Tensor, damping: Tensor) -> tuple[Tensor, ...]:
        prior = self.trained(image)
        ink = _ink(image, self.header)
        valid = torch.isfinite(image).all(-1).all(-1)
        outputs = _answer(prior, Fields(ink.flatten(1)), valid, max_iter, tol, damping)
        return (*outputs, polarity_gain(ink.flatten(1), None, prior.pixel_means))


class Raw(Graph):
    """Restores from evidence of any origin: the log-odds that a pixel is 1, 0 where nothing is known."""

    def forward(self, field: Tensor, max_iter: Tensor, tol: Tensor, damping: Tensor) -> tuple[Tensor, ...]:
        valid = torch.isfinite(field).all(-1).all(-1)
        return _answer(self.trained(field), Fields(field.flatten(1)), valid, max_iter, tol, damping)


def _ink(image: Tensor, header: Description) -> Tensor:
    return (image > header.threshold / 255).to(image.dtype)


def _outputs(solution: Solution, valid: Tensor, header: Description) -> tuple[Tensor, ...]:
    """All outputs except `inversion`; failed images are marked without NaN."""
    sound = valid & (solution.status != int(Status.DIVERGED))
    if header.weighs:
        sound = sound & torch.isfinite(solution.log_partition)
    known = sound[:, None]
    kept = 1 if header.kind.any_size else None
    means = [torch.where(known, mean, 0.5) for mean in solution.means[:kept]]
    variances = [torch.where(known, variance, 0.25) for variance in solution.variances[:kept]]
    if not header.grey:  # a runtime's sigmoid may exceed 1 by a rounding error
        means[0], variances[0] = means[0].clamp(0, 1), variances[0].clamp_min(0)
    image, spread = (first.unflatten(1, header.image_shape) for first in (means[0], variances[0]))
    hidden = [value for pair in zip(means[1:], variances[1:], strict=True) for value in pair]
    return (
        # A separate output, even where it equals the mean.
        image + 0 if header.grey else (image > 0.5).to(image.dtype),
        image,
        spread,
        *hidden,
        *([torch.where(sound, solution.log_partition, -torch.inf)] if header.weighs else []),
        torch.where(valid, solution.iterations, 0),
        torch.where(sound, solution.residual, torch.inf),
        sound & (solution.status == int(Status.CONVERGED)),
    )


GRAPHS = {
    "flips and mask": Flips,
    "noise and mask": Grey,
    "one noise and mask": Shared,
    "page and mask": Page,
    "learnt": Learnt,
    "field": Raw,
}


def trace(facts: GraphFacts, stored: Mapping[str, Tensor]) -> onnx.ModelProto:
    """Make the graph of a prior from its weights file, with tensors under their names there (dots as `DOT`)."""
    graph = GRAPHS[facts.channel](facts.header, stored).eval()
    # A number of images, and sizes where these are free, that differ from all other sizes.
    free = facts.header.kind.any_size
    image = torch.zeros(3, *(FREE_SHAPE if free else facts.header.image_shape))
    # What is broadcast has sizes of 1, so that the exporter takes no size from it. Each input has its own tensor: the
    # same tensor twice would become one input.
    one = torch.full((1, 1, 1), 0.1)
    examples = {"image": image, "field": image, "p": one, "sigma": 2 * one, "mask": one > 1}
    observed = OBSERVED[facts.channel]
    (inputs, outputs) = facts.interface(facts.header)
    settings = (torch.tensor(9), torch.tensor(0.01), torch.tensor(0.25))
    sizes = tuple(_free_sizes(free) if examples[name] is image else None for name in observed)
    with _quiet():
        program = torch.onnx.export(
            graph,
            (*(examples[name] for name in observed), *settings),
            dynamo=True,
            dynamic_shapes=(*sizes, *(None for _ in settings)),
            input_names=tuple(inputs),
            output_names=tuple(outputs),
            opset_version=OPSET,
            external_data=False,
            optimize=False,
            verbose=False,
        )
        # Folding large constants would store what follows from the weights in addition to the weights.
        assert program is not None  # it is None only if a file name is given
        return optimize(program.model_proto, input_size_limit=FOLDED, output_size_limit=FOLDED)


def _free_sizes(of_images: bool) -> dict[int, Any]:
    """The dimensions of images (N, H, W) that are free in a graph."""
    if not of_images:
        return {0: torch.export.Dim("images", min=1)}
    # With bounds the exporter finds conditions on height and width that it cannot put into words.
    return dict.fromkeys(range(3), torch.export.Dim.DYNAMIC)


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence the exporter's remarks."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)
