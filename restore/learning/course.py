"""A training problem: its initial parameters, mini-batches and validation error.

A course has `images` (N, D), `initial`, `batch`, and `judged`, which is None where there is nothing to judge by. An RBM
sees clean images. A conditional RBM sees pairs of a damaged image, damaged anew each time, and its clean original.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor

from restore.channels import Channel, Damage, Task, parse_task
from restore.couplings import Dense
from restore.errors import TrainingError
from restore.fields import Fields, stacked
from restore.learning.gradients.independent import independent_units, pixel_means
from restore.learning.rules.contract import Pairs, Restorations
from restore.priors import RBM, ConditionalRBM, LayeredPrior
from restore.registry import SOLVERS, UNITS
from restore.solvers import Solution, solver_of
from restore.status import Status
from restore.units import Bernoulli, Units
from restore.units.layers import blank
from restore.zoo.inference import Inference

if TYPE_CHECKING:
    from restore.learning.recipe.recipe import Recipe

# The number of images restored side by side when a prior is judged.
VALIDATION_BATCH = 1000

# A prior in training is judged by at most this many images: enough to compare epochs, and the time belongs to learning.
JUDGED_IMAGES = 500

# Pages are seen with black and white moved by at most this share of the grey scale, with a gamma of 1 up to this
# difference, and half of them with up to this share of the pixels hidden. Several judge a machine at a time.
DARKEST, GAMMA, MOST_HIDDEN, PAGES_AT_ONCE = 0.15, 0.3, 0.2, 20

# The most iterations of the solver that judges.
JUDGE_ITERATIONS = 100


class Judged(NamedTuple):
    """The score on held-out images: share of wrong pixels, or mean squared error; share that converged."""

    error: float
    converged: float


@dataclass(frozen=True)
class Trial:
    """Held-out images (M, D), damaged once, to judge a prior that knows the damage.

    Every restoration starts from the posterior mean of independent pixels.
    """

    clean: Tensor
    observed: Tensor
    channel: Channel
    start: Tensor
    grey: bool

    @classmethod
    def of(
        cls, clean: Tensor, task: str, image_shape: tuple[int, int], pixels: Units, seed: int, *, grey: bool
    ) -> Trial:
        """Damage the first of the images (M, D) by a task with a seed; `pixels` are independent units."""
        clean = clean[:JUDGED_IMAGES]
        generator = torch.Generator(clean.device).manual_seed(seed)
        observed, damage = parse_task(task, grey=grey).damage(clean, image_shape, generator)
        channel = damage.channel(grey)
        start, _ = pixels.moments(channel.evidence(observed))
        return cls(clean, observed, channel, start, grey)

    def judged(self, prior: LayeredPrior, inference: Inference) -> Judged:
        """Judge a prior by restoring them, from one start each if the solver takes starts."""
        solver = solver_of(replace(inference, max_iter=min(inference.max_iter, JUDGE_ITERATIONS)))
        machine = prior.tilt(self.channel.evidence(self.observed))
        start = self.start if SOLVERS[inference.solver].starts else None
        return verdict([solver.solve(machine, start)], self.clean, grey=self.grey)


def verdict(parts: Sequence[Solution], clean: Tensor, *, grey: bool = False) -> Judged:
    """Compare the solutions for damaged images with the clean ones (M, D), in the same order."""
    means = torch.cat([part.means[0] for part in parts])
    wrong = (means - clean).square() if grey else ((means > 0.5) != (clean > 0.5)).double()
    # Where the solver diverged nothing was restored; NaN would count as black.
    error = torch.where(means.isnan(), 1.0, wrong.double()).mean()
    converged = torch.cat([part.status for part in parts]) == Status.CONVERGED
    return Judged(float(error), float(converged.double().mean()))


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
    return independent_units(blank(kind, images.shape[1], images), images)


def independent_pixels(kind: str, images: Tensor) -> Units:
    """Independent pixels with the images' statistics, binary or grey."""
    return Bernoulli(torch.logit(pixel_means(images))) if UNITS[kind].bits else grey_pixels(kind, images)


