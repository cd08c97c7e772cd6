"""The training loop: data to learner to optimizer, with checkpoints and a log.

Training is a function of the recipe, the data and the number of threads. Everything that decides about the next step is
in a checkpoint, so a run stopped at any step and resumed ends with the same bits as one that was left alone.
"""

from __future__ import annotations

import json
import math
import signal
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import torch
from torch import Tensor

from restore.errors import TrainingError, shown
from restore.files import write_atomically
from restore.learning import checkpoint as checkpoints
from restore.learning.checkpoint import Checkpoint
from restore.learning.contract import Learner, LearnerState
from restore.learning.recipe import Optimizer, Recipe
from restore.priors import RBM
from restore.progress import Meter

# Pseudo-counts for a pixel's mean, so that a pixel that never changes still has finite log-odds.
PSEUDO_COUNT = 1.0


class Stopped(KeyboardInterrupt):
    """Training was stopped by a signal, after writing a checkpoint; `signal_number` says which."""

    def __init__(self, signal_number: int) -> None:
        super().__init__(signal_number)
        self.signal_number = signal_number


def pixel_means(images: Tensor) -> Tensor:
    """Mean of each pixel over binary images (N, D), kept inside (0, 1) by a pseudo-count; shape (D,)."""
    return (images.sum(0) + PSEUDO_COUNT / 2) / (len(images) + PSEUDO_COUNT)


def initial_prior(images: Tensor, hidden: int, weight_scale: float, generator: torch.Generator) -> RBM:
    """A binary RBM without correlations that has the images' pixel means: N(0, scale²) weights, zero hidden bias."""
    weights = torch.randn(images.shape[1], hidden, generator=generator, device=images.device) * weight_scale
    return RBM.binary(weights, torch.logit(pixel_means(images)), torch.zeros(hidden, device=images.device))


@dataclass
class Run:
    """A training run in the middle of its work."""

    prior: RBM
    optimizer: torch.optim.Optimizer
    learner_state: LearnerState
    generator: torch.Generator
    order: Tensor
    step: int = 0
    seconds: float = 0.0
    sums: dict[str, Tensor | float] = field(default_factory=dict)


