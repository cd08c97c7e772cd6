"""Why the likelihood of S-DCP falls after some epochs (Figs. 3 and 6b): three causes, on the curve that falls first.

If it learnt its images by heart, theirs would not fall. If its steps were too long, the average of machines would be
better; but that lags behind, by four epochs. If annealing found log Z badly, few of its runs would count.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from dcp_large import RUNS, SCHEDULE, Plan
from harness import Asked, main, publish, read, write
from mean_likelihoods import mean_log_likelihood
from torch import Tensor

from restore.console import progress
from restore.data import load, sample_binary
from restore.errors import InputError
from restore.evaluation.card import table
from restore.evaluation.likelihoods.ais import estimate, log_weights
from restore.learning.course import CleanImages, pixel_means
from restore.learning.run.session import Progress, Session
from restore.learning.steps import fit
from restore.priors import RBM

PLAN = Plan("mnist", "S-DCP", 0.01, epochs=40, every=10, images=10_000, batch=100)

# Training images to judge by; and how much of the average over epochs is kept at each.
JUDGED, KEPT = 5000, 0.8


@dataclass(frozen=True)
class Judged:
    """A machine: mean log-likelihoods in nats, and the effective number of the runs of annealing."""

    test: float
    train: float
    runs: float


@dataclass(frozen=True)
class Moment:
    """After an epoch: the machine, and the average of those after this epoch and before."""

    epoch: int
    machine: Judged
    average: Judged


def judged(machine: RBM, test: Tensor, train: Tensor, base: Tensor, seed: int) -> Judged:
    found = estimate(log_weights(machine, SCHEDULE, RUNS, torch.Generator().manual_seed(seed), base))
    test_mean, train_mean = (mean_log_likelihood(machine, images, found) for images in (test, train))
    return Judged(test_mean, train_mean, float(found.effective_runs))


def learn(training: Tensor, test: Tensor, seed: int) -> list[Moment]:
    """Moments of one training on binary images (N, D); test images (M, D)."""
    base, moments, average = torch.logit(pixel_means(training)), list[Moment](), dict[str, Tensor]()

    def after_epoch(passed: Progress) -> None:
        machine = passed.machine
        assert isinstance(machine, RBM)
        for name, value in machine.parameters.items():
            average[name] = KEPT * average[name] + (1 - KEPT) * value if name in average else value.clone()
        if passed.done % PLAN.every == 0:
            both = (machine, machine.with_parameters(average))
            moments.append(Moment(passed.done, *(judged(one, test, training[:JUDGED], base, seed) for one in both)))
            meter(passed.done, f"{moments[-1].machine.test:.2f}")

    with progress("S-DCP", PLAN.epochs) as meter, tempfile.TemporaryDirectory() as folder, torch.inference_mode():
        fit(PLAN.recipe(seed), CleanImages(training), Session(Path(folder), watch=after_epoch))
    return moments


def as_table(moments: Sequence[Moment]) -> str:
    """Markdown: the likelihoods, and the runs that count, of machine and average."""
    rows = [
        [str(one.epoch), *(f"{value:.1f}" for each in (one.machine, one.average) for value in vars(each).values())]
        for one in moments
    ]
    heads = [f"{kind}{name}" for kind in ("", "average: ") for name in ("test", "training images", "runs that count")]
    return table(["epoch", *heads], rows)


def study(asked: Asked) -> None:
    """Write dcp-fall.json and its table; with --train, learn first, in 20 minutes."""
    torch.set_num_threads(1)
    path, settings = asked.records / "dcp-fall.json", {"seed": asked.seed}
    moments: list[Moment] = read(path, settings, moments=Moment)["moments"]
    if not moments:
        if not asked.train_missing:
            raise InputError(f"{path}: is missing; give --train")
        images, others = (load("mnist", split="train", root=asked.data), load("mnist", split="test", root=asked.data))
        training, test = (
            torch.from_numpy(sample_binary(each.images, asked.seed + number))
            for number, each in enumerate((images, others))
        )
        moments = learn(training[: PLAN.images], test, asked.seed)
        write(path, settings | {"moments": moments})
    publish(asked, {"dcp-fall": as_table(moments)})


if __name__ == "__main__":
    main(study)
