"""Machines to start training from: another prior, or RBMs stacked into a machine with several hidden layers.

Trained from small weights alone, a deep machine becomes an RBM whose upper layers contribute nothing. So every layer is
first trained as an RBM on what the layer below makes of the images (TAP machine, appendix E, Alg. 4). Where it has two
neighbours in the deep machine, its one is doubled, as a stand-in for the other, with the same weights (Salakhutdinov &
Hinton, "Deep Boltzmann machines", AISTATS 2009, sec. 3.1).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise

import torch
from torch import Tensor

from restore import zoo
from restore.couplings import Dense
from restore.errors import TrainingError
from restore.families import Spec
from restore.fields import Fields
from restore.learning.course import independent_pixels, wider
from restore.learning.gradients.independent import pixel_means
from restore.learning.recipe.recipe import Recipe
from restore.learning.recipe.spec import PriorShape
from restore.learning.run.checkpoint import facts
from restore.learning.run.folder import stage_folder
from restore.learning.run.parallel import from_first
from restore.learning.run.session import Session
from restore.learning.steps import fit
from restore.priors import RBM, LayeredPrior
from restore.sizes import size_text
from restore.units import Bernoulli, Units
from restore.units.contract import mapped
from restore.zoo.inference import Inference


@dataclass(frozen=True)
class Stage:
    """The course of one RBM of the stack, between a lower and an upper layer, each with a number of copies.

    The states of the lower layer, (N, units), are images, or probabilities that its units are 1; those are `drawn` anew
    for each mini-batch. `lower` is that layer without neighbours.
    """

    below: Tensor
    lower: Units
    size: int
    lower_copies: int
    upper_copies: int
    drawn: bool

    @property
    def images(self) -> Tensor:
        return self.below.repeat(1, self.lower_copies)

    def initial(self, hidden: int, weight_scale: float, generator: torch.Generator) -> LayeredPrior:
        shape = (self.lower.size, self.size)
        weights = torch.randn(shape, generator=generator, device=self.below.device) * weight_scale
        bias = self.below.new_zeros(self.size * self.upper_copies)
        return RBM(
            (mapped(self.lower, lambda value: value.repeat(self.lower_copies)), Bernoulli(bias)),
            (Dense(weights.repeat(self.lower_copies, self.upper_copies)),),
        )

    def batch(self, index: Tensor, generator: torch.Generator) -> Tensor:
        states = self.below[index]
        if self.drawn:
            states = torch.bernoulli(states, generator=generator)
        return states.repeat(1, self.lower_copies)

    def judged(self, prior: LayeredPrior, inference: Inference) -> None:
        return None

    def single(self, machine: LayeredPrior) -> RBM:
        """The RBM with one copy of each layer: the average over copies, which differ by their random starts."""
        matrix = machine.couplings[0].matrix
        weights = matrix.unflatten(0, (self.lower_copies, -1)).unflatten(2, (self.upper_copies, -1))
        lower, upper = machine.layers
        layers = (_averaged(lower, self.lower_copies), _averaged(upper, self.upper_copies))
        return RBM(layers, (Dense(weights.mean((0, 2))),))


def pretrained(recipe: Recipe, images: Tensor, session: Session) -> tuple[LayeredPrior, str]:
    """Stack RBMs that are trained one after the other on images (N, D); also says which of them time ended early.

    RBM n works in `stage_folder(folder, n)`. All of them together leave the deep machine half of the time.
    """
    sizes = recipe.prior.hidden_counts
    trained: list[RBM] = []
    verdicts: list[str] = []
    below = images
    lower = independent_pixels(recipe.prior.visible, images)
    for number, size in enumerate(sizes, 1):
        # A layer between two others has each of them twice.
        lower_copies = 1 if number == len(sizes) else 2
        stage = Stage(below, lower, size, lower_copies, 1 if number == 1 else 2, drawn=number > 1)
        fitted = fit(_of_layer(recipe, number), stage, _session_of_layer(session, number, len(sizes)))
        verdicts += [f"layer {number}: {fitted.ended}"] if fitted.ended else []
        assert isinstance(fitted.machine, LayeredPrior)
        trained.append(stage.single(fitted.machine))
        below, _ = trained[-1].hidden.moments(Fields(lower_copies * trained[-1].couplings[0].up(below)))
        lower = Bernoulli(torch.logit(pixel_means(below)))
    return stacked(trained), "; ".join(verdicts)


def _of_layer(recipe: Recipe, number: int) -> Recipe:
    """The recipe of one RBM of the stack: only pixels are grey."""
    length = replace(recipe.training, epochs=recipe.pretraining.epochs, last=0)
    learner = recipe.learner if number == 1 else replace(recipe.learner, grey_unit=1.0)
    return replace(recipe, training=length, learner=learner)


def _session_of_layer(session: Session, number: int, count: int) -> Session:
    """Equal shares of the time for the RBMs, and as much as all of them have for the deep machine."""
    folders = [stage_folder(session.folder, layer) for layer in range(number, count + 1)]
    over = any(from_first(partial(list, map(facts, [session.folder, *folders[1:]]))))
    share = 1 / (2 * count - number + 1)
    return replace(session, folder=folders[0], stage=f"layer {number}", share=share, over=over)


def stacked(machines: Sequence[RBM]) -> LayeredPrior:
    """Stack RBMs: the hidden units of each become the visible units of the next.

    A layer between two had each neighbour twice. On average it has each once, with the mean of its biases in both.
    """
    between = [
        Bernoulli((one.hidden.parameters["bias"] + other.visible.parameters["bias"]) / 2)
        for one, other in pairwise(machines)
    ]
    layers = (machines[0].visible, *between, machines[-1].hidden)
    return LayeredPrior(layers, tuple(machine.couplings[0] for machine in machines))


def _averaged(layer: Units, copies: int) -> Units:
    return mapped(layer, lambda value: value.unflatten(0, (copies, -1)).mean(0))


def start_of(shape: PriorShape, image_shape: tuple[int, int]) -> LayeredPrior:
    """The machine of the prior that a recipe starts from.

    A ModelError if there is no such prior; a TrainingError if it is another kind of machine, or for other images.
    """
    folder = zoo.find(shape.start)
    header = zoo.describe(folder)
    if replace(header.alone, hidden=1) != replace(shape.alone, hidden=1) or header.image_shape != image_shape:
        fault = f"{_in_words(header, header.image_shape)} cannot be the start of {_in_words(shape, image_shape)}"
        raise TrainingError(f"{fault}; give another [prior] start", shape.start)
    machine = zoo.load(folder).machine
    assert isinstance(machine, LayeredPrior)
    return machine


def growing_start(shape: PriorShape, image_shape: tuple[int, int]) -> RBM:
    """The machine to which units are added; errors as in `start_of`, and a TrainingError if none would be."""
    machine = start_of(shape, image_shape)
    assert isinstance(machine, RBM) and isinstance(shape.hidden, int)
    if machine.hidden.size >= shape.hidden:
        raise TrainingError(f"has {machine.hidden.size} hidden units; give [prior] hidden more", shape.start)
    return machine


def started(shape: PriorShape, image_shape: tuple[int, int], seed: int) -> LayeredPrior:
    """The machine of the prior that a recipe starts from, widened by units with random weights where it has fewer.

    Errors as in `start_of`, and a TrainingError if it has too many units.
    """
    machine = start_of(shape, image_shape)
    assert isinstance(shape.hidden, int)
    known = zoo.describe(zoo.find(shape.start)).hidden
    missing = shape.hidden - known
    if missing == 0:
        return machine
    grows = isinstance(machine, RBM) and shape.plain
    if missing < 0 or not grows:
        more = " or more" if grows else ""
        raise TrainingError(f"has {known} hidden units; give [prior] hidden as many{more}", shape.start)
    assert isinstance(machine, RBM)
    return wider(machine, missing, shape.weight_scale, seed)


def _in_words(spec: Spec, image_shape: tuple[int, int]) -> str:
    layers = "-".join([spec.visible, spec.hidden_type, *map(str, spec.deeper)])
    return f"a {spec.kind.words} ({layers}) for images of {size_text(image_shape)} pixels"
