"""What `restore evaluate --task` does: damage images, restore them, and compare with the truth."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from restore.console import say

if TYPE_CHECKING:
    from restore.cli.scoring.source import Source
    from restore.evaluation.evaluate import Report


@dataclass(frozen=True)
class Trial:
    """The options of `restore evaluate --task`."""

    task: str
    mask: Literal["known", "unknown"] | None
    neighbours: int
    soft: bool
    seed: int


def evaluate_task(
    model: str, source: Source, trial: Trial, device: str, max_memory: str | None, solver: str | None
) -> Report:
    """The scores of a prior, or of a pseudo-model."""
    from restore.channels import parse_task
    from restore.errors import UsageError
    from restore.evaluation.baselines import BASELINES, baseline
    from restore.zoo import describe, find

    # A pseudo-model has no file, and restores binary images.
    grey = model not in BASELINES and describe(find(model)).grey
    damage = parse_task(trial.task, trial.mask, grey=grey)
    if solver is not None and model in BASELINES:
        raise UsageError(f"{model}: has no solver; leave --solver out")

    import torch

    from restore.cli import options
    from restore.data import binarise, load, overlap
    from restore.evaluation.evaluate import evaluate, restorer_of, task_of
    from restore.inference.torch_engine import Engine

    engine = None if model in BASELINES else Engine.load(model, device, options.memory_size(max_memory))
    if engine is not None and solver is not None:
        engine = engine.with_solver(solver)
    dataset = source.load()
    shape = (dataset.images.shape[1], dataset.images.shape[2])
    generator = torch.Generator().manual_seed(trial.seed)
    if engine is None:
        known = load(source.data, split="train", root=source.root, max_pixels=source.max_pixels)
        shared = overlap(known, dataset)
        if shared:
            source.note(f"{model} was fitted to {shared} of the images it restores")
        threshold = source.threshold_or(127)
        simple = baseline(model, torch.from_numpy(binarise(known.images, threshold)), shape, trial.neighbours)
        return evaluate(simple.restore, source.binary(dataset, 127), damage, shape, generator, grey=trial.soft)
    about = engine.trained.description
    source.check_size(dataset, about)
    if about.conditional:
        if trial.mask == "known":
            raise UsageError(f"{about.name} sees the damaged image alone; leave --mask known out")
        if str(damage) != str(task_of(about)) and not source.quiet:
            say(f"{model}: was trained to undo {about.task}, not {damage}")
    seen = damage.unmasked() if about.conditional else damage
    truth = source.pixels(dataset, about)
    report = evaluate(restorer_of(engine), truth, seen, shape, generator, grey=trial.soft or grey)
    return replace(report, solver=about.inference.solver)
