"""The checkpoint of a training run: one safetensors file, whose header has numbers and texts as JSON.

It takes the place of the one before in a single step, so that a run that is killed leaves one of the two.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save as to_bytes
from torch import Tensor

from restore.errors import TrainingError, reason
from restore.files import write_atomically

NAME = "checkpoint.safetensors"

Made = TypeVar("Made")

# How the reading of a damaged file fails.
DAMAGE = (OSError, ValueError, TypeError, KeyError, RecursionError, SafetensorError)


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


def of(state: Any, facts: Mapping[str, Any] | None = None) -> Checkpoint:
    """The checkpoint of a state, a dataclass with a `step`, by its fields; the facts are kept as well.

    A field is a tensor, a dictionary of tensors, a generator, an optimizer, a number or a text.
    """
    tensors = dict[str, Tensor]()
    others = dict(facts or {})
    for name, value in vars(state).items():
        if isinstance(value, Tensor):
            tensors[name] = value
        elif isinstance(value, torch.Generator):
            tensors[name] = value.get_state()
        elif isinstance(value, torch.optim.Optimizer):
            for index, moments in value.state_dict()["state"].items():
                tensors |= {f"{name}.{index}.{key}": one for key, one in moments.items() if one is not None}
        elif isinstance(value, dict):
            tensors |= {f"{name}.{key}": one for key, one in value.items()}
        else:
            others[name] = value
    return Checkpoint(others.pop("step"), tensors, others)


def set_state(state: Made, checkpoint: Checkpoint, device: torch.device) -> Made:
    """Take a state from a checkpoint; keeps generator and optimizer, and sets the optimizer only."""
    values: dict[str, Any] = {}
    facts = {"step": checkpoint.step, **checkpoint.facts}
    for name, value in vars(state).items():
        if isinstance(value, Tensor):
            values[name] = checkpoint.tensors[name].to(device)
        elif isinstance(value, torch.optim.Optimizer):
            own: dict[int, dict[str, Tensor]] = {}
            for key, moment in checkpoint.under(name).items():
                index, word = key.split(".", 1)
                own.setdefault(int(index), {})[word] = moment
            value.load_state_dict(value.state_dict() | {"state": own})
        elif isinstance(value, dict):
            values[name] = {key: one.to(device) for key, one in checkpoint.under(name).items()}
        elif not isinstance(value, torch.Generator):
            values[name] = facts[name]
    return replace(state, **values)  # type: ignore[type-var]


def save(folder: Path, checkpoint: Checkpoint) -> None:
    """Write a checkpoint; if it cannot be written, the one before stays as it is."""
    # Not written by safetensors, whose error on a full disk is no OSError.
    tensors = {name: value.detach().cpu().contiguous() for name, value in checkpoint.tensors.items()}
    header = {"step": str(checkpoint.step), "facts": json.dumps(checkpoint.facts)}
    write_atomically(folder / NAME, to_bytes(tensors, header), TrainingError)


def load(folder: Path) -> Checkpoint | None:
    """The checkpoint in a run's folder, if there is one; a TrainingError if it is damaged."""
    path = folder / NAME
    if not path.exists():
        return None
    try:
        with safe_open(path, "pt") as opened:
            # Copies, aligned like any allocation: otherwise products of matrices may have other bits.
            tensors = {name: opened.get_tensor(name).clone() for name in opened.keys()}  # noqa: SIM118
            return Checkpoint(int(opened.metadata()["step"]), tensors, _facts_in(opened.metadata()))
    except DAMAGE as fault:
        raise TrainingError(f"is damaged ({reason(fault)}); remove the folder and train again", path) from fault


def remove(folder: Path) -> None:
    """Remove the checkpoint in a run's folder, if there is one."""
    try:
        (folder / NAME).unlink(missing_ok=True)
    except OSError as fault:
        raise TrainingError(f"cannot be removed ({fault.strerror}); remove the folder", folder / NAME) from fault


def facts(folder: Path) -> dict[str, Any]:
    """The facts of the checkpoint in a folder; empty without one, or if it is damaged. Reads no tensors."""
    try:
        with safe_open(folder / NAME, "pt") as opened:
            return _facts_in(opened.metadata())
    except DAMAGE:
        return {}


def _facts_in(header: Mapping[str, str]) -> dict[str, Any]:
    table = json.loads(header["facts"])
    if not isinstance(table, dict):
        raise ValueError("its facts are no table")
    return table


def differences(old: Mapping[str, Any], new: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    """The differences of two nested mappings: a phrase for each, under its keys joined by dots."""
    phrases: dict[str, str] = {}
    for key in sorted(old.keys() | new.keys()):
        before = old.get(key)
        after = new.get(key)
        name = f"{prefix}{key}"
        if isinstance(before, Mapping) and isinstance(after, Mapping):
            phrases |= differences(before, after, f"{name}.")
        elif before != after:
            phrases[name] = f"{name} was {before!r} and is {after!r}"
    return phrases
