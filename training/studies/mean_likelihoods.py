"""Mean log-likelihoods of images: exactly, by annealing, or by whatever else gives log Z; and how certain they are."""

from __future__ import annotations

import math
import time
from dataclasses import asdict, dataclass

import torch
from torch import Tensor

from restore.console import Meter
from restore.evaluation.likelihoods.ais import Estimate, Schedule, estimate, log_weights, temperatures
from restore.evaluation.likelihoods.exact import Model, exact_log_partition, unnormalised
from restore.priors import RBM, FullyVisible

# Of fewer effective runs no interval is printed: their spread does not tell how far log Z may be off.
LEAST_RUNS = 5


@dataclass(frozen=True)
class Likelihood:
    """Mean log-likelihood of images under a prior, in nats per image.

    Attributes:
        kind: "exact", "ais", "tap" or "pseudo".
        n: number of images.
        mean: over the images.
        standard_error: of the mean, as that of all images of their kind; NaN for a single image.
        log_partition: log Z; None for a pseudo-likelihood, which needs none. For TAP the mean over its solutions.
        log_partition_error: standard error of log Z; 0 if exact.
        interval: the range of the mean over these images that the uncertain log Z leaves, at `level`; None if the
            method gives no such interval.
        level: probability that the interval contains the truth.
        details: more figures of the method, by name.
        warnings: sentences on what is wrong with the estimate.
        seconds: wall-clock time.
    """

    kind: str
    n: int
    mean: float
    standard_error: float
    log_partition: float | None = None
    log_partition_error: float | None = None
    interval: tuple[float, float] | None = None
    level: float | None = None
    details: tuple[tuple[str, float], ...] = ()
    warnings: tuple[str, ...] = ()
    seconds: float = 0.0

    @property
    def sound_interval(self) -> tuple[float, float] | None:
        """The interval, unless it follows from too few effective runs."""
        return self.interval if dict(self.details).get("effective_runs", math.inf) >= LEAST_RUNS else None

    def as_dict(self) -> dict[str, object]:
        """The result as JSON values; None for what is undefined."""
        facts = asdict(self) | dict(self.details)
        del facts["details"]
        undefined = {key for key, value in facts.items() if isinstance(value, float) and not math.isfinite(value)}
        return facts | dict.fromkeys(undefined)

    def as_text(self) -> str:
        """A few lines for people."""
        lines = [f"log-likelihood ({self.kind}): {self.n} images in {self.seconds:.2f} s"]
        lines.append(f"  {'mean, nats per image':<30} {self.mean:10.3f} ± {self.standard_error:.3f}")
        if self.sound_interval is not None:
            low, high = self.sound_interval
            lines.append(f"  {f'{self.level:.0%} interval from log Z':<30} {low:10.3f} ... {high:.3f}")
        if self.log_partition is not None:
            how = "log Z, mean over solutions" if self.kind == "tap" else "log Z"
            lines.append(f"  {how:<30} {self.log_partition:10.3f} ± {self.log_partition_error:.3f}")
        lines += [f"  {name.replace('_', ' '):<30} {value:10.5g}" for name, value in self.details]
        return "\n".join(lines)


def mean_and_error(values: Tensor) -> tuple[float, float]:
    """Mean of values (N,) and its standard error; NaN for a single value."""
    error = float(values.std()) / math.sqrt(len(values)) if len(values) > 1 else math.nan
    return float(values.mean()), error


def exact_likelihood(model: Model, images: Tensor, meter: Meter = lambda done, note="": None) -> Likelihood:
    """Mean log p(v) of binary images (N, D); the meter receives the chunks of states done, see `chunks`.

    Raises:
        UsageError: if there are more than MAX_SUMMED units to sum over.
        ModelError: see `unnormalised`.

    >>> fair_coins = RBM.binary(torch.zeros(3, 2), torch.zeros(3), torch.zeros(2))
    >>> round(exact_likelihood(fair_coins, torch.zeros(1, 3)).mean, 4)  # -3 log 2
    -2.0794
    """
    started = time.perf_counter()
    mean, error = mean_and_error(unnormalised(model, images))
    log_z = exact_log_partition(model, images, meter)
    seconds = time.perf_counter() - started
    return Likelihood("exact", len(images), mean - log_z, error, log_z, 0.0, seconds=seconds)


def mean_log_likelihood(machine: RBM | FullyVisible, images: Tensor, found: Estimate) -> float:
    """Mean of log p(v) = -F(v) - log Z over binary images (N, D), in nats; its error is that of the estimate."""
    return float(-machine.free_energy(images).double().mean()) - found.log_partition


def ais_likelihood(
    machine: RBM | FullyVisible,
    images: Tensor,
    schedule: Schedule,
    runs: int,
    generator: torch.Generator,
    base: Tensor | None = None,
    meter: Meter = lambda done, note="": None,
) -> Likelihood:
    """Mean log p(v) of binary images (N, D), with log Z by annealing; see `log_weights` for arguments and errors.

    >>> machine, white = RBM.binary(torch.full((8, 1), 0.5), torch.zeros(8), torch.zeros(1)), torch.ones(1, 8)
    >>> found = ais_likelihood(machine, white, "linear:50", runs=1000, generator=torch.Generator().manual_seed(0))
    >>> abs(found.mean - exact_likelihood(machine, white).mean) < 0.1
    True
    """
    started = time.perf_counter()
    mean, error = mean_and_error(unnormalised(machine, images))
    found = estimate(log_weights(machine, schedule, runs, generator, base, meter))
    low, high = found.interval
    return Likelihood(
        "ais",
        len(images),
        mean - found.log_partition,
        error,
        found.log_partition,
        found.standard_error,
        (mean - high, mean - low),
        found.level,
        (("runs", runs), ("effective_runs", found.effective_runs), ("temperatures", len(temperatures(schedule)))),
        (found.warning,) if found.warning else (),
        time.perf_counter() - started,
    )
