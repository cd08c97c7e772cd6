"""Checkpoints of a training run: one safetensors file and one JSON each, the last two kept.

The tensors are written first, and then the JSON with their checksum; a checkpoint exists once its JSON does. If one is
damaged, the one before it is used.
"""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load_file
from safetensors.torch import save as to_bytes
from torch import Tensor

from restore.errors import RestoreWarning, TrainingError, shown
from restore.files import write_atomically

KEPT = 2

# How the reading of a damaged record fails.
DAMAGE = (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError, SafetensorError)


@dataclass(frozen=True)
class Checkpoint:
    """Everything a run needs to continue exactly where it was: tensors, and numbers and texts besides."""

    step: int
    tensors: dict[str, Tensor]
    facts: dict[str, Any]

    def under(self, prefix: str) -> dict[str, Tensor]:
        """The tensors whose names begin with a prefix and a dot, by the rest of their names."""
        head = f"{prefix}."
        return {name.removeprefix(head): value for name, value in self.tensors.items() if name.startswith(head)}

    def copy(self) -> Checkpoint:
        return Checkpoint(self.step, {name: value.clone() for name, value in self.tensors.items()}, self.facts)


def save(folder: Path, checkpoint: Checkpoint) -> None:
    """Write a checkpoint and remove all but the last two; if it cannot be written, older ones stay as they are."""
    stem = f"checkpoint-{checkpoint.step:09d}"
    # Not written by safetensors, whose error on a full disk is no OSError.
    content = to_bytes({name: value.detach().cpu().contiguous() for name, value in checkpoint.tensors.items()})
    write_atomically(folder / f"{stem}.safetensors", content, TrainingError)
    record = {"step": checkpoint.step, "sha256": hashlib.sha256(content).hexdigest(), "facts": checkpoint.facts}
    record["check"] = _digest(record)
    write_atomically(folder / f"{stem}.json", json.dumps(record).encode(), TrainingError)
    for old in _listed(folder)[KEPT:]:
        old.unlink()
        old.with_suffix(".safetensors").unlink(missing_ok=True)


def newest(folder: Path) -> Checkpoint | None:
    """The newest intact checkpoint of a run's folder; a TrainingError if there are some but every one is damaged."""
    listed = _listed(folder)
    for path in listed:
        try:
            record = _record(path)
            weights = path.with_suffix(".safetensors")
            if hashlib.sha256(weights.read_bytes()).hexdigest() != record["sha256"]:
                raise ValueError("its tensors do not match their checksum")
            # Copies, aligned like any allocation: otherwise products of matrices may have other bits.
            tensors = {name: value.clone() for name, value in load_file(weights).items()}
            return Checkpoint(record["step"], tensors, record["facts"])
        except DAMAGE as fault:
            warnings.warn(f"{shown(path)}: damaged checkpoint passed over ({fault})", RestoreWarning, stacklevel=2)
    if listed:
        raise TrainingError("every checkpoint is damaged; remove the folder and train again", folder)
    return None


def facts(folder: Path) -> dict[str, Any]:
    """The facts of a folder's newest intact checkpoint; empty without one. Reads no tensors."""
    for path in _listed(folder):
        with suppress(*DAMAGE):
            found: dict[str, Any] = _record(path)["facts"]
            return found
    return {}


def _record(path: Path) -> dict[str, Any]:
    record: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    if record.pop("check") != _digest(record):
        raise ValueError("its record does not match its checksum")
    return record


def _listed(folder: Path) -> list[Path]:
    return sorted(folder.glob("checkpoint-*.json"), reverse=True)


def _digest(record: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(record, sort_keys=True).encode()).hexdigest()


def differences(old: Mapping[str, Any], new: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    """The differences of two nested mappings: a phrase for each, under its keys joined by dots."""
    found: dict[str, str] = {}
    for key in sorted(old.keys() | new.keys()):
        before, after, name = old.get(key), new.get(key), f"{prefix}{key}"
        if isinstance(before, Mapping) and isinstance(after, Mapping):
            found |= differences(before, after, f"{name}.")
        elif before != after:
            found[name] = f"{name} was {before!r} and is {after!r}"
    return found
