"""From images and a recipe to a prior that restores: fit it, round it for storage, find its modes, describe it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from restore import zoo
from restore.channels import parse_task
from restore.errors import TrainingError, UsageError
from restore.learning.course import (
    CleanImages,
    Course,
    DamagedImages,
    RestoredImages,
    pixel_means,
    wider,
)
from restore.learning.fit import Fitted, fit
from restore.learning.modes import own_modes
from restore.learning.pretraining import pretrained
from restore.learning.recipes.recipe import Recipe
from restore.learning.rounds import run_rounds
from restore.learning.rules.rule import InRounds
from restore.learning.run.checkpoint import facts
from restore.learning.run.folder import GROWTH, LAYER, check_earlier
from restore.learning.run.judging import Trial
from restore.learning.run.outcome import (
    Machine,
    Midway,
    Trained,
    as_stored,
    description_of,
    grey_pixels_of,
    pixel_means_of,
)
from restore.learning.run.parallel import from_first, is_first
from restore.learning.run.session import Passed, Session
from restore.learning.starting import started
from restore.priors import RBM, FullyVisible, GaussianMixture, LayeredPrior
from restore.priors.bits import pack
from restore.solvers import TAP
from restore.units import Bernoulli, Units
from restore.zoo import TrainedPrior, save
from restore.zoo.inference import Inference

# The share of the time that growth may take if another learner continues from there; and of the time that is left after
# learning, when the sweeps for modes end.
GROWING, SWEEPING = 0.25, 0.3


def train(
    recipe: Recipe,
    images: Tensor,
    image_shape: tuple[int, int],
    session: Session,
    *,
    held_out: Tensor | None = None,
    every: int = 0,
) -> Trained:
    """Train a prior as a recipe says; see `restore.learning.fit.fit` for errors.

    Args:
        recipe: what to train, how, and how long at most.
        images: training images (N, H * W), on the device to train on; binary, or grey levels in [0, 1] for a prior of
            grey images.
        image_shape: (H, W).
        session: where, and who is told. Usable priors are reported as whole priors. Single layers of a deep machine,
            and hidden units grown for a conditional prior, are not usable.
        held_out: images (M, H * W) to be judged by; None for those that the recipe holds out.
        every: also keep the prior after every so many epochs, in `epoch_folder`; 0 keeps none.
    """
    folder, clock = session.folder, session.clock
    if every < 0:
        raise UsageError(f"priors can be kept every 1, 2, ... epochs, or 0 for never, not every {every}")
    clock.limit = recipe.training.seconds
    training, validation = split(recipe, images, held_out)
    midway = Midway(recipe, training, image_shape)

    def keep(passed: Passed) -> None:
        if every and passed.done % every == 0 and is_first():
            prior = midway.prior(passed.machine, passed.done, name=f"{recipe.name}-epoch-{passed.done}")
            save(epoch_folder(folder, passed.done), prior, f"# {prior.description.name}\n", TrainingError)
        session.watch(passed)

    def use(passed: Passed) -> None:
        session.usable(replace(passed, machine=midway.usable(passed, folder)))

    goes_on = recipe.prior.grows and not recipe.in_rounds
    from_first(lambda: check_earlier(folder, GROWTH if goes_on else LAYER if recipe.pretraining.epochs else ""))
    start: LayeredPrior | FullyVisible | GaussianMixture | None = None
    before = ""
    early = replace(session, usable=use)
    main = replace(early, watch=keep)
    if recipe.in_rounds:
        machine, rounds, verdict = by_rounds(recipe, training, main, validation)
        fitted: Fitted[Any] = Fitted(machine, rounds - 1, None, verdict)
    else:
        begun = from_first(lambda: bool(facts(folder)))
        if recipe.prior.grows:
            growing = early.stage("growing", folder / GROWTH, GROWING, over=begun, of_use=not recipe.data.task)
            start, _, before = by_rounds(recipe, training, growing, validation)
        if recipe.pretraining.epochs:
            start, before = pretrained(recipe, training, early)
        if recipe.prior.start:
            start = started(recipe.prior, image_shape, recipe.seed).to(training.device)
        fitted = fit(recipe, course_of(recipe, training, image_shape, start, validation), main)
    with torch.inference_mode():
        machine = as_stored(recipe, fitted.prior)
        inference = recipe.inference_after(fitted.epoch)
        late = (lambda: clock.later_than(SWEEPING)) if clock.limited else None
        modes = from_first(lambda: _modes(recipe, machine, training, inference, late)).to(images.device)
    description = description_of(recipe, image_shape, machine, inference)
    prior = TrainedPrior(
        description, machine, pixel_means_of(recipe, training), modes, grey_pixels_of(recipe, training)
    )
    return Trained(prior, fitted.epoch + 1, fitted.error, "; ".join(filter(None, (before, fitted.verdict))))


def epoch_folder(folder: Path, epoch: int) -> Path:
    """The folder in a run's folder for the prior after an epoch."""
    return folder / "epochs" / f"{epoch:04d}"


