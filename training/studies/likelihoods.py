"""Likelihoods along a training run, by three methods, and of finished priors (TAP machine, appendix F, Fig. 12)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import torch
from harness import Asked, kept_of, main, publish, spread, write
from mean_likelihoods import Likelihood, ais_likelihood, exact_likelihood
from opened import plain_machine
from pseudo import pseudo_likelihood
from tap_likelihood import precise_solver, tap_likelihood
from torch import Tensor

from restore.console import say
from restore.errors import InputError, UsageError
from restore.evaluation.card import plus_minus, table
from restore.evaluation.likelihoods.exact import chunks
from restore.inference.torch_engine import Engine
from restore.learning.recipe.recipe import read_recipe

# The run that is measured, and at how many of its epochs.
RECIPE = Path("likelihoods/tap-mnist-500-along.toml")
EPOCHS = 10

# As in the paper.
SCHEDULE, RUNS, STARTS, PIXELS = "tap-machine", 100, 100, 100

BY_SOLUTIONS = ("TAP, mean", "TAP, log-sum-exp", "solutions (starts that converged)")

LABELS = {"exact": "exact", "ais": "AIS", "tap": "TAP", "pseudo": "pseudo-likelihood"}


@dataclass(frozen=True)
class Measured:
    """The likelihoods of one prior by kind: "ais", "tap", "pseudo", and "exact" where that is a small sum."""

    name: str
    hidden: int
    likelihoods: Mapping[str, Likelihood]


def measure(engine: Engine, images: Tensor, seed: int, schedule: str = SCHEDULE) -> Measured:
    """All likelihoods of binary images (N, D) under a prior; TAP starts from some of the images.

    Raises:
        ModelError: if the prior is a conditional one, or its likelihoods are no finite numbers.
    """
    machine = plain_machine(engine, "likelihood")
    images = images.to(engine.device)
    generator = torch.Generator(engine.device).manual_seed(seed)
    chosen = torch.randperm(len(images), generator=generator, device=engine.device)[:STARTS]
    found = {
        "ais": ais_likelihood(machine, images, schedule, RUNS, generator, torch.logit(engine.trained.pixel_means)),
        "tap": tap_likelihood(machine, images, images[chosen], precise_solver(engine.header.inference)),
        "pseudo": pseudo_likelihood(machine, images, min(PIXELS, images.shape[1]), generator),
    }
    if _summable(machine, images):
        found = {"exact": exact_likelihood(machine, images)} | found
    return Measured(engine.header.name, engine.header.hidden, found)


def _summable(machine: Any, images: Tensor) -> bool:
    try:
        chunks(machine, images.shape[1])
    except UsageError:
        return False
    return True


def along(kept: Mapping[int, Engine], images: Tensor, seed: int, schedule: str = SCHEDULE) -> dict[int, Measured]:
    """The likelihoods of the priors kept along a run, by epoch."""
    found = {}
    for epoch, engine in kept.items():
        found[epoch] = measure(engine, images, seed, schedule)
        parts = ", ".join(f"{LABELS[kind]} {value.mean:.2f}" for kind, value in found[epoch].likelihoods.items())
        say(f"epoch {epoch}: {parts}")
    return found


def rank_correlations(found: Mapping[int, Measured]) -> dict[tuple[str, str], float]:
    """Spearman's correlation between every two kinds over the epochs: 1 for the same order, NaN where there is none."""
    from scipy.stats import spearmanr

    means = {
        kind: [measured.likelihoods[kind].mean for measured in found.values()] for kind in ("ais", "tap", "pseudo")
    }
    return {
        (one, other): float(spearmanr(means[one], means[other])[0])
        if min(len(set(means[one])), len(set(means[other]))) > 1
        else math.nan
        for one, other in combinations(means, 2)
    }


def along_table(found: Mapping[int, Measured]) -> str:
    """Markdown: a row per epoch."""
    rows = []
    for epoch, measured in found.items():
        ais, tap, pseudo = (measured.likelihoods[kind] for kind in ("ais", "tap", "pseudo"))
        rows.append(
            [str(epoch), _with_interval(ais), _log_z(ais), *_by_solutions(tap), _log_z(tap), _with_error(pseudo)]
        )
    return table(["epoch", "AIS", "log Z by AIS", *BY_SOLUTIONS, "log Z by TAP, mean", "pseudo-likelihood"], rows)


