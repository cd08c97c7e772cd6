"""What the paper observes of inference in conditional RBMs (CRBM-BP, sec. 6): convergence, damping, and matching."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
from harness import Asked, main, publish, read, write
from torch import Tensor

from restore.channels import parse_task
from restore.console import say
from restore.evaluation import metrics
from restore.evaluation.card import plus_minus, table
from restore.inference.torch_engine import Engine
from restore.learning.course import DamagedImages
from restore.learning.rules.conditional.likelihood import BeliefPropagationLikelihood
from restore.priors import ConditionalRBM
from restore.solvers import BeliefPropagation, Solution, solver_of
from restore.zoo.inference import Inference

SHAPE = (28, 28)

# Hidden units, images per step, and the standard deviation of the first weights.
HIDDEN, BATCH, WEIGHT_SCALE = 256, 40, 0.01

# Fig. 4 by the paper's smallest and largest rate, without the momentum that this project's recipes have.
FIRST_EPOCH = {"data": "mnist", "task": "patch:8", "held_out": 10_000, "epochs": 1}
RATES = (0.005, 0.05)

# Damping, with few hidden units on 1,000 silhouettes: the compiled kernel of belief propagation does not damp.
DAMPED = {
    "data": "caltech101-silhouettes",
    "task": "patch:12:1",
    "held_out": 3100,
    "epochs": 2,
    "rate": 0.05,
    "hidden": 16,
}
DAMPINGS = (0.0, 0.5)

# Parts of an epoch for which convergence is told.
PARTS = 5

# Priors that learnt with 26 iterations at the end, and inference other than their own.
PRIORS = ("crbm-bp-mnist-patch12", "crbm-mssvm-mnist-patch12", "crbm-bp-mnist-flip20")
OTHERS: Mapping[str, Mapping[str, Any]] = {
    "its own": {},
    "mean field": {"solver": "mean_field"},
    "sum-product": {"solver": "sum_product"},
    "mixed-product": {"solver": "mixed_product"},
    "3 iterations": {"max_iter": 3},
    "200 iterations": {"max_iter": 200},
    "damping .5": {"damping": 0.5},
}

# Test images.
TESTED = 1000


@dataclass(frozen=True)
class Course:
    """One training run, by plain steps.

    Attributes:
        data, task, rate, damping: what it learnt, and how.
        converged: share of the inferences that converged within their 7 + epoch iterations, part by part.
        error: wrong pixels of the test images in per cent, and the standard error.
        hidden: number of hidden units.
    """

    data: str
    task: str
    rate: float
    damping: float
    converged: tuple[float, ...]
    error: tuple[float, ...]
    hidden: int = HIDDEN


@dataclass(frozen=True)
class Answer:
    """A published prior with some inference: wrong pixels of the test images in per cent, and the standard error."""

    prior: str
    inference: str
    error: tuple[float, ...]


@dataclass(frozen=True)
class Learner(BeliefPropagationLikelihood):
    """MLE-BP with damped messages, in training and in restoring."""

    damping: float = 0.0

    def inference(self, epoch: int) -> Inference:
        return replace(super().inference(epoch), damping=self.damping)

    def expectations(self, machine: Any, epoch: int) -> Solution:
        header = self.inference(epoch)
        return BeliefPropagation("sum", header.max_iter, header.tol, header.damping).solve(machine, pairs=True)


def wrong(prior: ConditionalRBM, inference: Inference, observed: Tensor, truth: Tensor) -> tuple[float, ...]:
    """Wrong pixels in per cent after an inference, and the standard error."""
    solver = solver_of(inference)
    found = [solver.solve(prior.given(part)).means[0] for part in observed.split(200)]
    score = metrics.summary(100 * metrics.error_all(truth, torch.cat(found)))
    return score.mean, score.standard_error


@torch.inference_mode()
def learn(
    asked: Asked,
    data: str,
    task: str,
    held_out: int,
    epochs: int,
    rate: float,
    damping: float = 0.0,
    hidden: int = HIDDEN,
) -> Course:
    """Learn by plain steps of a constant rate, as the paper says, and restore test images by the last inference."""
    generator = torch.Generator().manual_seed(asked.seed)
    images = asked.images(data, "train")
    images = images[torch.randperm(len(images), generator=generator)[held_out:]]
    course, learner = DamagedImages(images, images[:0], SHAPE, parse_task(task)), Learner(damping=damping)
    prior, shares = course.initial(hidden, WEIGHT_SCALE, generator), []
    for epoch in range(epochs):
        for index in torch.randperm(len(images), generator=generator).split(BATCH):
            step = learner.step(prior, course.batch(index, generator), {}, generator, epoch)
            prior = prior.with_parameters(
                {name: value + rate * step.gradient[name] for name, value in prior.parameters.items()}
            )
            shares.append(float(step.monitors["converged"]))
    truth = asked.images(data, "test", asked.n or TESTED)
    observed = parse_task(task).damage(truth, SHAPE, torch.Generator().manual_seed(asked.seed)).observed
    parts = torch.tensor(shares).tensor_split(max(epochs, PARTS))
    error = wrong(prior, learner.inference(epochs - 1), observed, truth)
    return Course(data, task, rate, damping, tuple(round(float(part.mean()), 4) for part in parts), error, hidden)


@torch.inference_mode()
def answers(asked: Asked, name: str) -> list[Answer]:
    """A published prior with its own inference and with others."""
    engine = Engine.load(name, "cpu")
    header, prior = engine.header, engine.trained.machine
    assert isinstance(prior, ConditionalRBM) and header.task
    truth = asked.images(header.data, "test", asked.n or TESTED)
    observed = parse_task(header.task).damage(truth, SHAPE, torch.Generator().manual_seed(asked.seed)).observed
    return [
        Answer(name, label, wrong(prior, replace(header.inference, **other), observed, truth))
        for label, other in OTHERS.items()
    ]


def as_tables(courses: list[Course], found: list[Answer]) -> dict[str, str]:
    """Markdown, by the names of the marks."""
    head = ["data", "task", "hidden", "rate", "damping", "converged, % in equal parts of training", "wrong, % of all"]
    rows = [
        [
            one.data,
            one.task,
            f"{one.hidden}",
            f"{one.rate:g}",
            f"{one.damping:g}",
            ", ".join(f"{100 * share:.0f}" for share in one.converged),
            plus_minus(one.error[0], one.error[1], 3),
        ]
        for one in courses
    ]
    by = {(one.prior, one.inference): plus_minus(one.error[0], one.error[1], 3) for one in found}
    matched = [[label, *(by.get((name, label), "-") for name in PRIORS)] for label in OTHERS]
    return {
        "crbm-inference-courses": table(head, rows),
        "crbm-inference-answers": table(["inference", *(f"`{name}`" for name in PRIORS)], matched),
    }


def study(asked: Asked) -> None:
    """Measure inference in conditional RBMs; write crbm-inference.json and two tables. What is there is kept."""
    path, settings = asked.records / "crbm-inference.json", {"seed": asked.seed, "n": asked.n or TESTED}
    known = read(path, settings, courses=Course, answers=Answer)
    courses: list[Course] = known["courses"]
    found: list[Answer] = known["answers"]
    for name in PRIORS:
        if not any(one.prior == name for one in found):
            found += answers(asked, name)
            write(path, settings | {"courses": courses, "answers": found})
    plans: list[dict[str, Any]] = [FIRST_EPOCH | {"rate": rate, "damping": 0.0} for rate in RATES]
    plans += [DAMPED | {"damping": damping} for damping in DAMPINGS]
    there = {(one.task, one.hidden, one.rate, one.damping) for one in courses}
    for plan in plans:
        if (plan["task"], plan.get("hidden", HIDDEN), plan["rate"], plan["damping"]) not in there:
            courses.append(learn(asked, **plan))
            say(f"{courses[-1]}")
            write(path, settings | {"courses": courses, "answers": found})
    publish(asked, as_tables(courses, found))


if __name__ == "__main__":
    main(study)
