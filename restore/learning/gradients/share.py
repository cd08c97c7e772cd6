"""The rows of a batch that a process computes with, and what they are of all rows.

A gradient is not averaged over processes when it is done but from its statistics, before anything that is not linear in
them: the centred gauge, the norms of spectral descent. Every random number is drawn for all rows in every process, so
that a row gets the same ones however many processes there are.
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
    """Rows `first` to `last` (exclusive) of `total`; none where there are fewer rows than processes."""

    first: int
    last: int
    total: int

    @classmethod
    def of(cls, total: int) -> Share:
        """The share of this process, of about as many rows as any other's; all rows where it is alone."""
        first, last = (total * number // processes() for number in (rank(), rank() + 1))
        return cls(first, last, total)

    @property
    def size(self) -> int:
        return self.last - self.first

    def own(self, rows: Tensor) -> Tensor:
        """The own ones of all rows (total, ...)."""
        return rows[self.first : self.last]

    def placed(self, own: Tensor) -> Tensor:
        """Own rows where they belong among all (total, ...), the others 0: summed over processes, all rows."""
        if self.size == self.total:
            return own
        rows = own.new_zeros((self.total, *own.shape[1:]))
        rows[self.first : self.last] = own
        return rows

    def part(self, means: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """What means over the own rows contribute: summed over processes, the means over all rows."""
        if self.size == self.total:
            return dict(means)
        if not self.size:
            # Means over no rows are NaN.
            return {name: torch.zeros_like(value) for name, value in means.items()}
        return {name: value * (self.size / self.total) for name, value in means.items()}

    def draws(self) -> AbstractContextManager[Any]:
        """Within it uniform and normal numbers for the own rows are those that a process with all rows would draw."""
        return nullcontext() if self.size == self.total else _OwnDraws(self)


class _OwnDraws(TorchFunctionMode):
    """Draws for all rows instead of the own ones, so that generators stay the same in all processes."""

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
