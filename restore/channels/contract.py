"""The contracts of every channel, and of every task: a way to damage images, with what is told about it.

The law tested for each channel: with the fields of evidence(y), linear·x - quadratic·x²/2 + presence·[x != 0] equals
log p(y|x) up to a constant in x.
Channels add: `first + second` is the channel that applies `first` and then `second`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

import numpy as np

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from restore.fields import Fields


class Channel(Protocol):
    """An observation model p(y | x) that factorises over pixels; images have shape (batch, D)."""

    def corrupt(self, x: Any, generator: Any = None) -> Any:
        """An observation of x, an array or a tensor of any shape, with a generator of the same library."""

    def log_likelihood(self, y: Tensor, x: Tensor) -> Tensor:
        """log p(y_i | x_i) of every pixel; shape (batch, D)."""

    def log_black(self, y: np.ndarray) -> np.ndarray:
        """log p(y_i | x_i = 0) of every pixel; where pixels come through exactly it is as finite as their evidence."""

    def evidence(self, y: Tensor) -> Fields:
        """What the observation y says about x, as fields on the visible units."""


class Damaged(NamedTuple):
    """Damaged images (N, D), and the channel a restorer is to assume."""

    observed: Tensor
    channel: Channel


class Task(Protocol):
    """A way to damage images. `str(task)` is the text that `parse_task` reads."""

    @property
    def mask(self) -> Literal["known", "unknown"] | None:
        """Whether the restorer knows the damaged pixels; None where there is no such thing."""

    def unmasked(self) -> Task:
        """The same damage, of which the restorer is not told where it is."""

    def damage(self, clean: Tensor, image_shape: tuple[int, int], generator: torch.Generator) -> Damaged:
        """Damage a whole data set at once, on the generator's device: the same seed gives the same damage anywhere.

        Args:
            clean: shape (N, H·W), in [0, 1].
            image_shape: (H, W).
            generator: the only source of randomness.
        """

    def damage_picture(
        self, pixels: np.ndarray, generator: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """Damage one picture, with the same distribution as `damage` but no torch.

        What noise makes darker than black or lighter than white is cut off, since files hold nothing else.

        Args:
            pixels: (H, W), floats in [0, 1].
            generator: the only source of randomness.

        Returns:
            The damaged picture, of the same shape and type; and the pixels that were painted over, boolean (H, W),
            None if the task paints none.
        """
