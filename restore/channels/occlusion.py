"""Occlusion: some pixels are painted over, and it is known which."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np

from restore.channels.bit_flip import BitFlip
from restore.channels.contract import Channel, Damaged, Told
from restore.channels.gaussian_noise import GaussianNoise
from restore.channels.task import Form
from restore.channels.values import module_of, places, starts
from restore.errors import UsageError, option

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from restore.fields import Fields

EXACT = BitFlip(0.0)


@dataclass(frozen=True)
class Occlusion:
    """Hidden pixels show `fill` whatever they were; the others come through the channel `noise`.

    Attributes:
        hidden: a boolean array, broadcastable with the images; True = painted over (the pixels to fill).
        fill: the value painted, in [0, 1].
        noise: the channel of the visible pixels. By default they are seen exactly, as ink; for exact grey values give
            GaussianNoise(0.0).

    Raises:
        UsageError: if the mask is not boolean.

    >>> import torch
    >>> hole = Occlusion(torch.tensor([True, False, False]))
    >>> hole.evidence(torch.tensor([0.0, 0.0, 1.0])).linear.tolist()  # nothing, certainly black, certainly white
    [0.0, -1000.0, 1000.0]
    """

    hidden: Any
    fill: float = 0.0
    noise: Channel = EXACT

    def __post_init__(self) -> None:
        if str(self.hidden.dtype) not in ("bool", "torch.bool"):
            raise UsageError(
                f"a mask must be boolean (True = to fill), not {self.hidden.dtype}; compare it with 0 first"
            )

    def __radd__(self, noise: Channel) -> Occlusion:
        """`noise + occlusion`: the noise came before everything in this channel."""
        exact = len(self.told()) == 1
        return replace(self, noise=noise if exact else noise + self.noise)  # type: ignore[operator]

    def corrupt(self, x: Any, generator: Any = None) -> Any:
        library = module_of(x)
        return library.where(self.hidden, library.full_like(x, self.fill), self.noise.corrupt(x, generator))

    def told(self) -> Told:
        # Pixels seen exactly are not touched.
        levels = {name: each for name, each in self.noise.told().items() if not (isinstance(each, float) and each == 0)}
        return levels | {"hidden": self.hidden}

    def evidence(self, y: Tensor) -> Fields:
        import torch

        from restore.fields import Fields

        seen, hidden = self.noise.evidence(y), self._hidden()
        nothing = torch.zeros((), dtype=y.dtype, device=y.device)
        return Fields(
            torch.where(hidden, nothing, seen.linear),
            torch.where(hidden, nothing, seen.quadratic),
            None if seen.presence is None else torch.where(hidden, nothing, seen.presence),
        )

    def _hidden(self) -> Tensor:
        import torch

        hidden: Tensor = torch.as_tensor(self.hidden) if isinstance(self.hidden, np.ndarray) else self.hidden
        return hidden


@dataclass(frozen=True, kw_only=True)
class Painting(ABC):
    """Painting over some pixels of each image, chosen at random.

    Attributes:
        fill: the value painted, in [0, 1].
        mask: "known": the restorer is given the hidden pixels, and all others are exact. "unknown": it knows only how
            probable it is that a pixel is hidden, and assumes bit flips with half that probability.
        grey: whether images are grey. Exact grey pixels have another channel than ink, and no unknown mask.
    """

    fill: float = 0.0
    mask: Literal["known", "unknown"] = "known"
    grey: bool = False

    def __post_init__(self) -> None:
        if self.grey and self.mask == "unknown":
            raise UsageError(f"{option('mask', 'unknown')} is for priors of binary images; leave it out for grey ones")

    def unmasked(self) -> Self:
        return replace(self, mask="unknown")

    def damage(self, clean: Tensor, image_shape: tuple[int, int], generator: torch.Generator) -> Damaged:
        drawn = self.drawn(len(clean), image_shape, generator)
        hidden = drawn.flatten(1)
        painted = Occlusion(hidden, self.fill).corrupt(clean.to(generator.device), generator)
        observed = painted.to(clean.device)
        if self.mask == "known":
            told = Occlusion(hidden.to(clean.device), self.fill)
            return Damaged(observed, replace(told, noise=GaussianNoise(0.0)) if self.grey else told)
        inside = self.coverage(image_shape).ravel()
        return Damaged(observed, BitFlip(module_of(clean).from_numpy(inside / 2).to(clean)))

    def damage_picture(self, pixels: np.ndarray, generator: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        hidden = self.drawn(1, pixels.shape, generator)[0]
        return np.where(hidden, np.full_like(pixels, self.fill), pixels), hidden

    @abstractmethod
    def drawn(self, count: int, image_shape: tuple[int, ...], generator: Any) -> Any:
        """Draw the hidden pixels of images, boolean (count, H, W); raises UsageError if they do not fit."""

    @abstractmethod
    def coverage(self, image_shape: tuple[int, ...]) -> np.ndarray:
        """The probability that each pixel is hidden, (H, W)."""


@dataclass(frozen=True)
class Patch(Painting):
    """Paint over a square at a random place within the image.

    Attributes:
        size: side of the square in pixels.
        fill, mask, grey: see `Painting`.

    >>> damaged, hidden = Patch(2, fill=1.0).damage_picture(np.zeros((5, 5)), np.random.default_rng(0))
    >>> int(hidden.sum()), bool((damaged == hidden).all())
    (4, True)
    """

    size: int

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.size < 1:
            raise UsageError("a patch is at least one pixel wide")
        if not 0 <= self.fill <= 1:
            raise UsageError("the fill value of a patch must lie in [0, 1]")

    def __str__(self) -> str:
        return f"patch:{self.size}:{self.fill:g}"

    def drawn(self, count: int, image_shape: tuple[int, ...], generator: Any) -> Any:
        height, width = image_shape
        if self.size > min(height, width):
            raise UsageError(f"the patch does not fit into images of {width}x{height} pixels", self)
        rows, columns = (_covered(length, self.size, count, generator) for length in (height, width))
        return rows[:, :, None] & columns[:, None, :]

    def coverage(self, image_shape: tuple[int, ...]) -> np.ndarray:
        return np.outer(*(_coverage(length, self.size) for length in image_shape))


def _covered(length: int, size: int, count: int, generator: Any) -> Any:
    """Random intervals of `size` within `length`, boolean (count, length)."""
    first, place = starts(length - size + 1, count, generator), places(length, generator)
    return (place >= first) & (place < first + size)


def _coverage(length: int, size: int) -> np.ndarray:
    """The probability that such an interval covers each place; shape (length,)."""
    place = np.arange(length, dtype=np.float64)
    first, last = (place - size + 1).clip(0), place.clip(None, length - size)
    return (last - first + 1) / (length - size + 1)


FORM = Form(
    "patch:SIZE or patch:SIZE:FILL (SIZE >= 1 pixels, 0 <= FILL <= 1)",
    r"patch:(\d{1,9})(?::([^:]*))?",
    lambda request, size, fill=0.0: Patch(int(size), fill=fill, mask=request.mask, grey=request.grey),
)
