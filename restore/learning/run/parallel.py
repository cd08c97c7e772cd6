"""Several processes, started by torchrun, that train one prior together.

Between two steps all processes hold the same parameters, learner state and generator. Within a step each computes with
its share of the rows (`restore.learning.gradients.share`), so only sums over rows are sent. What only one may do, above
all writing files, is left to the first process.

Without a process group everything here is the identity. Within one, all processes must make the same calls in order.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from typing import TypeVar

import torch
from torch import Tensor
from torch import distributed as group

from restore import errors
from restore.errors import RestoreError, TrainingError, UsageError

# Longer than the others ever wait for the first process. The death of a process is noticed at once.
PATIENCE = timedelta(days=1)

# Keys of the shared store: the message of a failing process; and that the first process has read it and will report it.
FAILURE, HEARD = "restore/failure", "restore/heard"

# How long other processes wait for the first to read their failure.
HEARING = timedelta(seconds=10)

Result = TypeVar("Result")


class Lost(TrainingError):
    """Another process is gone, for an unknown reason."""


def processes() -> int:
    return group.get_world_size() if group.is_available() and group.is_initialized() else 1


def rank() -> int:
    """The number of this process, from 0."""
    return group.get_rank() if processes() > 1 else 0


def is_first() -> bool:
    """Whether this process writes the files."""
    return rank() == 0


def summed(values: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Sum tensors over processes, by name; the result has the same bits in all.

    Raises:
        Lost: if another process is gone; all functions below raise it too.
    """
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


def highest(number: int) -> int:
    """The largest number among all processes."""
    if processes() == 1:
        return number
    message = torch.tensor(int(number))
    with _meeting():
        group.all_reduce(message, group.ReduceOp.MAX)
    return int(message)


def from_first(work: Callable[[], Result]) -> Result:
    """Do work in the first process only, and return its result in all.

    Tensors in the result stay on the first process's device.

    Raises:
        RestoreError: in every process, if the first raises one.
    """
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


@contextmanager
def joined() -> Iterator[None]:
    """Work together with the other processes that torchrun has started, each on its own GPU if there are any.

    If one fails, all do. The first raises the failing one's error, to report it. From its failure on it ignores
    SIGTERM, with which torchrun ends the remaining processes.

    Raises:
        UsageError: this torch cannot do it, or the environment is not that of torchrun.
        Lost: another process is gone and has not said why.
    """
    store = _store()
    group.init_process_group(
        _backend(),
        store=store,
        rank=int(os.environ["RANK"]),
        world_size=int(os.environ["WORLD_SIZE"]),
        timeout=PATIENCE,
    )
    first = is_first()
    try:
        yield
    except (RestoreError, KeyboardInterrupt) as fault:
        _undisturbed()
        # If the store is gone, it is no longer needed.
        with contextlib.suppress(RuntimeError):
            known = _known_failure(store, fault)
            # From here the others notice.
            group.destroy_process_group()
            if first:
                store.set(HEARD, "")
            else:
                store.wait([HEARD], HEARING)
            if known is not None:
                raise known from fault
        raise
    group.destroy_process_group()


def _store() -> group.Store:
    """The store in which processes leave messages for each other."""
    count = os.environ["WORLD_SIZE"]
    if not group.is_available():
        raise UsageError(
            f"WORLD_SIZE is {count}, and this torch has no torch.distributed; install another, or unset it"
        )
    try:
        store, _, _ = next(iter(group.rendezvous("env://")))
    except ValueError as fault:
        raise UsageError(f"WORLD_SIZE is {count}, but {fault}; start with torchrun, or unset it") from fault
    except RuntimeError as fault:
        reason = str(fault).partition("\n")[0]
        raise UsageError(
            f"the other processes cannot be reached ({reason}); start all of them with torchrun"
        ) from fault
    return store


def _backend() -> str:
    """Choose how tensors are sent, and set each process's GPU. Small CPU messages do not wait for the GPU."""
    gpus = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if not gpus:
        return "gloo"
    torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")) % gpus)
    # NCCL refuses processes that share a GPU.
    shared = int(os.environ.get("LOCAL_WORLD_SIZE", os.environ["WORLD_SIZE"])) > gpus
    return "gloo" if shared or not group.is_nccl_available() else "cpu:gloo,cuda:nccl"


def _known_failure(store: group.Store, fault: BaseException) -> RestoreError | None:
    """The error of the process that is gone, if it left one; an error of this process is left for the others."""
    if isinstance(fault, Lost):
        if not store.check([FAILURE]):
            return None
        kind, text = json.loads(store.get(FAILURE))
        return getattr(errors, kind)(text)
    if isinstance(fault, RestoreError):
        kind = next(kind.__name__ for kind in type(fault).__mro__ if hasattr(errors, kind.__name__))
        store.set(FAILURE, json.dumps([kind, str(fault)]))
    return None


def _undisturbed() -> None:
    """Make the first process ignore SIGTERM from here on, if this is its main thread."""
    if is_first():
        with contextlib.suppress(ValueError):
            signal.signal(signal.SIGTERM, signal.SIG_IGN)


@contextmanager
def _meeting() -> Iterator[None]:
    try:
        yield
    except RuntimeError as fault:
        # At once: torchrun notices the missing process about as soon.
        _undisturbed()
        reason = str(fault).partition("\n")[0]
        raise Lost(f"another process of this training is gone ({reason}); go on with --resume") from fault
