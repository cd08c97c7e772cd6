"""Restricted Boltzmann machines (RBMs): one layer of hidden units."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from restore.couplings import Dense
from restore.fields import Fields
from restore.priors.layered import LayeredPrior
from restore.units import Bernoulli, Units


@dataclass(frozen=True)
class RBM(LayeredPrior):
    """A machine with one visible and one hidden layer: the units of either are independent given the other.

    >>> machine = RBM.binary(torch.full((3, 1), 2.0), torch.full((3,), -1.0), torch.full((1,), -3.0))
    >>> images = torch.tensor([[0.0, 0.0, 0.0], [1.0, 1.0, 1.0]])
    >>> [round(value, 2) for value in machine.transform(images).flatten().tolist()]  # it detects white images
    [0.05, 0.95]
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.layers) != 2:
            raise ValueError(f"an RBM has one visible and one hidden layer, not {len(self.layers)} layers")

    @classmethod
    def binary(cls, weights: Tensor, visible_bias: Tensor, hidden_bias: Tensor) -> RBM:
        """A binary RBM from weights (D, H), visible bias (D,) and hidden bias (H,)."""
        return cls((Bernoulli(visible_bias), Bernoulli(hidden_bias)), (Dense(weights),))

    @property
    def weights(self) -> Tensor:
        """The coupling of every visible with every hidden unit, (D, H)."""
        return self.couplings[0].matrix

    @property
    def visible(self) -> Units:
        return self.layers[0]

    @property
    def hidden(self) -> Units:
        return self.layers[1]

    def transposed(self) -> RBM:
        """The same machine with its two layers exchanged."""
        return RBM(self.layers[::-1], (Dense(self.weights.T),))

    def hidden_fields(self, visible: Tensor) -> Fields:
        """The fields that a visible state (batch, D) gives the hidden units."""
        return Fields(self.couplings[0].up(visible))

    def visible_fields(self, hidden: Tensor) -> Fields:
        """The fields that a hidden state (batch, H) gives the visible units."""
        return Fields(self.couplings[0].down(hidden))

    def transform(self, visible: Tensor) -> Tensor:
        """E[h | v], the expected hidden units given visible states (batch, D); shape (batch, H)."""
        return self.hidden.moments(self.hidden_fields(visible))[0]

    def free_energy(self, visible: Tensor) -> Tensor:
        """F(v) with log p(v) = -F(v) - log Z, the hidden units summed out exactly; shape (batch,)."""
        hidden = self.hidden.log_partition(self.hidden_fields(visible)).sum(-1)
        return -self.visible.log_weight(visible).sum(-1) - hidden

    def sample_hidden(self, visible: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """h ~ p(h | v); shape (batch, H)."""
        return self.hidden.sample(self.hidden_fields(visible), generator)

    def sample_visible(self, hidden: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """v ~ p(v | h); shape (batch, D)."""
        return self.visible.sample(self.visible_fields(hidden), generator)

    def gibbs_sweep(self, visible: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """h ~ p(h | v), then v ~ p(v | h), from states (batch, D); same shape."""
        return self.sample_visible(self.sample_hidden(visible, generator), generator)
