"""What a prior is trained on: its first parameters, its mini-batches, and the error it is judged by.

`fit` depends on no kind of prior; a course does. An RBM sees clean images. A conditional RBM sees pairs of a damaged
image, damaged anew each time, and its clean original; it is judged by restoring other images.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Protocol, TypeVar

import torch
from torch import Tensor

from restore.channels import Task
from restore.couplings import Dense
from restore.errors import TrainingError
from restore.fields import Fields, stacked
from restore.learning.gradients.independent import independent_units
from restore.learning.rules.contract import Pairs, Restorations
from restore.learning.run.judging import Judged, Trial, verdict
from restore.priors import RBM, ConditionalRBM, LayeredPrior
from restore.registry import UNITS
from restore.solvers import solver_of
from restore.units import Bernoulli, Units
from restore.units.layers import blank
from restore.zoo.inference import Inference

# Pseudo-counts for a pixel's mean, so that a constant pixel still has finite log-odds.
PSEUDO_COUNT = 1.0

# How many images are restored side by side when a prior is judged.
VALIDATION_BATCH = 1000

PriorT = TypeVar("PriorT", LayeredPrior, ConditionalRBM)
BatchT = TypeVar("BatchT", Tensor, Pairs, Restorations, covariant=True)


class Course(Protocol[PriorT, BatchT]):
    """Training images, and how a prior learns from them."""

    @property
    def images(self) -> Tensor:
        """Clean training images (N, D), on the device to train on."""

    def initial(self, hidden: int, weight_scale: float, generator: torch.Generator) -> PriorT:
        """The prior before the first step; weights are drawn from N(0, weight_scale²)."""

    def batch(self, index: Tensor, generator: torch.Generator) -> BatchT:
        """The mini-batch of the images with these indices."""

    def judged(self, prior: PriorT, inference: Inference) -> Judged | None:
        """How well a prior restores held-out images; None if there are none."""


def pixel_means(images: Tensor) -> Tensor:
    """Mean of each pixel over images (N, D) in [0, 1], kept inside (0, 1) by a pseudo-count; shape (D,)."""
    return (images.sum(0) + PSEUDO_COUNT / 2) / (len(images) + PSEUDO_COUNT)


def initial_prior(images: Tensor, hidden: int, weight_scale: float, generator: torch.Generator) -> RBM:
    """A binary RBM with the images' pixel means and almost no correlations: N(0, scale²) weights, zero hidden bias."""
    weights = torch.randn(images.shape[1], hidden, generator=generator, device=images.device) * weight_scale
    return RBM.binary(weights, torch.logit(pixel_means(images)), torch.zeros(hidden, device=images.device))


def wider(machine: RBM, count: int, weight_scale: float, seed: int) -> RBM:
    """Add hidden units to a binary machine, with weights from N(0, weight_scale²) and zero bias."""
    weights, bias = machine.weights, machine.hidden.parameters["bias"]
    generator = torch.Generator(weights.device).manual_seed(seed)
    drawn = torch.randn(len(weights), count, generator=generator, device=weights.device) * weight_scale
    return RBM.binary(
        torch.cat([weights, drawn], 1), machine.visible.parameters["bias"], torch.cat([bias, bias.new_zeros(count)])
    )


def grey_pixels(kind: str, images: Tensor) -> Units:
    """Independent grey pixels with the images' statistics; see `independent_units`."""
    return independent_units(blank(kind, images.shape[1], images), images)


def independent_pixels(kind: str, images: Tensor) -> Units:
    """Independent pixels with the images' statistics, binary or grey."""
    return Bernoulli(torch.logit(pixel_means(images))) if UNITS[kind].bits else grey_pixels(kind, images)


