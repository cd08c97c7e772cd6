"""Measure how fast a prior trains here, before it does: how many epochs fit into a time, and on how many threads.

All steps done here are discarded.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import Any

import torch

from restore.learning.course import Course
from restore.learning.recipes.recipe import Recipe
from restore.learning.run.pace import SPARE, epochs_within
from restore.learning.run.parallel import highest
from restore.learning.run.running import Diverged, numbers
from restore.learning.run.session import Session
from restore.learning.stepping import advance, begin, hopeless, judge

# Speed is measured for this share of the time, with this many steps at least and at most. A trained prior takes this
# much longer to judge than one whose solver converges at once.
MEASURED = 0.02
FIRST_STEPS = 4
MOST_STEPS = 200
LATER = 2.0

# The share of the time that judging may take.
JUDGING = 0.1


@dataclass(frozen=True)
class Speed:
    """How fast a prior trains here, in seconds: a step of which an epoch has so many, and judging it once."""

    step: float
    batches: int
    judging: float

    @property
    def epoch(self) -> float:
        return self.batches * self.step

    def judged_every(self, least: int) -> int:
        """Every how many epochs the prior is judged, so that this takes little of the time; at least `least`."""
        return int(highest(max(least, math.ceil(self.judging / (JUDGING * self.epoch)))))

    def epochs(self, seconds: float, every: int, slower: float) -> int:
        """How many epochs fit into a time.

        Args:
            seconds: the time.
            every: every how many of them the prior is judged.
            slower: by what share of the first each takes longer than the one before.
        """
        first = self.epoch + self.judging / every
        return int(highest(epochs_within(SPARE * seconds, first, self.epoch * slower)))

    def forecast(self, epochs: int, every: int, slower: float) -> float:
        """About how many seconds so many epochs take."""
        growing = slower * epochs * (epochs - 1) / 2
        return self.epoch * (epochs + growing) + self.judging * math.ceil(epochs / every)


def speed(recipe: Recipe, course: Course[Any, Any], session: Session) -> Speed:
    """Measure how fast a prior trains."""
    run, elapsed = begin(recipe, course), session.timer()

    def enough(taken: Sequence[float]) -> bool:
        some = len(taken) >= FIRST_STEPS
        return some and (len(taken) == MOST_STEPS or not highest(taken[-1] - taken[0] < MEASURED * session.budget))

    taken = _times(run, recipe, course, session, enough)
    before = elapsed()
    judge(run, recipe, course, 0)
    # The first step is slower than all others.
    step = (taken[-1] - taken[0]) / (len(taken) - 1)
    return Speed(step, math.ceil(len(course.images) / recipe.training.batch), LATER * (elapsed() - before))


def use_fastest_threads(recipe: Recipe, course: Course[Any, Any], session: Session) -> None:
    """Let torch use as many threads as train fastest, at most as many as it uses already."""
    most = torch.get_num_threads()
    counts = [most] + [2**power for power in reversed(range(10)) if 2**power < most]
    if len(counts) == 1:
        return
    run, found = begin(recipe, course), dict[int, float]()
    for count in counts:
        torch.set_num_threads(count)
        taken = _times(run, recipe, course, session, lambda times: len(times) > FIRST_STEPS)
        found[count] = median(after - before for before, after in pairwise(taken))
    torch.set_num_threads(min(counts, key=lambda count: found[count]))


def _times(
    run: Any, recipe: Recipe, course: Course[Any, Any], session: Session, enough: Callable[[Sequence[float]], bool]
) -> list[float]:
    """When each of several steps ended."""
    elapsed, taken = session.timer(), list[float]()
    index = torch.arange(min(recipe.training.batch, len(course.images)), device=course.images.device)
    while not enough(taken):
        try:
            advance(run, recipe, course.batch(index, run.generator), recipe.optimizer.rate, 0)
        except Diverged as fault:
            raise hopeless(session.folder, fault) from fault
        numbers(run.sums)  # waits for asynchronous devices
        taken.append(elapsed())
    return taken
