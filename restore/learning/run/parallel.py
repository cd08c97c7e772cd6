"""Several processes, started by torchrun, that train one prior together.

All hold the same parameters. Each has its rows of a mini-batch, its random numbers and what its learner remembers; the
loop averages gradients over processes. The first process writes the files. Without a process group everything here is
the identity. Within one, all must make the same calls in order.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from typing import Any, TypeVar

import torch
from torch import Tensor
from torch import distributed as group

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


def summed(values: Mapping[str, Tensor], weight: float = 1.0) -> dict[str, Tensor]:
    """Sum tensors over processes, those of this one with a weight, by name; with the same bits in all.

    Raises:
        TrainingError: if another process is gone.
    """
    if processes() == 1:
        return dict(values)
    sums: dict[str, Tensor] = {}
    # Each small message would take as long as a large one.
    for kind in dict.fromkeys(value.dtype for value in values.values()):
        alike = {name: value for name, value in values.items() if value.dtype == kind}
        message = torch.cat([value.flatten() for value in alike.values()]) * weight
        _meet(group.all_reduce, message)
        # Copies, aligned like any allocation: bits of products may depend on that.
        parts = message.split([value.numel() for value in alike.values()])
        sums |= {name: part.view_as(alike[name]).clone() for name, part in zip(alike, parts, strict=True)}
    return sums


def collected(values: Mapping[str, Tensor]) -> list[dict[str, Tensor]]:
    """The tensors of each process, in order of rank, in main memory."""
    if processes() == 1:
        return [dict(values)]
    everyone: list[Any] = [None] * processes()
    _meet(group.all_gather_object, everyone, {name: value.cpu() for name, value in values.items()})
    return everyone


def highest(number: float) -> float:
    message = torch.tensor(number, dtype=torch.float64)
    if processes() > 1:
        _meet(group.all_reduce, message, group.ReduceOp.MAX)
    return float(message)


def from_first(work: Callable[[], Result]) -> Result:
    """Do work in the first process only; its result, or its RestoreError, reaches all. Tensors stay on its device."""
    if processes() == 1:
        return work()
    results: list[Any] = [None]
    try:
        results = [work() if is_first() else None]
    except RestoreError as fault:
        results = [fault]
    _meet(group.broadcast_object_list, results, src=0)
    if isinstance(results[0], RestoreError):
        raise results[0]
    return results[0]


def own_rows(rows: Tensor) -> tuple[Tensor, float]:
    """This process's rows of a mini-batch, and their weight in a mean over processes.

    Processes have about as many rows each, and different ones; all have every row if there are fewer than processes.
    """
    if len(rows) < processes():
        return rows, 1 / processes()
    share = rows.tensor_split(processes())[rank()]
    return share, len(share) / len(rows)


def own_numbers(generator: torch.Generator) -> None:
    """Seed a generator, which is equal in all processes, anew in each but the first, by a draw of its rank."""
    if rank():
        draws = torch.randint(2**62, (rank(),), generator=generator, device=generator.device)
        generator.manual_seed(int(draws[-1]))


@contextlib.contextmanager
def joined() -> Iterator[None]:
    """Work with the other processes of torchrun, each on a GPU of its own if there are enough; UsageError if not."""
    count = os.environ["WORLD_SIZE"]
    local_rank = int(os.environ.get("LOCAL_RANK", "0"))
    gpus = torch.cuda.device_count() if torch.cuda.is_available() else 0
    # NCCL refuses processes that share a GPU. Small CPU messages do not wait for the GPU.
    alone = 0 < int(os.environ.get("LOCAL_WORLD_SIZE", count)) <= gpus
    try:
        if gpus:
            torch.cuda.set_device(local_rank % gpus)
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
