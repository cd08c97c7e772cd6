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
from contextlib import AbstractContextManager, contextmanager, nullcontext
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


class Lost(TrainingError):
    """Another process is gone."""


def processes() -> int:
    return group.get_world_size() if group.is_available() and group.is_initialized() else 1


def rank() -> int:
    return group.get_rank() if processes() > 1 else 0


def is_first() -> bool:
    return rank() == 0


def summed(values: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Sum tensors over processes, by name, with the same bits in all; raises Lost if another process is gone."""
    if processes() == 1:
        return dict(values)
    sums: dict[str, Tensor] = {}
    # Each small message would take as long as a large one.
    for kind in dict.fromkeys(value.dtype for value in values.values()):
        alike = {name: value for name, value in values.items() if value.dtype == kind}
        message = torch.cat([value.flatten() for value in alike.values()])
        with _meeting():
            group.all_reduce(message)
        parts = message.split([value.numel() for value in alike.values()])
        # Copies, aligned like a checkpoint's: see `checkpoint._read`.
        sums |= {name: part.view_as(alike[name]).clone() for name, part in zip(alike, parts, strict=True)}
    return sums


def highest(number: float) -> float:
    if processes() == 1:
        return number
    message = torch.tensor(number, dtype=torch.float64)
    with _meeting():
        group.all_reduce(message, group.ReduceOp.MAX)
    return float(message)


def from_first(work: Callable[[], Result]) -> Result:
    """Do work in the first process only; its result, or its RestoreError, reaches all. Tensors stay on its device."""
    if processes() == 1:
        return work()
    told: list[tuple[Result | None, RestoreError | None]] = [(None, None)]
    if is_first():
        try:
            told = [(work(), None)]
        except RestoreError as fault:
            told = [(None, fault)]
    with _meeting():
        group.broadcast_object_list(told, src=0)
    result, failure = told[0]
    if failure is not None:
        raise failure
    return result  # type: ignore[return-value] # None is what such work returns


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

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func not in (torch.rand, torch.randn):
            return func(*args, **(kwargs or {}))
        (rows, *row), *others = args
        assert rows == self.share.size
        return self.share.own(func((self.share.total, *row), *others, **(kwargs or {})))


@contextmanager
def joined() -> Iterator[None]:
    """Work together with the other processes of torchrun, each on its own GPU if there are any; a UsageError if not."""
    count = os.environ["WORLD_SIZE"]
    if not group.is_available():
        raise UsageError(f"WORLD_SIZE is {count}, and this torch has no torch.distributed; unset it")
    try:
        group.init_process_group(_backend(), timeout=PATIENCE)
    except (ValueError, RuntimeError) as fault:
        raise UsageError(f"WORLD_SIZE is {count}, but {reason(fault)}; start with torchrun, or unset it") from fault
    try:
        yield
    finally:
        with contextlib.suppress(RuntimeError):
            group.destroy_process_group()


def _backend() -> str:
    """Choose how tensors are sent, and set each process's GPU. Small CPU messages do not wait for the GPU."""
    gpus = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if not gpus:
        return "gloo"
    torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")) % gpus)
    # NCCL refuses processes that share a GPU.
    shared = int(os.environ.get("LOCAL_WORLD_SIZE", os.environ["WORLD_SIZE"])) > gpus
    return "gloo" if shared or not group.is_nccl_available() else "cpu:gloo,cuda:nccl"


@contextmanager
def _meeting() -> Iterator[None]:
    try:
        yield
    except RuntimeError as fault:
        if is_first():
            # torchrun ends the remaining processes as soon; this one has yet to say why.
            with contextlib.suppress(ValueError):
                signal.signal(signal.SIGTERM, signal.SIG_IGN)
        raise Lost(
            f"another process of this training is gone ({reason(fault)}); go on with {option('resume')}"
        ) from fault
