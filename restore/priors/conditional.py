"""Conditional RBMs: an observed image sets the fields of a machine over the clean image (CRBM-BP, sec. 3.2)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor

from restore.errors import InputError
from restore.fields import Fields
from restore.priors.rbm import RBM
from restore.tracing import tracing


@dataclass(frozen=True)
class ConditionalRBM:
    """An RBM whose biases depend on an observed image x: p(v, h | x) ∝ exp(vᵀWh + vᵀ(b + Wvx x) + hᵀ(c + Whx x)).

    Attributes:
        machine: W, b and c: the machine of an empty observation, x = 0.
        visible_input: Wvx, shape (D, pixels of x).
        hidden_input: Whx, shape (H, pixels of x).

    >>> blind = RBM.binary(torch.zeros(2, 1), torch.full((2,), -2.0), torch.zeros(1))
    >>> model = ConditionalRBM(blind, visible_input=4 * torch.eye(2), hidden_input=torch.zeros(1, 2))
    >>> model.given(torch.tensor([[0.0, 1.0]])).visible.parameters["bias"].tolist()
    [[-2.0, 2.0]]
    """

    machine: RBM
    visible_input: Tensor
    hidden_input: Tensor

    def __post_init__(self) -> None:
        sizes = tuple(layer.size for layer in self.machine.layers)
        shapes = tuple(tuple(value.shape) for value in (self.visible_input, self.hidden_input))
        axes = {len(shape) for shape in shapes}
        if axes != {2} or shapes != tuple((size, shapes[0][1]) for size in sizes):
            raise ValueError(f"inputs of shapes {shapes} do not lead to layers of sizes {sizes}")

    @property
    def weights(self) -> Tensor:
        return self.machine.weights

    @property
    def parameters(self) -> dict[str, Tensor]:
        """Every parameter by name: the machine's, and `inputs.L` for the weights from x to layer L."""
        return self.machine.parameters | {"inputs.0": self.visible_input, "inputs.1": self.hidden_input}

    def with_parameters(self, parameters: Mapping[str, Tensor]) -> Self:
        machine = self.machine.with_parameters(parameters)
        return type(self)(machine, parameters["inputs.0"], parameters["inputs.1"])

    def to(self, target: torch.device | torch.dtype) -> Self:
        return self.with_parameters({name: value.to(target) for name, value in self.parameters.items()})

    def given(self, observed: Tensor) -> RBM:
        """The machine of each observed image x, (batch, pixels of x): an RBM whose fields have a batch dimension.

        Raises:
            InputError: if x has another size, or holds NaN or infinite values.
        """
        if observed.dim() != 2 or observed.shape[1] != self.visible_input.shape[1]:
            expected = self.visible_input.shape[1]
            raise InputError(f"observed images of shape {tuple(observed.shape)} do not fit; give (N, {expected})")
        if not tracing() and not bool(torch.isfinite(observed).all()):
            raise InputError("observed images hold NaN or infinite values; give finite ones")
        return self.machine.tilt(Fields(observed @ self.visible_input.T), Fields(observed @ self.hidden_input.T))