@dataclass(frozen=True)
class CleanImages:
    """The course of an RBM, or of a deep machine; without a trial priors are not judged."""

    images: Tensor
    start: LayeredPrior | None = None
    pixels: str = "bernoulli"
    hidden_type: str = "bernoulli"
    deeper: tuple[int, ...] = ()
    trial: Trial | None = None

    def initial(self, hidden: int, weight_scale: float, generator: torch.Generator) -> LayeredPrior:
        if self.start is not None:
            return self.start
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
        return self.images.index_select(0, index)

    def judged(self, prior: LayeredPrior, inference: Inference) -> Judged | None:
        return None if self.trial is None else self.trial.judged(prior, inference)


@dataclass(frozen=True, kw_only=True)
class RestoredImages(CleanImages):
    """The course of an unconditional prior that learns by restoring: mini-batches are images under evidence.

    About as many images of a mini-batch undergo each task as any other. Solvers start at the
    posterior means of `independent` pixels.
    """

    image_shape: tuple[int, int]
    tasks: tuple[Task, ...]
    independent: Units

    def batch(self, index: Tensor, generator: torch.Generator) -> Restorations:  # type: ignore[override]
        clean, count = self.images.index_select(0, index), len(self.tasks)
        # Mini-batches smaller than the number of tasks get all of them in turn.
        first = int(torch.randint(count, (), generator=generator, device=generator.device))
        numbers = [(first + offset) % count for offset in range(count)]
        fields, tasks, parts = list[Fields](), list[Tensor](), list(clean.tensor_split(count))
        for row, number in enumerate(numbers):
            task = self.tasks[number]
            if len(parts[row]):
                observed, damage = task.damage(parts[row], self.image_shape, generator)
                fields.append(damage.channel(task.grey).evidence(observed))
                tasks.append(torch.full((len(parts[row]),), number, device=clean.device))
        evidence = stacked(fields)
        return Restorations(torch.cat(parts), evidence, self.independent.moments(evidence)[0], torch.cat(tasks))


@dataclass(frozen=True)
class DamagedImages:
    """The course of a conditional RBM, on clean binary images (N, D), judged by others (M, D), M may be 0.

    The damage of the validation images is drawn once, by the seed.
    """

    images: Tensor
    validation: Tensor
    image_shape: tuple[int, int]
    task: Task
    seed: int = 0
    start: RBM | None = None

    def initial(self, hidden: int, weight_scale: float, generator: torch.Generator) -> ConditionalRBM:
        machine = self.start or initial_prior(self.images, hidden, weight_scale, generator)
        pixels = self.images.shape[1]
        draw = torch.randn(machine.hidden.size, pixels, generator=generator, device=self.images.device)
        return ConditionalRBM(machine, self.images.new_zeros(pixels, pixels), draw * weight_scale)

    def batch(self, index: Tensor, generator: torch.Generator) -> Pairs:
        clean = self.images.index_select(0, index)
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
        parts = [solver.solve(prior.given(part)) for part in self.damaged.split(VALIDATION_BATCH)]
        return verdict(parts, self.validation)


