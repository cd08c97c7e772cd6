"""The study of S-DCP: learners of RBMs at equal numbers of Gibbs sweeps (Upadhya & Sastry, ACML 2017, sec. 4 and 5)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import dcp_large as large
import dcp_small as small
import torch
from dcp_large import Curve, Plan
from dcp_learners import ALGORITHMS
from dcp_small import Trials
from harness import Asked, main, publish, read, write
from torch import Tensor

from restore.console import progress
from restore.data import load, sample_binary
from restore.errors import InputError


def study(asked: Asked) -> None:
    """Write dcp.json and its tables; with --train, learn first what dcp.json has not."""
    path, settings = asked.records / "dcp.json", {"seed": asked.seed, "n": asked.n}
    known = read(path, settings, small=Trials, exact=Trials, large=Curve)
    trials: list[Trials] = known["small"]
    exact: list[Trials] = known["exact"]
    curves: dict[Plan, Curve] = {curve.plan: curve for curve in known["large"]}

    def keep() -> None:
        write(path, settings | {"small": trials, "exact": exact, "large": list(curves.values())}, indent=None)

    if asked.train_missing:
        torch.set_num_threads(1)
        for found in _learn_small(trials, asked):
            trials += found
            keep()
        for found in _learn_exactly(exact, asked):
            exact += found
            keep()
        for curve in _train_large(curves, asked):
            curves[curve.plan] = curve
            keep()
    if not trials and not curves:
        raise InputError(f"{path}: holds nothing of this study yet; give --train")
    tables = {}
    if trials:
        tables["dcp-small"] = small.tables(trials)
    if exact:
        tables["dcp-exact"] = small.tables(exact, small.EXACTLY)
    if curves:
        shown = {name: [curves[plan] for plan in plans if plan in curves] for name, plans in large.plans().items()}
        tables["dcp-large"] = large.tables(shown)
    publish(asked, tables)


def _learn_small(known: list[Trials], asked: Asked) -> Iterator[list[Trials]]:
    """The trials that are missing, those of all rates together."""
    there = {(one.data, one.copies, one.algorithm) for one in known}
    for data, (copies, trials), algorithm in product(small.BEST, small.TRIALS.items(), ALGORITHMS):
        if (data, copies, algorithm) in there:
            continue
        images = asked.images(data, "train")
        with progress(f"{data} x {copies}, {algorithm}", small.EPOCHS) as meter:
            yield small.learn(data, algorithm, images, copies=copies, trials=trials, seed=asked.seed, meter=meter)


def _learn_exactly(known: list[Trials], asked: Asked) -> Iterator[list[Trials]]:
    """The trials without chains that are missing."""
    images = asked.images(small.EXACT_DATA, "train")
    for algorithm in small.EXACT:
        if algorithm not in {one.algorithm for one in known}:
            with progress(f"{small.EXACT_DATA}{small.EXACTLY}, {algorithm}", small.EPOCHS) as meter:
                yield small.learn_exactly(algorithm, images, trials=small.TRIALS[1], seed=asked.seed, meter=meter)


def _train_large(known: dict[Plan, Curve], asked: Asked) -> Iterator[Curve]:
    """The curves that are missing, in the order of `plans`."""
    images: dict[str, tuple[Tensor, Tensor]] = {}
    for plan in dict.fromkeys(plan for plans in large.plans().values() for plan in plans):
        if plan in known:
            continue
        if plan.data not in images:
            train = load(plan.data, split="train", root=asked.data).images
            test = load(plan.data, split="test", root=asked.data).images[: asked.n]
            # The images to be judged by are drawn apart from those to learn from.
            drawn = (sample_binary(train, asked.seed), sample_binary(test, asked.seed + 1))
            images[plan.data] = (torch.from_numpy(drawn[0]), torch.from_numpy(drawn[1]))
        training, judged = images[plan.data]
        with progress(plan.name, plan.epochs) as meter:
            folder = asked.runs / "dcp" / plan.name
            yield large.train(plan, training[: plan.images or None], judged, folder, asked.seed, meter)


if __name__ == "__main__":
    main(study)
