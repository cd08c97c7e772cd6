"""Checkpoints of a training run: one safetensors file and one JSON each, the last two kept.

The tensors are written first, and then the JSON with their checksum; a checkpoint exists once its JSON does. If one is
damaged, the one before it is used.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load_file
from safetensors.torch import save as to_bytes
from torch import Tensor

from restore.errors import TrainingError, shown
from restore.files import write_atomically

FORMAT = 1
KEPT = 2

# How the reading of a damaged record fails.
DAMAGE = (OSError, ValueError, TypeError, KeyError, RecursionError)


@dataclass(frozen=True)
class Checkpoint:
    """Everything a run needs to continue exactly where it was: tensors, and numbers and texts besides."""

    step: int
    tensors: dict[str, Tensor]
    facts: dict[str, Any]

    def copy(self) -> Checkpoint:
        """The same with tensors of its own."""
        return Checkpoint(self.step, {name: value.clone() for name, value in self.tensors.items()}, self.facts)


def save(folder: Path, checkpoint: Checkpoint) -> None:
    """Write a checkpoint and remove all but the last two.

    Raises:
        TrainingError: if it cannot be written; older checkpoints stay as they are.
    """
    stem = f"checkpoint-{checkpoint.step:09d}"
    tensors = {name: value.detach().cpu().contiguous() for name, value in checkpoint.tensors.items()}
    weights = folder / f"{stem}.safetensors"
    # Not written by safetensors, whose error on a full disk is no OSError.
    write_atomically(weights, to_bytes(tensors), TrainingError)
    record = {"format": FORMAT, "step": checkpoint.step, "sha256": _sha256(weights), "facts": checkpoint.facts}
    record["check"] = _digest(record)
    write_atomically(folder / f"{stem}.json", json.dumps(record).encode(), TrainingError)
    for old in _listed(folder)[KEPT:]:
        old.unlink()
        old.with_suffix(".safetensors").unlink(missing_ok=True)


def newest(folder: Path) -> Checkpoint | None:
    """The newest intact checkpoint of a run's folder, or None if there is none.

    Raises:
        TrainingError: if there are checkpoints but every one is damaged.
    """
    listed = _listed(folder)
    for path in listed:
        try:
            return _read(path)
        except (*DAMAGE, SafetensorError) as fault:
            warnings.warn(f"{shown(path)}: damaged checkpoint passed over ({fault})", stacklevel=2)
    if listed:
        raise TrainingError(f"{shown(folder)}: every checkpoint is damaged; remove the folder and train again")
    return None


def identity(folder: Path) -> dict[str, Any]:
    """What decides the course of a folder's run, by its newest intact record; empty without one. Reads no tensors."""
    for path in _listed(folder):
        with contextlib.suppress(*DAMAGE):
            found: dict[str, Any] = _record(path)["facts"]["identity"]
            return found
    return {}


def _record(path: Path) -> dict[str, Any]:
    record: dict[str, Any] = json.loads(path.read_text())
    if record["format"] != FORMAT:
        raise ValueError(f"format {record['format']}, this version reads {FORMAT}")
    # Early checkpoints of this format lack the checksum of the record.
    if record.pop("check", None) not in (None, _digest(record)):
        raise ValueError("its record does not match its checksum")
    return record


def _read(path: Path) -> Checkpoint:
    record = _record(path)
    weights = path.with_suffix(".safetensors")
    if _sha256(weights) != record["sha256"]:
        raise ValueError("its tensors do not match their checksum")
    # Copies, aligned like any allocation: otherwise products of matrices may have other bits.
    tensors = {name: value.clone() for name, value in load_file(weights).items()}
    return Checkpoint(record["step"], tensors, record["facts"])


def _listed(folder: Path) -> list[Path]:
    return sorted(folder.glob("checkpoint-*.json"), reverse=True)


def _digest(record: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(record, sort_keys=True).encode()).hexdigest()


def _sha256(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold a run's folder for one process.

    Raises:
        TrainingError: if the folder cannot be made, or another process trains in it.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle = (folder / "lock").open("w")
    except OSError as fault:
        raise TrainingError(
            f"{shown(folder)}: cannot be used as a run folder ({fault.strerror}); choose another --run"
        ) from fault
    with handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise TrainingError(
                f"{shown(folder)}: another training run works in this folder; choose another --run"
            ) from None
        yield


def differences(
    old: Mapping[str, Any], new: Mapping[str, Any], gone: Mapping[str, Any] | None = None, prefix: str = ""
) -> dict[str, str]:
    """The differences of two nested mappings: a phrase for each, under its keys joined by dots.

    Args:
        old, new: the mappings.
        gone: former entries, by such keys, with the value that is now fixed.
        prefix: of the keys.
    """
    found: dict[str, str] = {}
    gone = gone or {}
    for key in sorted(old.keys() | new.keys()):
        before, after, name = old.get(key), new.get(key), f"{prefix}{key}"
        if isinstance(before, Mapping) and isinstance(after, Mapping):
            found |= differences(before, after, gone, f"{name}.")
        elif key not in new and name in gone:
            if before != gone[name]:
                found[name] = f"{name} was {before!r}, and this version knows {gone[name]!r} alone"
        elif before != after:
            found[name] = f"{name} was {before!r} and is {after!r}"
    return found