def kept_epochs(folder: Path) -> dict[int, Path]:
    """The priors that a run has kept, by epoch, in order."""
    return {int(kept.name): kept for kept in sorted((folder / "epochs").glob("[0-9][0-9][0-9][0-9]"))}


def by_rounds(
    recipe: Recipe, images: Tensor, session: Session, held_out: Tensor | None = None
) -> tuple[FullyVisible | RBM | GaussianMixture, int, str]:
    """Train in rounds, or grow a machine from which another learner continues; see `train`.

    Returns:
        The machine, the number of rounds, and why there were no more, in words.
    """
    settings: InRounds = recipe.learner if recipe.in_rounds else recipe.growth
    training, validation = split(recipe, images, held_out)
    work = run_rounds(
        settings.at_work(recipe.prior, validation),
        training,
        session.seeing(settings.machine),
        seed=recipe.seed,
        facts=recipe.growth_facts if settings.grows else recipe.training_facts,
        every=recipe.training.checkpoint_every,
    )
    late = f"time ran out after {work.done} rounds" if work.done < work.learner.rounds else ""
    verdict = work.verdict or late or settings.cut_short(recipe.prior, work.done)
    machine = settings.machine(work.state)
    missing = recipe.prior.filled - machine.hidden.size if recipe.prior.filled and isinstance(machine, RBM) else 0
    if not work.verdict and missing > 0:
        assert isinstance(machine, RBM)
        machine = wider(machine, missing, recipe.prior.weight_scale, recipe.seed)
        verdict += f"; {missing} units start from random weights"
    return machine, work.done, verdict


def course_of(
    recipe: Recipe,
    images: Tensor,
    image_shape: tuple[int, int],
    start: Any = None,
    held_out: Tensor | None = None,
) -> Course[Any, Any]:
    """The course that a recipe makes of training images; see `train` and `split`.

    Args:
        start: the machine before the first step; by default one without correlations.
    """
    training, validation = split(recipe, images, held_out)
    if recipe.data.task:
        return DamagedImages(training, validation, image_shape, parse_task(recipe.data.task), recipe.seed, start)
    shape, watch, trial = recipe.prior, recipe.training.watch, None
    if watch and len(validation):
        trial = Trial.of(validation, watch, image_shape, _alone(recipe, training), recipe.seed, grey=shape.grey)
    if start is None:
        generator = torch.Generator(training.device).manual_seed(recipe.seed)
        start = shape.kind.first(shape, image_shape, pixel_means(training), shape.weight_scale, generator)
    clean = CleanImages(training, start, shape.visible, shape.hidden_type, shape.deeper, trial)
    if not recipe.learner.restores:
        return clean
    tasks = tuple(map(shape.task_of, recipe.learner.restores))
    return RestoredImages(clean, image_shape, tasks, _alone(recipe, training))


def _alone(recipe: Recipe, training: Tensor) -> Units:
    """The pixels as independent units, where solvers start."""
    return grey_pixels_of(recipe, training) or Bernoulli(torch.logit(pixel_means_of(recipe, training)))


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
        raise TrainingError(
            f"{recipe.data.source}: {len(images)} images, of which {count} are for validation, leave too few to "
            "train on; lower [data] validation"
        )
    # Drawn on the CPU, so that every device holds out the same images.
    order = torch.randperm(len(images), generator=torch.Generator().manual_seed(recipe.seed)).to(images.device)
    return images[order[count:]], images[order[:count]]


def _modes(
    recipe: Recipe, machine: Machine, images: Tensor, inference: Inference, late: Callable[[], bool] | None
) -> Tensor:
    """Modes of the machine as starts for its solver; none if the solver needs no start.

    A machine that learns by restoring is no longer one to sample from: it takes over the modes of its start.
    """
    if not inference.modes:
        return pack(images[:0])
    if recipe.learner.restores and recipe.prior.start:
        found = zoo.load(zoo.find(recipe.prior.start)).modes[: inference.modes]
        if len(found) == inference.modes:
            return found
    assert isinstance(machine, LayeredPrior | FullyVisible)
    solver = TAP(max_iter=inference.max_iter, tol=inference.tol, damping=inference.damping)
    # Seeded separately, so that the modes do not depend on interruptions of training.
    generator = torch.Generator(images.device).manual_seed(recipe.seed)
    return own_modes(machine, images, inference.modes, solver, generator, late)
