"""Several processes, started by torchrun, that train one prior together.

Between two steps all hold the same parameters, learner state and generator. Within a step each computes with its share
of the rows of a batch, and sends sums over rows, from which the gradient follows. The first process writes the files.
Without a process group everything here is the identity. Within one, all must make the same calls in order.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar

import torch
from torch import Tensor
from torch import distributed as group
from torch.overrides import TorchFunctionMode

from restore.errors import RestoreError, TrainingError, UsageError, option, reason

# Longer than the others ever wait for the first process. The death of a process is noticed at once.
PATIENCE = timedelta(days=1)

Result = TypeVar("Result")


def processes() -> int:
    return group.get_world_size() if group.is_available() and group.is_initialized() else 1


def rank() -> int:
    return group.get_rank() if processes() > 1 else 0


def is_first() -> bool:
    return rank() == 0


def summed(values: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Sum tensors over processes, by name, with the same bits in all; TrainingError if another process is gone."""
    if processes() == 1:
        return dict(values)
    sums: dict[str, Tensor] = {}
    # Each small message would take as long as a large one.
    for kind in dict.fromkeys(value.dtype for value in values.values()):
        alike = {name: value for name, value in values.items() if value.dtype == kind}
        message = torch.cat([value.flatten() for value in alike.values()])
        _meet(group.all_reduce, message)
        parts = message.split([value.numel() for value in alike.values()])
        # Copies, aligned like a checkpoint's: see `checkpoint.load`.
        sums |= {name: part.view_as(alike[name]).clone() for name, part in zip(alike, parts, strict=True)}
    return sums


def highest(number: float) -> float:
    message = torch.tensor(number, dtype=torch.float64)
    if processes() > 1:
        _meet(group.all_reduce, message, group.ReduceOp.MAX)
    return float(message)


def from_first(work: Callable[[], Result]) -> Result:
    """Do work in the first process only; its result, or its RestoreError, reaches all. Tensors stay on its device."""
    if processes() == 1:
        return work()
    told: list[Any] = [None]
    try:
        told = [work() if is_first() else None]
    except RestoreError as fault:
        told = [fault]
    _meet(group.broadcast_object_list, told, src=0)
    if isinstance(told[0], RestoreError):
        raise told[0]
    return told[0]


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
        return rows[self.first : self.last]

    def placed(self, own: Tensor) -> Tensor:
        """Put own rows at their places among all (total, ...), 0 elsewhere."""
        if self.size == self.total:
            return own
        rows = own.new_zeros((self.total, *own.shape[1:]))
        rows[self.first : self.last] = own
        return rows

    def part(self, means: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """The contribution of means over own rows; summed over processes, they are the means over all rows."""
        if self.size == self.total:
            return dict(means)
        # Means over no rows would be NaN.
        share = self.size / self.total
        return {name: value * share if share else torch.zeros_like(value) for name, value in means.items()}

    def draws(self) -> contextlib.AbstractContextManager[Any]:
        """A context in which random numbers for own rows are those that a process with all rows would draw."""
        return contextlib.nullcontext() if self.size == self.total else _OwnDraws(self)


class _OwnDraws(TorchFunctionMode):
    """Draws for all rows instead of own ones, so that generators stay equal in all processes."""

    def __init__(self, share: Share) -> None:
        super().__init__()
        self.share = share

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func not in (torch.rand, torch.randn):
            return func(*args, **(kwargs or {}))
        (rows, *row), *others = args
        assert rows == self.share.size
        return self.share.own(func((self.share.total, *row), *others, **(kwargs or {})))


@contextlib.contextmanager
def joined() -> Iterator[None]:
    """Work with the other processes of torchrun, each on a GPU of its own if there are enough; UsageError if not."""
    count, each = os.environ["WORLD_SIZE"], int(os.environ.get("LOCAL_RANK", "0"))
    gpus = torch.cuda.device_count() if torch.cuda.is_available() else 0
    # NCCL refuses processes that share a GPU. Small CPU messages do not wait for the GPU.
    alone = 0 < int(os.environ.get("LOCAL_WORLD_SIZE", count)) <= gpus
    try:
        if gpus:
            torch.cuda.set_device(each % gpus)
        group.init_process_group("cpu:gloo,cuda:nccl" if alone else "gloo", timeout=PATIENCE)
    except (ValueError, RuntimeError, AttributeError) as fault:  # AttributeError: torch without torch.distributed
        raise UsageError(f"WORLD_SIZE is {count}, but {reason(fault)}; start with torchrun, or unset it") from fault
    try:
        yield
    finally:
        with contextlib.suppress(RuntimeError):
            group.destroy_process_group()


def _meet(call: Callable[..., Any], *values: Any, **options: Any) -> None:
    """Make a call that all processes make; raises TrainingError if one of them is gone."""
    try:
        call(*values, **options)
    except RuntimeError as fault:
        if is_first():
            # torchrun ends the remaining processes as soon; this one has yet to say why.
            with contextlib.suppress(ValueError):
                signal.signal(signal.SIGTERM, signal.SIG_IGN)
        gone = f"another process of this training is gone ({reason(fault)})"
        raise TrainingError(f"{gone}; go on with {option('resume')}") from fault