def priors_table(found: Sequence[Measured]) -> str:
    """Markdown: a row per prior."""
    rows = []
    for measured in found:
        exact, ais, tap, pseudo = (measured.likelihoods.get(kind) for kind in LABELS)
        rows.append(
            [
                f"`{measured.name}`",
                str(measured.hidden),
                f"{exact.mean:.3f}" if exact else "",
                _with_interval(ais) if ais else "",
                f"{dict(ais.details)['effective_runs']:.0f}" if ais else "",
                *(_by_solutions(tap) if tap else [""] * len(BY_SOLUTIONS)),
                _with_error(pseudo) if pseudo else "",
            ]
        )
    return table(["prior", "hidden units", "exact", "AIS", "effective runs", *BY_SOLUTIONS, "pseudo-likelihood"], rows)


def _with_interval(found: Likelihood) -> str:
    interval = found.sound_interval
    return f"{found.mean:.2f}" + (f" ({interval[0]:.2f} ... {interval[1]:.2f})" if interval else "")


def _by_solutions(found: Likelihood) -> list[str]:
    """A TAP likelihood by the mean over its solutions, and by their sum; the solutions and the starts they are from."""
    # What was measured by an earlier definition has neither.
    facts = {"mean_by_log_sum_exp": math.nan, "solutions": math.nan} | dict(found.details)
    # Of one solution there is none.
    error = found.log_partition_error or math.nan
    return [
        f"{found.mean:.2f}" if math.isnan(error) else plus_minus(found.mean, error, 2),
        f"{facts['mean_by_log_sum_exp']:.2f}",
        f"{facts['solutions']:.0f} ({facts['converged']:.0f} of {facts['starts']:.0f})",
    ]


def _with_error(found: Likelihood) -> str:
    return plus_minus(found.mean, found.standard_error, 2)


def _log_z(found: Likelihood) -> str:
    return f"{found.log_partition:.2f}"


def as_record(found: Mapping[int, Measured], priors: Sequence[Measured], n: int, seed: int) -> dict[str, Any]:
    """All figures, for JSON."""
    return {
        "n": n,
        "seed": seed,
        "along": {str(epoch): _plain(measured) for epoch, measured in found.items()},
        "priors": [_plain(measured) for measured in priors],
        "rank_correlations": {
            " ".join(pair): value if math.isfinite(value) else None for pair, value in rank_correlations(found).items()
        },
    }


def _plain(measured: Measured) -> dict[str, Any]:
    likelihoods = {kind: value.as_dict() for kind, value in measured.likelihoods.items()}
    return {"name": measured.name, "hidden": measured.hidden, "likelihoods": likelihoods}


def study(asked: Asked) -> None:
    """Measure a run and the published priors, and write likelihoods.json and two tables."""
    recipe = asked.recipes / RECIPE
    plan = read_recipe(recipe)
    folder = asked.runs / plan.name
    if asked.train_missing and plan.training.epochs not in kept_of(plan, folder):
        asked.train(recipe, folder / "prior", folder, every=1)
    kept = kept_of(plan, folder)
    if not kept:
        raise InputError(f"{folder}: has no priors in epochs/; train them with --train, or give --runs")
    images = asked.images(plan.data.source, "test", asked.n, cut=plan.data.threshold)
    chosen = spread(list(kept), EPOCHS)
    found = along({epoch: Engine.load(str(kept[epoch]), asked.device) for epoch in chosen}, images, asked.seed)
    priors = []
    for name, engine in asked.engines().items():
        if engine.header.task or engine.header.data != plan.data.source:
            continue
        priors.append(measure(engine, images, asked.seed))
        say(f"{name}: {priors[-1].likelihoods['ais'].mean:.2f} nats per image by AIS")
    tables = {"likelihoods-along": along_table(found)}
    if priors:
        tables["likelihoods"] = priors_table(priors)
    write(asked.records / "likelihoods.json", as_record(found, priors, len(images), asked.seed))
    publish(asked, tables)


if __name__ == "__main__":
    main(study)
