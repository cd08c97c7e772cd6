"""Restoration tasks: how clean images are damaged, and what a restorer is told about it.

Whole data sets are damaged with torch, and one picture with numpy alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol

import numpy as np

from restore.errors import UsageError

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from restore.channels import Channel

_FORMS = "flip:P (0 <= P <= 1), patch:SIZE or patch:SIZE:FILL (SIZE >= 1 pixels, 0 <= FILL <= 1)"


class Damaged(NamedTuple):
    """Damaged images (N, D), and the channel a restorer is to assume."""

    observed: Tensor
    channel: Channel


class Task(Protocol):
    """A way to damage images. `str(task)` is the text that `parse_task` reads."""

    @property
    def mask(self) -> Literal["known", "unknown"] | None:
        """Whether the restorer knows the damaged pixels; None where there is no such thing."""

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

        Args:
            pixels: (H, W), floats in [0, 1].
            generator: the only source of randomness.

        Returns:
            The damaged picture, of the same shape and type; and the pixels that were painted over, boolean (H, W),
            None if the task paints none.
        """


@dataclass(frozen=True)
class Flip:
    """Every pixel is inverted with the same probability, which the restorer knows."""

    probability: float

    def __post_init__(self) -> None:
        # Written so that NaN fails too.
        if not 0 <= self.probability <= 1:
            raise UsageError(f"flip:{self.probability}: a flip probability must lie in [0, 1]")

    def __str__(self) -> str:
        return f"flip:{self.probability!r}"

    @property
    def mask(self) -> None:
        return None

    def damage(self, clean: Tensor, image_shape: tuple[int, int], generator: torch.Generator) -> Damaged:
        from restore.channels import BitFlip

        channel = BitFlip(self.probability)
        return Damaged(channel.corrupt(clean.to(generator.device), generator).to(clean.device), channel)

    def damage_picture(self, pixels: np.ndarray, generator: np.random.Generator) -> tuple[np.ndarray, None]:
        return np.where(generator.random(pixels.shape) < self.probability, 1 - pixels, pixels), None


@dataclass(frozen=True)
class Patch:
    """A square at a place drawn uniformly among all that lie within the image is painted over.

    Attributes:
        size: side of the square in pixels.
        fill: the value painted, in [0, 1].
        mask: "known": the restorer is given the hidden pixels, and all others are exact. "unknown": it knows only that
            there is such a patch somewhere. A pixel shows its true value outside the patch and nothing of it inside, so
            it is told of bit flips with half the probability that the patch covers the pixel.
    """

    size: int
    fill: float = 0.0
    mask: Literal["known", "unknown"] = "known"

    def __post_init__(self) -> None:
        if self.size < 1:
            raise UsageError(f"patch:{self.size}: a patch is at least one pixel wide")
        if not 0 <= self.fill <= 1:
            raise UsageError(f"patch:{self.size}:{self.fill}: the fill value must lie in [0, 1]")

    def __str__(self) -> str:
        return f"patch:{self.size}:{self.fill:g}"

    def damage(self, clean: Tensor, image_shape: tuple[int, int], generator: torch.Generator) -> Damaged:
        """As in `Task`; raises UsageError if the patch does not fit into the image."""
        import torch

        from restore.channels import BitFlip, Occlusion

        height, width = self._checked(image_shape)
        rows = _covered(height, self.size, len(clean), generator)
        columns = _covered(width, self.size, len(clean), generator)
        hidden = (rows[:, :, None] & columns[:, None, :]).flatten(1)
        painted = Occlusion(hidden, self.fill).corrupt(clean.to(generator.device), generator)
        observed = painted.to(clean.device)
        if self.mask == "known":
            return Damaged(observed, Occlusion(hidden.to(clean.device), self.fill))
        inside = torch.outer(_coverage(height, self.size), _coverage(width, self.size)).flatten()
        return Damaged(observed, BitFlip((inside / 2).to(clean)))

    def damage_picture(self, pixels: np.ndarray, generator: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """As in `Task`; raises UsageError if the patch does not fit into the image."""
        height, width = self._checked(pixels.shape)
        row, column = generator.integers(height - self.size + 1), generator.integers(width - self.size + 1)
        hidden = np.zeros(pixels.shape, dtype=bool)
        hidden[row : row + self.size, column : column + self.size] = True
        return np.where(hidden, self.fill, pixels), hidden

    def _checked(self, image_shape: tuple[int, ...]) -> tuple[int, int]:
        """Height and width of an image into which the patch fits."""
        height, width = image_shape
        if self.size > min(height, width):
            raise UsageError(f"{self}: the patch does not fit into images of {width}x{height} pixels")
        return height, width


def parse_task(text: str, mask: str | None = None) -> Flip | Patch:
    """The task that a text names.

    Args:
        text: "flip:0.1", "patch:8" (painted 0), "patch:12:1".
        mask: "known" (the default for patches) or "unknown"; only patches have one.

    Raises:
        UsageError: for anything else; the message lists the accepted forms.
    """
    if mask not in (None, "known", "unknown"):
        raise UsageError(f"--mask must be known or unknown, not {mask!r}")
    match text.split(":"):
        case ["flip", probability]:
            if mask is not None:
                raise UsageError(f"{text}: flips hit any pixel, so there is no mask to know; leave --mask away")
            return Flip(_number(probability, text))
        case ["patch", size, *rest] if size.isdecimal() and len(rest) <= 1:
            fill = _number(rest[0], text) if rest else 0.0
            return Patch(int(size), fill, "unknown" if mask == "unknown" else "known")
        case _:
            raise UsageError(f"{text!r} is no task; give {_FORMS}")


def _number(text: str, whole: str) -> float:
    try:
        return float(text)
    except ValueError as fault:
        raise UsageError(f"{whole!r} is no task, because {text!r} is no number; give {_FORMS}") from fault


def _covered(length: int, size: int, n: int, generator: torch.Generator) -> Tensor:
    """n random intervals of `size` within `length`, as a boolean (n, length)."""
    import torch

    start = torch.randint(0, length - size + 1, (n, 1), generator=generator, device=generator.device)
    place = torch.arange(length, device=generator.device)
    return (place >= start) & (place < start + size)


def _coverage(length: int, size: int) -> Tensor:
    """The probability that such an interval covers each place; shape (length,)."""
    import torch

    place = torch.arange(length, dtype=torch.float64)
    first, last = (place - size + 1).clamp_min(0), place.clamp_max(length - size)
    return (last - first + 1) / (length - size + 1)
