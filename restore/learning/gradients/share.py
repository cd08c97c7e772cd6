"""Divide the rows of a batch among processes.

A gradient is not averaged over processes at its end, but from its statistics, before all that is not linear in them:
the centred gauge, the norms of spectral descent. Every process draws the random numbers of all rows, so that a row
gets the same numbers for any number of processes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from restore.learning.run.parallel import processes, rank


@dataclass(frozen=True)
class Share:
    """Rows `first` to `last` (exclusive) of `total`; none if there are fewer rows than processes."""

    first: int
    last: int
    total: int

    @classmethod
    def of(cls, total: int) -> Share:
        """This process's share: about as many rows as any other's; all rows if it is alone."""
        first, last = (total * number // processes() for number in (rank(), rank() + 1))
        return cls(first, last, total)

    @property
    def size(self) -> int:
        return self.last - self.first

    def own(self, rows: Tensor) -> Tensor:
        """This process's rows among all rows (total, ...)."""
        return rows[self.first : self.last]

    def placed(self, own: Tensor) -> Tensor:
        """Put own rows at their places among all (total, ...), 0 elsewhere; the sum over processes has all rows."""
        if self.size == self.total:
            return own
        rows = own.new_zeros((self.total, *own.shape[1:]))
        rows[self.first : self.last] = own
        return rows

    def part(self, means: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """The contribution of means over own rows; summed over processes, they are the means over all rows."""
        if self.size == self.total:
            return dict(means)
        if not self.size:
            # Means over no rows would be NaN.
            return {name: torch.zeros_like(value) for name, value in means.items()}
        return {name: value * (self.size / self.total) for name, value in means.items()}

    def draws(self) -> AbstractContextManager[Any]:
        """A context in which random numbers for own rows are those that a process with all rows would draw."""
        return nullcontext() if self.size == self.total else _OwnDraws(self)


class _OwnDraws(TorchFunctionMode):
    """Draws for all rows instead of own ones, so that generators stay equal in all processes."""

    def __init__(self, share: Share) -> None:
        super().__init__()
        self.share = share

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Iterable[type],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        if func not in (torch.rand, torch.randn):
            return func(*args, **(kwargs or {}))
        (rows, *row), *others = args
        assert rows == self.share.size
        return self.share.own(func((self.share.total, *row), *others, **(kwargs or {})))