@dataclass(frozen=True)
class Pages:
    """The course of a conditional convolutional machine: grey pages (N, D), where a level's lowest bit is the truth.

    A page is seen lighter or darker each time, and some of its pixels are hidden, so that the machine can tell what
    they are. Those held out, (M, D), judge it.
    """

    images: Tensor
    validation: Tensor
    image_shape: tuple[int, int]
    start: Any
    independent: Units

    def initial(self, hidden: int, weight_scale: float, generator: torch.Generator) -> Any:
        return self.start

    def batch(self, index: Tensor, generator: torch.Generator) -> Restorations:
        page, clean = pages_of(self.images.index_select(0, index))
        low, high, power, share = torch.rand(4, len(page), 1, generator=generator, device=page.device)
        levels = DARKEST * low + (1 - DARKEST * (low + high)) * page ** (1 + GAMMA * (2 * power - 1))
        drawn = torch.rand(page.shape, generator=generator, device=page.device)
        evidence = Damage(hidden=drawn < MOST_HIDDEN * (2 * share - 1)).shown.evidence(levels)
        return Restorations(clean, evidence, self.independent.moments(evidence)[0], torch.zeros_like(index))

    def judged(self, prior: Any, inference: Inference) -> Judged | None:
        if not len(self.validation):
            return None
        solver, (page, clean) = solver_of(inference), pages_of(self.validation[:JUDGED_IMAGES])
        parts = list[Solution]()
        for rows in page.split(PAGES_AT_ONCE):
            evidence = Damage().shown.evidence(rows)
            parts.append(solver.solve(prior.tilt(evidence), self.independent.moments(evidence)[0]))
        return verdict(parts, clean)


def pages_of(joined: Tensor) -> tuple[Tensor, Tensor]:
    """Grey pages (N, D), and their truth, the lowest bit of each level: 1 is paper."""
    truth = (joined * 255).round() % 2
    return joined - truth / 255, truth


def course_of(
    recipe: Recipe,
    images: Tensor,
    image_shape: tuple[int, int],
    start: Any = None,
    held_out: Tensor | None = None,
) -> CleanImages | DamagedImages | Pages:
    """The course that a recipe makes of training images; `start` is the machine before the first step, if any."""
    training, validation = split(recipe, images, held_out)
    shape, watch, restores, trial = recipe.prior, recipe.training.watch, recipe.learner.restores, None
    if start is None:
        means = pixels_of(recipe, training)[0] if shape.kind.pages else pixel_means(training)
        generator = torch.Generator(training.device).manual_seed(recipe.seed)
        start = shape.kind.initial(shape, image_shape, means, shape.weight_scale, generator)
    if shape.kind.pages:
        return Pages(training, validation, image_shape, start, Bernoulli(torch.logit(pixels_of(recipe, training)[0])))
    if recipe.data.task:
        return DamagedImages(training, validation, image_shape, parse_task(recipe.data.task), recipe.seed, start)
    if watch or restores:
        means, grey = pixels_of(recipe, training)
        independent = grey or Bernoulli(torch.logit(means))
    if watch and len(validation):
        trial = Trial.of(validation, watch, image_shape, independent, recipe.seed, grey=shape.grey)
    header = (training, start, shape.visible, shape.hidden_type, shape.deeper, trial)
    if not restores:
        return CleanImages(*header)
    tasks = tuple(map(shape.task_of, restores))
    return RestoredImages(*header, image_shape=image_shape, tasks=tasks, independent=independent)


def split(recipe: Recipe, images: Tensor, held_out: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Split training and validation images as the recipe says; or take all images, and those held out before.

    Raises:
        TrainingError: if there are not enough images to hold some out.
    """
    if held_out is not None:
        return images, held_out
    count = recipe.data.validation
    if not count and not recipe.data.task:
        return images, images[:0]
    if len(images) - count < 2:
        fault = f"{len(images)} images, of which {count} are for validation, leave too few to train on"
        raise TrainingError(f"{fault}; lower [data] validation", recipe.data.source)
    # Drawn on the CPU, so that every device holds out the same images.
    order = torch.randperm(len(images), generator=torch.Generator().manual_seed(recipe.seed)).to(images.device)
    return images[order[count:]], images[order[:count]]


def pixels_of(recipe: Recipe, training: Tensor) -> tuple[Tensor, Units | None]:
    """The means of pixels as a prior keeps them, (D,), and independent units for grey ones."""
    images = pages_of(training)[1] if recipe.prior.kind.pages else training
    means = recipe.prior.kind.pixel_means(pixel_means(images))
    return means, grey_pixels(recipe.prior.visible, training) if recipe.prior.grey else None
