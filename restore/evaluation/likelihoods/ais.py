"""log Z of a binary RBM by annealed importance sampling (Neal, 2001; Salakhutdinov & Murray, ICML 2008).

Runs start from independent pixels, whose normaliser is known, and move to the machine as β goes from 0 to 1 through
p_β(v) ∝ exp((1 - β) aᵀv + β bᵀv) Π_j (1 + exp(β (Wᵀv + c)_j)), with the hidden units summed out. The mean of their
weights is an unbiased estimate of the ratio of the two normalisers; its logarithm is biased downwards.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor

from restore.console import Meter
from restore.errors import ModelError, UsageError, require
from restore.priors import RBM, FullyVisible
from restore.units import Bernoulli, log_one_plus_exp

# Probability that an estimate's interval contains the truth, provided that its runs visit the machine's modes.
LEVEL = 0.95

# Below this share of effective runs a few runs decide, and there is a warning.
POOR = 0.2


# End of each stretch of temperatures, from 0, and their number in it: Salakhutdinov & Murray, "On the quantitative
# analysis of deep belief networks", ICML 2008, sec. 4.1; also FW, sec. 5, and TAP machine, fig. 12.
_SALAKHUTDINOV = ((0.5, 500), (0.9, 4_000), (1.0, 10_000))
SCHEDULES: Mapping[str, tuple[tuple[float, int], ...]] = {
    "salakhutdinov": _SALAKHUTDINOV,
    "frank-wolfe": _SALAKHUTDINOV,
    "tap-machine": _SALAKHUTDINOV,
    # S-DCP, sec. 5.
    "s-dcp": ((1.0, 10_000),),
}

Schedule = str | Sequence[float]


@dataclass(frozen=True)
class Estimate:
    """An estimate of log Z from weighted runs.

    Attributes:
        log_partition: log Z, in nats.
        standard_error: of log Z, in nats.
        interval: a confidence interval for log Z, in nats: below and above.
        level: probability that such an interval contains the truth.
        runs: number of runs.
        effective_runs: effective sample size of their weights, (Σ w)² / Σ w², from 1 to `runs`.
        warning: a sentence if the weights are too uneven to trust; else empty.
    """

    log_partition: float
    standard_error: float
    interval: tuple[float, float]
    level: float
    runs: int
    effective_runs: float
    warning: str = ""


@torch.inference_mode()
def log_weights(
    machine: RBM | FullyVisible,
    schedule: Schedule,
    runs: int,
    generator: torch.Generator,
    base: Tensor | None = None,
    meter: Meter = lambda done, note="": None,
) -> Tensor:
    """Log-weights of independent runs, each with E[exp(log-weight)] = Z; shape (runs,), float64, in nats.

    All runs are one batch in the machine's own precision and on its device; weights are summed in float64. There is one
    sweep h ~ p_β(h|v), v ~ p_β(v|h) per temperature; its product Wᵀv also gives the next weight.

    Args:
        machine: a binary RBM, not a batch of tilted ones.
        schedule: see `temperatures`.
        runs: at least 2.
        generator: on the machine's device.
        base: log-odds a of the pixels that runs start from, shape (D,). Those of the training images' means are good;
            the default is fair coins.
        meter: receives the temperatures done; the first is not counted, so the last call has K - 1 of K.

    Raises:
        UsageError: if the schedule is invalid, or there are fewer than two runs.
        ModelError: if the machine is not a single binary RBM, the base does not fit, or a weight is not finite.
    """
    betas = temperatures(schedule).tolist()
    require(runs >= 2, f"an estimate with an error needs at least 2 runs, not {runs}")
    weights, visible_bias, hidden_bias = _parameters(machine)
    start = torch.zeros_like(visible_bias) if base is None else base.to(weights)
    if start.shape != visible_bias.shape:
        raise ModelError(f"a base of shape {tuple(start.shape)} does not fit a machine of {len(visible_bias)} pixels")
    # Buffers, so that no step allocates memory; states overwrite their uniform numbers.
    visible = weights.new_empty(runs, len(visible_bias))
    hidden_state = weights.new_empty(runs, len(hidden_bias))
    visible_odds, odds = torch.empty_like(visible), torch.empty_like(hidden_state)
    gain = visible_bias - start
    total = (log_one_plus_exp(start.double()).sum() + len(hidden_bias) * math.log(2)).expand(runs).clone()

    _sample(start.expand(runs, -1), visible, generator)
    for step, (before, after) in enumerate(pairwise(betas), 1):
        torch.addmm(hidden_bias, visible, weights, out=odds)
        rise = log_one_plus_exp(after * odds) - log_one_plus_exp(before * odds)
        total += rise.sum(1, dtype=torch.float64) + (after - before) * (visible @ gain).double()
        meter(step)
        if step + 1 == len(betas):
            break
        _sample(odds.mul_(after), hidden_state, generator)
        torch.addmm(torch.lerp(start, visible_bias, after), hidden_state, weights.T, alpha=after, out=visible_odds)
        _sample(visible_odds, visible, generator)
    if not bool(torch.isfinite(total).all()):
        raise ModelError("annealing led to weights that are not finite; the machine's parameters are too large")
    return total


def _sample(log_odds: Tensor, out: Tensor, generator: torch.Generator) -> None:
    """Draw binary units with these log-odds into `out`."""
    torch.rand(out.shape, generator=generator, out=out)
    torch.lt(out, torch.sigmoid(log_odds), out=out)


def _parameters(machine: RBM | FullyVisible) -> tuple[Tensor, Tensor, Tensor]:
    binary = all(isinstance(layer, Bernoulli) for layer in machine.layers)
    if not (isinstance(machine, RBM) and binary) or any(layer.parameters["bias"].dim() > 1 for layer in machine.layers):
        raise ModelError("annealing needs a single binary RBM; give one without a batch of fields")
    return machine.weights, machine.visible.parameters["bias"], machine.hidden.parameters["bias"]


def estimate(log_weights: Tensor, level: float = LEVEL) -> Estimate:
    """The log of the mean weight, its standard error, and a confidence interval, from log-weights (runs,).

    The interval is the union of two. log mean w ± t s / mean w is right for even weights and too short for skewed ones.
    mean l + s_l² / 2 ± t sqrt(s_l² / R + s_l⁴ / (2 (R - 1))) of the log-weights l (Cox) is right for log-normal
    weights, which annealing tends to, and wrong for others. For even weights the two coincide.

    Raises:
        UsageError: if the level is not a probability.
    """
    from scipy.special import stdtrit

    require(0 < level < 1, f"the level of an interval must lie between 0 and 1, not {level}")
    runs = len(log_weights)
    top = log_weights.max()
    relative = torch.exp(log_weights - top)
    mean = relative.mean()
    centre = float(top + mean.log())
    error = float(relative.std() / mean) / math.sqrt(runs)
    variance = float(log_weights.var())
    normal = float(log_weights.mean()) + variance / 2
    spread = math.sqrt(variance / runs + variance**2 / (2 * (runs - 1)))
    quantile = float(stdtrit(runs - 1, (1 + level) / 2))
    interval = (
        min(centre - quantile * error, normal - quantile * spread),
        max(centre + quantile * error, normal + quantile * spread),
    )
    effective = float(relative.sum() ** 2 / (relative**2).sum())
    uneven = f"the weights of the {runs} runs count as {effective:.1f}: log Z may be too small"
    warning = f"{uneven}; give more temperatures" if effective < POOR * runs else ""
    return Estimate(centre, error, interval, level, runs, effective, warning)


def temperatures(schedule: Schedule) -> Tensor:
    """The inverse temperatures of a schedule: strictly increasing from 0 to 1, shape (K,), float64, K >= 2.

    Args:
        schedule: a key of `SCHEDULES`, "linear:K" for K evenly spaced ones, or the inverse temperatures themselves.

    Raises:
        UsageError: if there is no such schedule, it has fewer than two temperatures, or they do not increase from 0
            to 1.

    >>> temperatures("linear:5").tolist(), len(temperatures("salakhutdinov"))
    ([0.0, 0.25, 0.5, 0.75, 1.0], 14500)
    """
    if isinstance(schedule, str):
        return _named(schedule)
    values = torch.tensor([float(value) for value in schedule], dtype=torch.float64)
    require(len(values) >= 2, f"annealing needs at least 2 temperatures, 0 and 1 among them, not {len(values)}")
    # Written so that NaN fails too.
    if not (values[0] == 0 and values[-1] == 1 and bool((values.diff() > 0).all())):
        raise UsageError("the temperatures of a schedule must increase strictly from 0 to 1")
    return values


def _named(schedule: str) -> Tensor:
    if schedule in SCHEDULES:
        return _stretches(SCHEDULES[schedule])
    kind, colon, count = schedule.partition(":")
    if kind != "linear" or not colon or not count.isdecimal() or len(count) > 7:
        known = ", ".join(SCHEDULES)
        raise UsageError(f"no such schedule; give linear:K for K temperatures, or one of {known}", schedule)
    require(int(count) >= 2, f"annealing needs at least 2 temperatures, not {count}; give linear:1000, say")
    return torch.linspace(0, 1, int(count), dtype=torch.float64)


def _stretches(stretches: Sequence[tuple[float, int]]) -> Tensor:
    """Evenly spaced temperatures per stretch, each without its end, except the last."""
    parts = []
    begin = 0.0
    for index, (end, count) in enumerate(stretches):
        last = index + 1 == len(stretches)
        parts.append(torch.linspace(begin, end, count if last else count + 1, dtype=torch.float64)[:count])
        begin = end
    return torch.cat(parts)
