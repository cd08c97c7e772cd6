"""The contracts of channels (models of damage) and of tasks (ways to damage images, with what a restorer is told).

The law tested for each channel: with the fields of evidence(y), linear·x - quadratic·x²/2 + presence·[x != 0] equals
log p(y|x) up to a constant in x. Channels add: `first + second` applies `first` and then `second`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, TypeAlias

if TYPE_CHECKING:
    import numpy as np
    import torch
    from torch import Tensor

    from restore.fields import Fields


# A channel in a caller's words, as `restore.denoise` takes them: p, sigma and the pixels to fill, `hidden`, each if
# there is such damage; values broadcast with images (batch, D).
Told: TypeAlias = "dict[str, Any]"


class Channel(Protocol):
    """A model p(y | x) of an observation y of an image x, with independent pixels; images have shape (batch, D)."""

    def corrupt(self, x: Any, generator: Any = None) -> Any:
        """Damage x, an array or a tensor of any shape, with a generator of the same library."""

    def told(self) -> Told:
        """The channel as a caller describes it; `channel_of` makes the same channel of it."""

    def evidence(self, y: Tensor) -> Fields:
        """What the observation y says about x, as fields on the pixels."""


class Damaged(NamedTuple):
    """Damaged images (N, D), and the channel that a restorer should assume."""

    observed: Tensor
    channel: Channel


class Task(Protocol):
    """A way to damage images. `str(task)` is the text that `parse_task` reads."""

    @property
    def mask(self) -> Literal["known", "unknown"] | None:
        """Whether the restorer knows which pixels are damaged; None if the task has no mask."""

    def unmasked(self) -> Task:
        """The same damage, without telling the restorer where it is."""

    def damage(self, clean: Tensor, image_shape: tuple[int, int], generator: torch.Generator) -> Damaged:
        """Damage images (N, H·W), in [0, 1], on the generator's device; the same seed gives the same damage."""

    def damage_picture(
        self, pixels: np.ndarray, generator: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """Damage one picture (H, W), floats in [0, 1], with the same distribution as `damage` and without torch.

        Returns:
            The picture, clipped to [0, 1]; and the painted pixels, boolean (H, W), or None if the task paints none.
        """
