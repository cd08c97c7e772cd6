"""More than one process: those that torchrun starts, which train one prior together.

Between two steps every process holds the same parameters, the same state of the learner and the same generator. Within
a step each computes with its share of the rows (`restore.learning.gradients.share`). So only sums over rows are sent.
What only one may do, above all to write files, is left to the first process.

Without a process group everything here is the identity. In one, every process has to make the same calls, in order.
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

# Longer than the first process takes for anything the others wait for. That a process has died shows at once.
PATIENCE = timedelta(days=1)

# What a failing process leaves in the store that all have; and that the first has read it and will say it.
FAILURE, HEARD = "restore/failure", "restore/heard"

# How long other processes wait for the first to hear of their failure.
HEARING = timedelta(seconds=10)

Result = TypeVar("Result")


class Lost(TrainingError):
    """Another process is gone, for a reason that is not known here."""


def processes() -> int:
    """How many processes work together."""
    return group.get_world_size() if group.is_available() and group.is_initialized() else 1


def rank() -> int:
    """The number of this process, from 0."""
    return group.get_rank() if processes() > 1 else 0


def is_first() -> bool:
    """Whether this process is the one that writes files."""
    return rank() == 0


def summed(values: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Sums over processes of tensors that each has under the same names and in the same shapes; the same bits in all.

    Raises:
        Lost: if another process is gone; so do all the functions below.
    """
    if processes() == 1:
        return dict(values)
    sums: dict[str, Tensor] = {}
    # Many small messages would take as long as a large one each.
    for kind in dict.fromkeys(value.dtype for value in values.values()):
        alike = {name: value for name, value in values.items() if value.dtype == kind}
        message = torch.cat([value.flatten() for value in alike.values()])
        with _meeting():
            group.all_reduce(message)
        parts = message.split([value.numel() for value in alike.values()])
        # Copies, which begin where an allocation does, as a checkpoint's do: see `checkpoint._read`.
        sums |= {name: part.view_as(alike[name]).clone() for name, part in zip(alike, parts, strict=True)}
    return sums


def highest(number: int) -> int:
    """The highest number that a process has."""
    if processes() == 1:
        return number
    message = torch.tensor(int(number))
    with _meeting():
        group.all_reduce(message, group.ReduceOp.MAX)
    return int(message)


def from_first(work: Callable[[], Result]) -> Result:
    """What `work` returns in the first process, which alone does it; the others wait.

    Tensors in it are where the first process has them.

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
    """Work together with the other processes that torchrun has started, each on a GPU of its own where there are any.

    If one fails, all do. The first raises what the failing one did, so that it can say it; and it says it undisturbed:
    from its failure on it ignores SIGTERM, by which torchrun ends those that are left.

    Raises:
        UsageError: this torch cannot, or the environment is not that of torchrun.
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
        # A store that is gone has no use any more.
        with contextlib.suppress(RuntimeError):
            known = _known_failure(store, fault)
            # The others notice now.
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
    """Where processes leave notes for each other."""
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
    """How tensors travel; each process gets its current GPU. Small messages, of the processor, do not wait for it."""
    gpus = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if not gpus:
        return "gloo"
    torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")) % gpus)
    # NCCL refuses processes that share a GPU.
    shared = int(os.environ.get("LOCAL_WORLD_SIZE", os.environ["WORLD_SIZE"])) > gpus
    return "gloo" if shared or not group.is_nccl_available() else "cpu:gloo,cuda:nccl"


def _known_failure(store: group.Store, fault: BaseException) -> RestoreError | None:
    """The failure of the process that is gone, if it told; one of this process's own is told instead."""
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
    """Let the first process ignore SIGTERM from here on, where this thread may say so."""
    if is_first():
        with contextlib.suppress(ValueError):
            signal.signal(signal.SIGTERM, signal.SIG_IGN)


@contextmanager
def _meeting() -> Iterator[None]:
    try:
        yield
    except RuntimeError as fault:
        # At once: torchrun notices a process that is gone about as soon.
        _undisturbed()
        reason = str(fault).partition("\n")[0]
        raise Lost(f"another process of this training is gone ({reason}); go on with --resume") from fault
