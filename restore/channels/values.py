"""Helpers of channels that work on numpy arrays and on torch tensors, so that each channel is written once.

Nothing here loads torch: a picture can be damaged without it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from restore.errors import UsageError
from restore.tracing import tracing

if TYPE_CHECKING:
    from torch import Tensor

# An image, and a parameter that broadcasts with images.
Array: TypeAlias = "np.ndarray | Tensor"
Parameter: TypeAlias = "float | np.ndarray | Tensor"

# The largest number of single precision, in which solvers compute.
LARGEST_FLOAT = float(np.finfo(np.float32).max)

# Log-odds beyond which a probability in single precision says nothing more.
MOST_LOG_ODDS = 16.0


def require(values: Parameter, rule: str, largest: float = LARGEST_FLOAT) -> None:
    """Refuse parameters outside [0, largest] with the rule in words; skipped while a graph is traced."""
    if tracing():
        return
    numbers: Any = np.asarray(values) if isinstance(values, int | float) else values
    # Written so that NaN fails too.
    sound = (numbers >= 0) & (numbers <= largest)
    if not bool(sound.all()):
        raise UsageError(f"{rule}, not {float(numbers[~sound].flatten()[0])}")


def module_of(x: Array) -> Any:
    """The library of an array, numpy or torch: `where`, `full_like` and others are the same in both."""
    if isinstance(x, np.ndarray):
        return np
    import torch

    return torch


def like(values: Parameter, x: Array, *, double: bool = False) -> Any:
    """A parameter in the type and on the device of images; in double precision in numpy, or on request."""
    if isinstance(x, np.ndarray):
        return np.asarray(values, np.float64)
    import torch

    return torch.as_tensor(values, dtype=torch.float64 if double else x.dtype, device=x.device)


def as_floats(y: Tensor) -> Tensor:
    """Turn an image of whole numbers into floating point, so that fields are not rounded to whole numbers."""
    import torch

    return y if y.is_floating_point() else y.to(torch.get_default_dtype())


def uniform(x: Array, generator: Any) -> Any:
    """Numbers in [0, 1), one for each pixel of images."""
    if isinstance(x, np.ndarray):
        return generator.random(x.shape)
    import torch

    return torch.rand(x.shape, dtype=x.dtype, device=x.device, generator=generator)


def normal(x: Array, generator: Any) -> Any:
    """Standard normal numbers, one for each pixel of images."""
    if isinstance(x, np.ndarray):
        return generator.standard_normal(x.shape)
    import torch

    return torch.randn(x.shape, dtype=x.dtype, device=x.device, generator=generator)


def integers(below: int, count: int, generator: Any) -> Any:
    """Random whole numbers from 0 to `below` - 1, shape (count, 1)."""
    if isinstance(generator, np.random.Generator):
        return generator.integers(below, size=(count, 1))
    import torch

    return torch.randint(0, below, (count, 1), generator=generator, device=generator.device)


def positions(length: int, generator: Any) -> Any:
    """The whole numbers from 0 to `length` - 1, in order, in a generator's library and on its device."""
    if isinstance(generator, np.random.Generator):
        return np.arange(length)
    import torch

    return torch.arange(length, device=generator.device)


def log_odds_of(shares: np.ndarray) -> np.ndarray:
    """The log-odds of probabilities, within ±`MOST_LOG_ODDS`; a rounding error may have carried these out of [0, 1].

    >>> log_odds_of(np.array([0.0, 0.5, 1.0])).tolist()
    [-16.0, 0.0, 16.0]
    """
    inside = shares.clip(0, 1)
    with np.errstate(divide="ignore"):
        return np.asarray((np.log(inside) - np.log1p(-inside)).clip(-MOST_LOG_ODDS, MOST_LOG_ODDS))


def probability_of(log_odds: np.ndarray) -> np.ndarray:
    """The probabilities with these log-odds, in the same precision.

    >>> probability_of(np.array([-1e4, 0.0, 1e4])).tolist()
    [0.0, 0.5, 1.0]
    """
    return np.asarray((1 + np.tanh(log_odds / 2)) / 2)
