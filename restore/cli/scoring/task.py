"""What `restore evaluate --task` does: damage images, restore them, and compare with the truth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from restore.console import say

if TYPE_CHECKING:
    from torch import Tensor

    from restore.channels import Task
    from restore.cli.scoring.source import Source
    from restore.data.gathering.stock import Stock
    from restore.evaluation.evaluate import Report
    from restore.evaluation.whole import WholeRestorer
    from restore.inference.pictures import PictureEngine
    from restore.inference.torch_engine import Engine


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
    """The scores of a prior, or of a pseudo-model, on images of its size or on whole images of any."""
    from restore.channels import parse_task
    from restore.errors import UsageError
    from restore.evaluation.baselines import BASELINES
    from restore.inference.opening import require_torch
    from restore.zoo import describe, find

    # A pseudo-model has no file, and restores binary images.
    about = None if model in BASELINES else describe(find(model))
    damage = parse_task(trial.task, trial.mask, grey=about is not None and about.grey)
    if about is None and solver is not None:
        raise UsageError(f"{model}: has no solver; leave --solver out")
    require_torch(model)
    if about is not None and about.conditional and trial.mask == "known":
        raise UsageError(f"{about.name} sees the damaged image alone; leave --mask known out")

    from restore.cli import options

    memory = options.memory_size(max_memory)
    stock = source.stock()
    if about is None:
        several = len(set(map(tuple, stock.sizes.tolist()))) > 1
        return (_of_median if several else _of_baseline)(model, source, stock, damage, trial)
    if about.conditional and str(damage) != str(parse_task(about.task).unmasked()) and not source.quiet:
        say(f"{model}: was trained to undo {about.task}, not {damage}")
    damage = damage.unmasked() if about.conditional else damage
    if source.is_of_wholes(stock, about):
        engine = source.opened(model, stock, device, memory, solver)
        report = _of_wholes(engine, source, stock, damage, trial)
        return replace(report, solver=engine.description.inference.solver)
    fitting = _torch_engine(model, device, memory, solver)
    report = _of_one_size(fitting, source, stock, damage, trial)
    return replace(report, solver=fitting.description.inference.solver)


def _torch_engine(model: str, device: str, memory: int | None, solver: str | None) -> Engine:
    from restore.inference.torch_engine import Engine

    engine = Engine.load(model, device, memory)
    return engine if solver is None else engine.with_solver(solver)


def _of_baseline(model: str, source: Source, stock: Stock, damage: Task, trial: Trial) -> Report:
    """The scores of a pseudo-model on images of one size."""
    import torch

    from restore.data import binarise, load, overlap
    from restore.evaluation.baselines import baseline
    from restore.evaluation.evaluate import evaluate

    dataset = source.loaded(stock)
    shape = (dataset.images.shape[1], dataset.images.shape[2])
    known = load(source.data, split="train", root=source.root, max_pixels=source.max_pixels)
    shared = overlap(known, dataset)
    if shared:
        source.note(f"{model} was fitted to {shared} of the images it restores")
    threshold, generator = source.threshold_or(127), torch.Generator().manual_seed(trial.seed)
    simple = baseline(model, torch.from_numpy(binarise(known.images, threshold)), shape, trial.neighbours)
    return evaluate(simple.restore, source.binary(dataset, 127), damage, shape, generator, grey=trial.soft)


def _of_one_size(engine: Engine, source: Source, stock: Stock, damage: Task, trial: Trial) -> Report:
    """The scores of a prior on images of its size."""
    import torch

    from restore.evaluation.evaluate import evaluate, restorer_of

    dataset, about = source.loaded(stock), engine.description
    source.check_size(dataset, about)
    truth, generator = source.pixels(dataset, about), torch.Generator().manual_seed(trial.seed)
    return evaluate(restorer_of(engine), truth, damage, about.image_shape, generator, grey=trial.soft or about.grey)


def _of_median(model: str, source: Source, stock: Stock, damage: Task, trial: Trial) -> Report:
    """The scores of the median filter on whole images."""
    from restore.errors import UsageError
    from restore.evaluation.whole import by_median

    if model != "median":
        raise UsageError(f"{source.data}: holds images of several sizes, and {model} knows one size; give another set")
    return _scored(by_median(3, grey=False), source, source.wholes(stock, 127, grey=False), damage, trial)


def _of_wholes(engine: PictureEngine, source: Source, stock: Stock, damage: Task, trial: Trial) -> Report:
    """The scores of a prior on whole images, restored in windows as `restore denoise` does it."""
    from restore.evaluation.whole import by_prior

    about = engine.description
    truths = source.wholes(stock, about.threshold, grey=about.grey)
    strange: list[float] = []
    report = _scored(by_prior(engine, strange.append), source, truths, damage, trial, grey=about.grey)
    if strange:
        nats = max(strange)
        source.note(
            f"{about.name} explains {len(strange)} of {len(truths)} images less well than independent pixels do (by up "
            f"to {nats:.0f} nats): `restore denoise` takes --force for them"
        )
    return report


def _scored(
    restorer: WholeRestorer,
    source: Source,
    truths: Sequence[Tensor],
    damage: Task,
    trial: Trial,
    *,
    grey: bool = False,
) -> Report:
    import torch

    from restore.evaluation.whole import evaluate_whole

    generator = torch.Generator().manual_seed(trial.seed)
    with source.restoring(str(damage)) as watch:
        return evaluate_whole(restorer, truths, damage, generator, grey=grey, soft=trial.soft, watch=watch)