@dataclass(frozen=True)
class CleanImages:
    """The course of an RBM, or of a deep machine.

    Attributes:
        images: training images (N, D), binary or grey levels in [0, 1], as `pixels` says.
        start: the prior before the first step, if it is given.
        pixels, hidden_type: unit types, as in `restore.registry.UNITS`.
        deeper: numbers of units in hidden layers above the first.
        trial: how priors are judged; None if they are not.
    """

    images: Tensor
    start: LayeredPrior | None = None
    pixels: str = "bernoulli"
    hidden_type: str = "bernoulli"
    deeper: tuple[int, ...] = ()
    trial: Trial | None = None

    def initial(self, hidden: int, weight_scale: float, generator: torch.Generator) -> LayeredPrior:
        if self.start is not None:
            return self.start
        if UNITS[self.pixels].bits and UNITS[self.hidden_type].bits and not self.deeper:
            return initial_prior(self.images, hidden, weight_scale, generator)
        sizes = (self.images.shape[1], hidden, *self.deeper)
        layers = (
            independent_pixels(self.pixels, self.images),
            *(blank(self.hidden_type, size, self.images) for size in sizes[1:]),
        )
        couplings = tuple(
            Dense(torch.randn(pair, generator=generator, device=self.images.device) * weight_scale)
            for pair in pairwise(sizes)
        )
        return LayeredPrior(layers, couplings) if self.deeper else RBM(layers, couplings)

    def batch(self, index: Tensor, generator: torch.Generator) -> Tensor:
        return self.images[index]

    def judged(self, prior: LayeredPrior, inference: Inference) -> Judged | None:
        return None if self.trial is None else self.trial.judged(prior, inference)


@dataclass(frozen=True)
class RestoredImages:
    """The course of an unconditional prior that learns by restoring: mini-batches are images under evidence.

    Attributes:
        course: the course on the same images when they are seen clean.
        image_shape: (H, W).
        tasks: the damage. About as many images of a mini-batch undergo each task as any other.
        independent: pixels as they would be without correlations; their posterior means are the starts.
    """

    course: CleanImages
    image_shape: tuple[int, int]
    tasks: tuple[Task, ...]
    independent: Units

    @property
    def images(self) -> Tensor:
        return self.course.images

    def initial(self, hidden: int, weight_scale: float, generator: torch.Generator) -> LayeredPrior:
        return self.course.initial(hidden, weight_scale, generator)

    def judged(self, prior: LayeredPrior, inference: Inference) -> Judged | None:
        return self.course.judged(prior, inference)

    def batch(self, index: Tensor, generator: torch.Generator) -> Restorations:
        clean, count = self.images[index], len(self.tasks)
        # Mini-batches smaller than the number of tasks get all of them in turn.
        first = int(torch.randint(count, (), generator=generator, device=generator.device))
        numbers = [(first + place) % count for place in range(count)]
        fields, told = list[Fields](), list[Tensor]()
        for number, part in zip(numbers, clean.tensor_split(count), strict=True):
            if len(part):
                observed, channel = self.tasks[number].damage(part, self.image_shape, generator)
                fields.append(channel.evidence(observed))
                told.append(torch.full((len(part),), number, device=clean.device))
        evidence = stacked(fields)
        return Restorations(clean, evidence, self.independent.moments(evidence)[0], torch.cat(told))


@dataclass(frozen=True)
class DamagedImages:
    """The course of a conditional RBM.

    Attributes:
        images: clean binary training images (N, D).
        validation: other clean binary images (M, D) to be judged by; M may be 0.
        image_shape: (H, W).
        task: the damage.
        seed: seed of the damage of the validation images, which is the same in every epoch.
        start: the machine before the first step, if it is given.
    """

    images: Tensor
    validation: Tensor
    image_shape: tuple[int, int]
    task: Task
    seed: int = 0
    start: RBM | None = None

    def __post_init__(self) -> None:
        for name, values in (("training", self.images), ("validation", self.validation)):
            # Written so that NaN fails too.
            if not bool(((values == 0) | (values == 1)).all()):
                raise TrainingError(f"{name} images hold other values than 0 and 1; cut them to black and white first")

    def initial(self, hidden: int, weight_scale: float, generator: torch.Generator) -> ConditionalRBM:
        machine = self.start or initial_prior(self.images, hidden, weight_scale, generator)
        pixels = self.images.shape[1]
        draw = torch.randn(machine.hidden.size, pixels, generator=generator, device=self.images.device)
        return ConditionalRBM(machine, self.images.new_zeros(pixels, pixels), draw * weight_scale)

    def batch(self, index: Tensor, generator: torch.Generator) -> Pairs:
        clean = self.images[index]
        return Pairs(self.task.damage(clean, self.image_shape, generator).observed, clean)

    @cached_property
    def damaged(self) -> Tensor:
        """The validation images as the prior sees them."""
        generator = torch.Generator(self.validation.device).manual_seed(self.seed)
        return self.task.damage(self.validation, self.image_shape, generator).observed

    def judged(self, prior: ConditionalRBM, inference: Inference) -> Judged | None:
        if not len(self.validation):
            return None
        solver = solver_of(inference)
        return verdict(
            [solver.solve(prior.given(part)) for part in self.damaged.split(VALIDATION_BATCH)], self.validation
        )