def fit(
    recipe: Recipe,
    images: Tensor,
    folder: Path,
    *,
    fingerprint: str,
    resume: bool = False,
    meter: Meter = lambda done, note="": None,
) -> RBM:
    """Train a prior as a recipe says.

    Args:
        recipe: what to train and how.
        images: binary training images (N, D) in {0, 1}, on the device to train on.
        folder: run folder for checkpoints and `log.jsonl`; made if it is missing.
        fingerprint: names the data, so that a run is not resumed on other data.
        resume: go on from the newest checkpoint in the folder, if there is one.
        meter: told the epochs done.

    Raises:
        TrainingError: the folder is in use, holds another run, or cannot be written; or training diverged.
        Stopped: SIGINT or SIGTERM arrived; a checkpoint has been written.
    """
    batches = math.ceil(len(images) / recipe.training.batch)
    identity = {"recipe": recipe.training_facts, "data": fingerprint, "threads": torch.get_num_threads()}
    with checkpoints.locked(folder), _stop_requests() as stop_requests, torch.inference_mode():
        found = checkpoints.newest(folder)
        if found is not None and not resume:
            raise TrainingError(
                f"{shown(folder)}: holds a run already; give --resume to go on with it, or another --run"
            )
        run = _begin(recipe, images)
        if found is not None:
            _restore(run, found, identity, folder)
        _cut_log(folder / "log.jsonl", run.step // batches)
        started = time.monotonic() - run.seconds
        total = recipe.training.epochs * batches
        while run.step < total:
            epoch, position = divmod(run.step, batches)
            if position == 0:
                run.order = torch.randperm(len(images), generator=run.generator, device=images.device)
                run.sums = {}
            rate = scheduled_rate(recipe.optimizer, run.step / total)
            batch = images[run.order[position * recipe.training.batch : (position + 1) * recipe.training.batch]]
            _advance(run, recipe.learner, batch, rate, folder)
            run.seconds = time.monotonic() - started
            if position + 1 == batches:
                averages = {name: value / batches for name, value in _numbers(run.sums).items()}
                _check_finite(run, folder)
                _log(folder, {"epoch": epoch + 1, "step": run.step, "rate": rate, "seconds": run.seconds} | averages)
                meter(epoch + 1, " ".join(f"{name} {value:.4g}" for name, value in averages.items()))
                if (epoch + 1) % recipe.training.checkpoint_every == 0 or run.step == total:
                    checkpoints.save(folder, _snapshot(run, identity))
            if stop_requests and run.step < total:
                _check_finite(run, folder)
                checkpoints.save(folder, _snapshot(run, identity))
                raise Stopped(stop_requests[0])
        return run.prior


def scheduled_rate(settings: Optimizer, progress: float) -> float:
    """Learning rate after a share `progress` of all steps."""
    return settings.rate * (1 - progress) if settings.schedule == "linear" else settings.rate


def _begin(recipe: Recipe, images: Tensor) -> Run:
    generator = torch.Generator(images.device).manual_seed(recipe.seed)
    prior = initial_prior(images, recipe.prior.hidden, recipe.prior.weight_scale, generator)
    state = recipe.learner.init(prior, images, generator)
    return Run(prior, _optimizer(recipe.optimizer, prior), state, generator, torch.empty(0, dtype=torch.int64))


def _optimizer(settings: Optimizer, prior: RBM) -> torch.optim.Optimizer:
    named = prior.parameters
    groups: list[dict[str, Any]] = [
        {"params": [value for name, value in named.items() if name.startswith("weights")]},
        {"params": [value for name, value in named.items() if name.startswith("units")], "weight_decay": 0.0},
    ]
    if settings.name == "sgd":
        return torch.optim.SGD(
            groups, lr=settings.rate, momentum=settings.momentum, weight_decay=settings.weight_decay, foreach=True
        )
    return torch.optim.AdamW(
        groups, lr=settings.rate, betas=(settings.momentum, 0.999), weight_decay=settings.weight_decay, foreach=True
    )


def _advance(run: Run, learner: Learner, batch: Tensor, rate: float, folder: Path) -> None:
    """One step: the optimizer changes the prior's tensors in place."""
    # A prior of its own for each step, so that nothing derived from the weights outlives them.
    prior = run.prior.with_parameters(run.prior.parameters)
    try:
        step = learner.step(prior, batch, run.learner_state, run.generator)
    except RuntimeError as fault:
        # Sampling refuses probabilities that are NaN, so that is where weights without bounds may show first.
        if bool(torch.isfinite(prior.free_energy(batch)).all()):
            raise
        raise _diverged(run, folder, "the free energy") from fault
    for name, parameter in prior.parameters.items():
        parameter.grad = -step.gradient[name]
    for group in run.optimizer.param_groups:
        group["lr"] = rate
    run.optimizer.step()
    run.learner_state = dict(step.state)
    for name, value in step.monitors.items():
        run.sums[name] = run.sums.get(name, 0.0) + value.double()
    run.step += 1


def _numbers(sums: Mapping[str, Tensor | float]) -> dict[str, float]:
    return {name: float(value) for name, value in sums.items()}


def _check_finite(run: Run, folder: Path) -> None:
    for name, value in run.prior.parameters.items():
        if not bool(torch.isfinite(value).all()):
            raise _diverged(run, folder, name)


def _diverged(run: Run, folder: Path, what: str) -> TrainingError:
    return TrainingError(
        f"{shown(folder)}: training diverged ({what} is no longer finite at step {run.step}); lower the rate"
    )


def _log(folder: Path, record: dict[str, Any]) -> None:
    try:
        with (folder / "log.jsonl").open("a") as stream:
            stream.write(json.dumps(record) + "\n")
    except OSError as fault:
        raise TrainingError(
            f"{shown(folder)}/log.jsonl: cannot be written ({fault.strerror}); free some space"
        ) from fault


def seconds_spent(folder: Path) -> float:
    """Training time of the run in a folder up to its newest checkpoint, over all its sittings.

    Raises:
        TrainingError: if there is no sound checkpoint.
    """
    found = checkpoints.newest(folder)
    if found is None:
        raise TrainingError(f"{shown(folder)}: holds no checkpoint; train first")
    return float(found.facts["seconds"])


def _cut_log(path: Path, epochs: int) -> None:
    """Drop what was logged after the checkpoint that a run goes on from: it will be logged again."""
    if path.exists():
        lines = path.read_bytes().splitlines(keepends=True)[:epochs]
        write_atomically(path, b"".join(lines), TrainingError)


def _snapshot(run: Run, identity: Mapping[str, Any]) -> Checkpoint:
    tensors = {f"prior.{name}": value for name, value in run.prior.parameters.items()}
    tensors |= {f"learner.{name}": value for name, value in run.learner_state.items()}
    tensors |= {"order": run.order, "generator": run.generator.get_state()}
    for index, moments in run.optimizer.state_dict()["state"].items():
        tensors |= {f"optimizer.{index}.{name}": value for name, value in moments.items() if value is not None}
    facts = {"identity": dict(identity), "seconds": run.seconds, "sums": _numbers(run.sums)}
    return Checkpoint(run.step, tensors, facts)


def _restore(run: Run, found: Checkpoint, identity: Mapping[str, Any], folder: Path) -> None:
    changed = checkpoints.differences(found.facts["identity"], identity)
    if changed:
        raise TrainingError(
            f"{shown(folder)}: cannot resume: {'; '.join(changed)}; undo the change or choose another --run"
        )
    if found.tensors["generator"].shape != run.generator.get_state().shape:
        raise TrainingError(f"{shown(folder)}: was trained on another kind of device; choose that one or another --run")
    for name, value in run.prior.parameters.items():
        value.copy_(found.tensors[f"prior.{name}"])
    device = run.prior.weights.device
    run.learner_state = {name: value.to(device) for name, value in _under(found.tensors, "learner.").items()}
    run.order = found.tensors["order"].to(device)
    run.generator.set_state(found.tensors["generator"])
    run.step, run.seconds, run.sums = found.step, found.facts["seconds"], dict(found.facts["sums"])
    state: dict[int, dict[str, Tensor]] = {}
    for name, value in _under(found.tensors, "optimizer.").items():
        index, moment = name.split(".", 1)
        state.setdefault(int(index), {})[moment] = value
    run.optimizer.load_state_dict(run.optimizer.state_dict() | {"state": state})


def _under(tensors: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}


@contextmanager
def _stop_requests() -> Iterator[list[int]]:
    """Collects SIGINT and SIGTERM instead of dying of them, where this thread may say so."""
    received: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        received.append(number)

    try:
        previous = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    except ValueError:  # not the main thread
        yield received
        return
    try:
        yield received
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
