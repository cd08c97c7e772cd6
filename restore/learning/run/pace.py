"""Estimate how many epochs fit into a time, from the time that others took."""

from __future__ import annotations

import math
from typing import Any

from restore.learning.recipes.recipe import Recipe
from restore.learning.run.parallel import highest
from restore.learning.run.running import Run

# The share of a time to plan with, as computers also do other work.
SPARE = 0.9


def epochs_within(seconds: float, first: float, growth: float) -> int:
    """How many epochs fit into a time, at least one, if each takes `growth` longer than the one before."""
    if growth <= 0:
        return max(1, int(seconds / first))
    # The sum over n epochs is n first + n (n - 1) growth / 2.
    half = first / growth - 0.5
    return max(1, int(math.sqrt(half**2 + 2 * max(seconds, 0.0) / growth) - half))


def replanned(done: float, seconds: float, budget: float, growth: float) -> int:
    """How many epochs to plan in all, after some of them, so that they fit into a time.

    Args:
        done: how many are done, counting parts; above 0.
        seconds: what they took.
        budget: seconds for all.
        growth: by what share of the first each epoch takes longer than the one before.
    """
    first = seconds / (done + growth * max(0.0, done * (done - 1) / 2))
    if seconds >= budget or first <= 0:
        return math.ceil(done)
    return max(math.ceil(done), epochs_within(seconds + SPARE * (budget - seconds), first, growth * first))


def epochs_in_all(run: Run[Any], recipe: Recipe, budget: float, batches: int) -> int:
    """How many epochs to plan in all, by those done, under a changed time limit."""
    wanted = recipe.training.epochs
    if not recipe.training.minutes:
        return wanted
    found = highest(replanned(run.step / batches, run.seconds, budget, slowing(recipe)))
    return min(wanted, found) if wanted else found


def slowing(recipe: Recipe) -> float:
    """By what share of the first each epoch takes longer than the one before."""
    limits = [recipe.learner.inference(epoch).max_iter if recipe.conditional else 1 for epoch in (0, 1)]
    return limits[1] / limits[0] - 1
