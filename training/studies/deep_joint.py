"""What a deep machine becomes if its layers are not trained one by one first (TAP machine, App. C.4 and Alg. 4)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from harness import Asked, main, publish, read, write
from torch import Tensor

from restore.console import say
from restore.evaluation.card import table
from restore.learning.recipe.recipe import read_recipe
from restore.learning.run.session import Session
from restore.learning.train import train
from restore.priors import LayeredPrior
from restore.solvers import TAP

RECIPE = "dynamics/dynamics-deep-2.toml"

# Epochs of training together, of 3,000 in the paper; and before it of each layer, or none.
EPOCHS, BEFORE = 40, (20, 0)

# Test images whose hidden means are looked at, and what finds them.
TESTED, SOLVER = 1000, TAP(max_iter=300, damping=0.5, tol=1e-4)


@dataclass(frozen=True)
class Deep:
    """A machine of two hidden layers.

    Attributes:
        before, epochs: epochs of each layer alone, and then of all together.
        weights: root mean square of the weights between pixels and first, and first and second layer.
        spread: standard deviation over images of the means of each hidden layer, averaged over its units; 0 in a layer
            that knows nothing of the image.
    """

    before: int
    epochs: int
    weights: tuple[float, ...]
    spread: tuple[float, ...]


def spreads(machine: LayeredPrior, images: Tensor) -> tuple[float, ...]:
    """How much the means of hidden units differ between images (N, D), by layer."""
    found = SOLVER.solve(machine.above(images))
    return tuple(float(mean.std(0).mean()) for mean in found.means)


def learn(asked: Asked, before: int) -> Deep:
    plan = read_recipe(asked.recipes / RECIPE)
    plan = replace(
        plan,
        pretraining=replace(plan.pretraining, epochs=before),
        training=replace(plan.training, epochs=EPOCHS),
    )
    images = asked.images("mnist", "train", plan.data.count)
    run = Session(asked.runs / "deep" / f"before-{before}", str(before), resume=True)
    machine = train(plan, images, (28, 28), run).prior.machine
    assert isinstance(machine, LayeredPrior)
    each = (machine.parameters[f"weights.{layer}"] for layer in range(len(machine.couplings)))
    weights = tuple(float(value.square().mean().sqrt()) for value in each)
    return Deep(before, EPOCHS, weights, spreads(machine, asked.images("mnist", "test", TESTED)))


def as_table(found: list[Deep]) -> str:
    """Markdown: a row per machine."""
    rows = [
        [
            str(one.before),
            str(one.epochs),
            *(f"{value:.4f}" for value in one.weights),
            *(f"{value:.4f}" for value in one.spread),
        ]
        for one in found
    ]
    head = ["epochs of each layer alone", "then together", "weights, first layer", "second layer"]
    return table([*head, "spread of means, first layer", "second layer"], rows)


@torch.inference_mode()
def study(asked: Asked) -> None:
    """Train deep machines with and without layers one by one first; write deep-joint.json and a table."""
    path, settings = asked.records / "deep-joint.json", {"seed": asked.seed}
    found: list[Deep] = read(path, settings, machines=Deep)["machines"]
    for before in BEFORE:
        if not any(one.before == before for one in found):
            found.append(learn(asked, before))
            say(f"{found[-1]}")
            write(path, settings | {"machines": found})
    publish(asked, {"deep-joint": as_table(found)})


if __name__ == "__main__":
    main(study)
