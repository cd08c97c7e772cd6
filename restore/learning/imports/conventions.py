"""Find the weights and biases of an RBM among tensors, by the names that other programs give them."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from torch import Tensor

from restore.errors import REASON, ModelError, UsageError, shown

# Known names in lower case, without other signs than letters and digits; earlier ones go first. `b` is the hidden bias
# beside `a`, and the visible one beside `c`; `weight` and `bias` are of a linear layer from pixels to hidden units.
NAMES: Mapping[str, Sequence[str]] = {
    "weights": ("components", "w", "weights", "weight"),
    "visible": ("interceptvisible", "visiblebias", "biasvisible", "visbias", "vbias", "biasv", "bv", "vb", "a", "b"),
    "hidden": (
        "intercepthidden",
        "hiddenbias",
        "biashidden",
        "hidbias",
        "hbias",
        "biash",
        "bh",
        "hb",
        "c",
        "b",
        "bias",
    ),
}

# Weights under these names always have a row for each hidden unit.
ROWS_HIDDEN = ("components", "weight")

Rows = Literal["auto", "visible", "hidden"]


@dataclass(frozen=True)
class Told:
    """What the user says of a file.

    Attributes:
        weights, visible, hidden: names of its tensors; None for those that are known by name.
        rows: whether the rows of the weights are pixels or hidden units; "auto" for what fits the biases.
        spins: whether its units are -1 or 1 instead of 0 or 1.
        shape: height and width of its images; None if they are square.
    """

    weights: str | None = None
    visible: str | None = None
    hidden: str | None = None
    rows: Rows = "auto"
    spins: bool = False
    shape: tuple[int, int] | None = None


NOTHING = Told()


def recognised(
    tensors: Mapping[str, Tensor], told: Told = NOTHING, where: str = "the file"
) -> tuple[Tensor, Tensor, Tensor]:
    """The parameters of the RBM among tensors: weights (D, H), visible bias (D,) and hidden bias (H,).

    Args:
        tensors: all tensors of a file, by name.
        told: what is known of them.
        where: the file, in messages.

    Raises:
        UsageError: if a tensor that the user names is not there, or the weights are square and nothing says what their
            rows are.
        ModelError: if no tensor, or several, have a known name; if shapes do not fit each other.

    >>> import torch
    >>> found = recognised({"W": torch.ones(3, 2), "v_bias": torch.zeros(2), "h_bias": torch.zeros(3)})
    >>> [tuple(values.shape) for values in found]
    [(2, 3), (2,), (3,)]
    """
    given: dict[str, str] = {role: name for role in NAMES if (name := getattr(told, role)) is not None}
    for role, name in given.items():
        if name not in tensors:
            raise UsageError(f"{where}: there is no tensor --{role} {shown(name)}; {_listed(tensors)}")
    for role in NAMES:
        if role not in given:
            given[role] = _known(tensors, role, given.values(), where)
    names = [given[role] for role in NAMES]
    weights, visible, hidden = tensors[names[0]], *(_vector(tensors[name]) for name in names[1:])
    fits, rows, called = (visible.numel(), hidden.numel()), told.rows, f"{shown(names[0])} {_size(weights)}"
    if rows == "auto" and fits[0] != fits[1]:
        rows = "visible" if tuple(weights.shape) == fits else "hidden"
    if rows == "auto":
        if _plain(names[0]) not in ROWS_HIDDEN:
            raise UsageError(
                f"{where}: {called} is square; say --rows visible if its rows are pixels, or --rows hidden"
            )
        rows = "hidden"
    biases = visible.dim() == hidden.dim() == 1
    if not biases or tuple(weights.shape) != (fits if rows == "visible" else fits[::-1]):
        units = " and ".join(f"{shown(name)} {_size(tensors[name])}" for name in names[1:])
        raise ModelError(
            f"{where}: {called} does not join {units}; choose others with --weights, --visible and --hidden, or leave "
            "--rows out"
        )
    return weights if rows == "visible" else weights.T, visible, hidden


def _known(tensors: Mapping[str, Tensor], role: str, taken: Collection[str], where: str) -> str:
    """The one tensor that has the best known name of a role."""
    for name in NAMES[role]:
        found = [key for key in tensors if _plain(key) == name and key not in taken]
        if len(found) == 1:
            return found[0]
        if found:
            break
    what = "its weights are" if role == "weights" else f"its {role} bias is"
    raise ModelError(f"{where}: {what} not known by name; say --{role} NAME. {_listed(tensors)}")


def _plain(key: str) -> str:
    """The last part of a name such as `rbm.v_bias`, as in `NAMES`."""
    return re.sub(r"[^a-z0-9]", "", key.rpartition(".")[2].lower()).replace("biases", "bias")


def _vector(values: Tensor) -> Tensor:
    """A bias as a vector, which some programs keep as a matrix of one row or column."""
    return values.flatten() if max(values.shape, default=0) == values.numel() else values


def _size(values: Tensor) -> str:
    return "(" + "x".join(map(str, values.shape)) + ")"


def _listed(tensors: Mapping[str, Tensor]) -> str:
    """All tensors with their shapes, in words."""
    found = ", ".join(f"{shown(key)} {_size(value)}" for key, value in tensors.items())
    return f"it holds {found[:REASON] or 'none'}"
