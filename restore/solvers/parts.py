"""Split batches into parts that fit into memory."""

from __future__ import annotations

import torch
from torch import Tensor

from restore.errors import InputError, UsageError
from restore.priors import BoltzmannMachine

# Bytes of arrays that fit into a processor's caches; larger parts would wait for memory.
CACHED = 2**24


def check_memory(max_memory: int) -> None:
    """Refuse a limit below one byte, with a UsageError."""
    if max_memory < 1:
        raise UsageError(f"max_memory must be at least 1 byte, not {max_memory}")


def images_at_once(method: str, machine: BoltzmannMachine, memory: int, max_memory: int) -> int:
    """Number of images that fit into the memory that a method may take.

    Args:
        method: its name, for the message.
        machine: the machine to solve.
        memory: bytes per image.
        max_memory: the limit.

    Raises:
        InputError: if a single image does not fit.
    """
    if memory > max_memory:
        raise InputError(
            f"{method} with {' x '.join(str(layer.size) for layer in machine.layers)} units takes "
            f"{memory / 2**20:.1f} MiB for one image, more than the limit of {max_memory / 2**20:.1f} MiB; "
            "raise the limit (--max-memory or max_memory=)"
        )
    return int(max_memory // memory)


def parts_of(machine: BoltzmannMachine, batch: int, at_once: int, memory: int) -> tuple[Tensor, ...]:
    """Split a batch into parts, as rows.

    Args:
        machine: the machine, which gives the device.
        batch: number of images.
        at_once: the most images at a time.
        memory: bytes that one image takes; on a CPU no part exceeds its caches.
    """
    device = machine.couplings[0].weights.device
    if device.type == "cpu":
        at_once = max(1, min(at_once, CACHED // memory))
    return torch.arange(batch, device=device).split(at_once)
