"""Schedules of inverse temperatures for annealing: the papers' by name, evenly spaced ones, or a user's own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from restore.errors import UsageError

# The end of each stretch of temperatures, from 0, and how many are in it: Salakhutdinov & Murray, "On the quantitative
# analysis of deep belief networks", ICML 2008, sec. 4.1; also FW, sec. 5, and TAP machine, fig. 12.
_SALAKHUTDINOV = ((0.5, 500), (0.9, 4_000), (1.0, 10_000))
NAMED: Mapping[str, tuple[tuple[float, int], ...]] = {
    "salakhutdinov": _SALAKHUTDINOV,
    "frank-wolfe": _SALAKHUTDINOV,
    "tap-machine": _SALAKHUTDINOV,
    # S-DCP, sec. 5.
    "s-dcp": ((1.0, 10_000),),
}

Schedule = str | Sequence[float]


def temperatures(schedule: Schedule) -> Tensor:
    """The inverse temperatures of a schedule: strictly increasing from 0 to 1, shape (K,), float64, K >= 2.

    Args:
        schedule: a key of `NAMED`, "linear:K" for K evenly spaced ones, or the inverse temperatures themselves.

    Raises:
        UsageError: if there is no such schedule, it has fewer than two temperatures, or they do not increase from 0
            to 1.

    >>> temperatures("linear:5").tolist(), len(temperatures("salakhutdinov"))
    ([0.0, 0.25, 0.5, 0.75, 1.0], 14500)
    """
    if isinstance(schedule, str):
        return _named(schedule)
    values = torch.tensor([float(value) for value in schedule], dtype=torch.float64)
    if len(values) < 2:
        raise UsageError(f"annealing needs at least 2 temperatures, 0 and 1 among them, not {len(values)}")
    # Written so that NaN fails too.
    if not (values[0] == 0 and values[-1] == 1 and bool((values.diff() > 0).all())):
        raise UsageError("the temperatures of a schedule must increase strictly from 0 to 1")
    return values


def _named(schedule: str) -> Tensor:
    if schedule in NAMED:
        return _stretches(NAMED[schedule])
    kind, colon, count = schedule.partition(":")
    if kind != "linear" or not colon or not count.isdecimal() or len(count) > 7:
        known = ", ".join(NAMED)
        raise UsageError(f"no such schedule; give linear:K for K temperatures, or one of {known}", schedule)
    if int(count) < 2:
        raise UsageError(f"annealing needs at least 2 temperatures, not {count}; give linear:1000, say")
    return torch.linspace(0, 1, int(count), dtype=torch.float64)


def _stretches(stretches: Sequence[tuple[float, int]]) -> Tensor:
    """Evenly spaced temperatures per stretch, each without its end, except the last."""
    parts, begin = [], 0.0
    for index, (end, count) in enumerate(stretches):
        last = index + 1 == len(stretches)
        parts.append(torch.linspace(begin, end, count if last else count + 1, dtype=torch.float64)[:count])
        begin = end
    return torch.cat(parts)
