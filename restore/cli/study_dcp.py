"""`restore study dcp`: learners of RBMs at equal numbers of Gibbs sweeps."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING

from restore.cli.study_report import Asked, read_record, report

if TYPE_CHECKING:
    from torch import Tensor

    from restore.evaluation.dcp.large import Curve, Plan
    from restore.evaluation.dcp.small import Trials


def study_dcp(asked: Asked) -> None:
    """Write dcp.json, two figures and two parts of README.md; what dcp.json has already is not run again."""
    from restore.errors import InputError
    from restore.evaluation.dcp import large, small
    from restore.files import write_atomically

    path = asked.output / "dcp.json"
    settings = {"seed": asked.seed, "n": asked.n}
    trials, known = read_record(
        path,
        settings,
        lambda record: (list(map(small.read, record.get("small", ()))), list(map(large.read, record.get("large", ())))),
    )
    curves = {curve.plan: curve for curve in known}

    def write() -> None:
        record = {"small": [asdict(one) for one in trials], "large": [asdict(one) for one in curves.values()]}
        write_atomically(path, json.dumps(settings | record).encode())

    if asked.train_missing:
        for found in _learn_small(trials, asked):
            trials += found
            write()
        for curve in _train_large(curves, asked):
            curves[curve.plan] = curve
            write()
    if not trials and not curves:
        raise InputError(f"{path}: holds nothing of this study yet; give --train")
    parts = {}
    if trials:
        parts["dcp-small"] = small.tables(trials)
        small.draw(trials, asked.output / "dcp-small.png")
    if curves:
        figures = {name: [curves[plan] for plan in plans if plan in curves] for name, plans in large.plans().items()}
        parts["dcp-large"] = large.tables(figures)
        large.draw(figures, asked.output / "dcp-large.png")
    report(asked.output, parts)


def _learn_small(known: list[Trials], asked: Asked) -> Iterator[list[Trials]]:
    """The trials that are missing, those of all rates together."""
    from itertools import product

    import torch

    from restore.data import binarise, load
    from restore.evaluation.dcp import small
    from restore.evaluation.dcp.learners import ALGORITHMS
    from restore.progress import progress

    torch.set_num_threads(1)
    there = {(one.data, one.copies, one.algorithm) for one in known}
    for data, (copies, trials), algorithm in product(small.BEST, small.TRIALS.items(), ALGORITHMS):
        if (data, copies, algorithm) in there:
            continue
        images = torch.from_numpy(binarise(load(data, split="train", root=asked.data_root).images))
        with progress(f"{data} x {copies}, {algorithm}", small.EPOCHS) as meter:
            yield small.learn(data, algorithm, images, copies=copies, trials=trials, seed=asked.seed, meter=meter)


def _train_large(known: dict[Plan, Curve], asked: Asked) -> Iterator[Curve]:
    """The curves that are missing, on one thread, in the order of `plans`."""
    import torch

    from restore.data import load, sample_binary
    from restore.evaluation.dcp import large
    from restore.progress import progress

    torch.set_num_threads(1)
    images: dict[str, tuple[Tensor, Tensor]] = {}
    for plan in dict.fromkeys(plan for plans in large.plans().values() for plan in plans):
        if plan in known:
            continue
        if plan.data not in images:
            # The images to be judged by are drawn apart from those to learn from.
            images[plan.data] = (
                torch.from_numpy(
                    sample_binary(load(plan.data, split="train", root=asked.data_root).images, asked.seed)
                ),
                torch.from_numpy(
                    sample_binary(load(plan.data, split="test", root=asked.data_root).images[: asked.n], asked.seed + 1)
                ),
            )
        training, test = images[plan.data]
        with progress(plan.name, plan.epochs) as meter:
            folder = asked.runs / "dcp" / plan.name
            yield large.train(plan, training[: plan.images or None], test, folder, asked.seed, meter)
