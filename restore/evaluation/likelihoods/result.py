"""The result of a likelihood: its mean over images, and how certain that is."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Protocol

from torch import Tensor

from restore.errors import ModelError


class Model(Protocol):
    """Any prior over binary images whose unnormalised probability is known; likelihoods need no more."""

    def free_energy(self, visible: Tensor) -> Tensor:
        """F(v) of images (batch, D) with log p(v) = -F(v) - log Z; shape (batch,)."""


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
        if self.interval is not None:
            low, high = self.interval
            lines.append(f"  {f'{self.level:.0%} interval from log Z':<30} {low:10.3f} ... {high:.3f}")
        if self.log_partition is not None:
            how = "log Z, mean over solutions" if self.kind == "tap" else "log Z"
            lines.append(f"  {how:<30} {self.log_partition:10.3f} ± {self.log_partition_error:.3f}")
        lines += [f"  {name.replace('_', ' '):<30} {value:10.5g}" for name, value in self.details]
        return "\n".join(lines)


def unnormalised(model: Model, images: Tensor) -> Tensor:
    """-F(v), the log of the unnormalised probability of binary images (N, D); shape (N,), float64.

    Raises:
        ModelError: if a probability is not finite.
    """
    values = -model.free_energy(images).double()
    if not bool(values.isfinite().all()):
        raise ModelError("the model's free energy is not finite for some images; train it again")
    return values


def mean_and_error(values: Tensor) -> tuple[float, float]:
    """Mean of values (N,) and its standard error; NaN for a single value."""
    error = float(values.std()) / math.sqrt(len(values)) if len(values) > 1 else math.nan
    return float(values.mean()), error
