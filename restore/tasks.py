"""Restoration tasks: how clean images are damaged, and what a restorer is told about it.

Whole data sets are damaged with torch, and one picture with numpy alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol

import numpy as np

from restore.errors import UsageError

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from restore.channels import Channel

_FORMS = (
    "flip:P (0 <= P <= 1), noise:SIGMA (SIGMA >= 0), salt:P, "
    "patch:SIZE or patch:SIZE:FILL (SIZE >= 1 pixels, 0 <= FILL <= 1), or several of them, as in noise:0.1+patch:8"
)


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
class Noise:
    """Gaussian noise of a standard deviation that the restorer knows, where black is 0 and white is 1.

    What noise makes darker than black or lighter than white stays so in a data set, and is cut off in a picture, since
    files hold nothing else.
    """

    sigma: float

    def __post_init__(self) -> None:
        if not 0 <= self.sigma < math.inf:
            raise UsageError(f"noise:{self.sigma}: the standard deviation of noise must be a finite number from 0 up")

    def __str__(self) -> str:
        return f"noise:{self.sigma!r}"

    @property
    def mask(self) -> None:
        return None

    def damage(self, clean: Tensor, image_shape: tuple[int, int], generator: torch.Generator) -> Damaged:
        from restore.channels import GaussianNoise

        channel = GaussianNoise(self.sigma)
        return Damaged(channel.corrupt(clean.to(generator.device), generator).to(clean.device), channel)

    def damage_picture(self, pixels: np.ndarray, generator: np.random.Generator) -> tuple[np.ndarray, None]:
        """As in `Task`, cut off at black and white."""
        noisy = pixels + self.sigma * generator.standard_normal(pixels.shape)
        return noisy.clip(0, 1).astype(pixels.dtype), None


@dataclass(frozen=True)
class Salt:
    """Every pixel turns black or white, equally likely, with a probability that the restorer knows.

    Attributes:
        probability: of either.
        grey: whether images hold values rather than ink, which is flipped by half of such impulses.
    """

    probability: float
    grey: bool = False

    def __post_init__(self) -> None:
        if not 0 <= self.probability <= 1:
            raise UsageError(f"salt:{self.probability}: the probability of salt or pepper must lie in [0, 1]")

    def __str__(self) -> str:
        return f"salt:{self.probability!r}"

    @property
    def mask(self) -> None:
        return None

    def damage(self, clean: Tensor, image_shape: tuple[int, int], generator: torch.Generator) -> Damaged:
        from restore.channels import BitFlip, SaltAndPepper

        impulses = SaltAndPepper(self.probability)
        observed = impulses.corrupt(clean.to(generator.device), generator).to(clean.device)
        return Damaged(observed, impulses if self.grey else BitFlip(self.probability / 2))

    def damage_picture(self, pixels: np.ndarray, generator: np.random.Generator) -> tuple[np.ndarray, None]:
        uniform = generator.random(pixels.shape)
        return np.where(uniform < self.probability, uniform < self.probability / 2, pixels).astype(pixels.dtype), None


@dataclass(frozen=True)
class Patch:
    """A square at a place drawn uniformly among all that lie within the image is painted over.

    Attributes:
        size: side of the square in pixels.
        fill: the value painted, in [0, 1].
        mask: "known": the restorer is given the hidden pixels, and all others are exact. "unknown": it knows only that
            there is such a patch somewhere. A pixel shows its true value outside the patch and nothing of it inside, so
            it is told of bit flips with half the probability that the patch covers the pixel.
        grey: whether images hold values rather than ink: exact ones are told in another way. No channel of grey values
            says that a patch is somewhere unknown.
    """

    size: int
    fill: float = 0.0
    mask: Literal["known", "unknown"] = "known"
    grey: bool = False

    def __post_init__(self) -> None:
        if self.grey and self.mask == "unknown":
            raise UsageError(f"{self}: --mask unknown is for priors of binary images; leave it away for grey ones")
        if self.size < 1:
            raise UsageError(f"patch:{self.size}: a patch is at least one pixel wide")
        if not 0 <= self.fill <= 1:
            raise UsageError(f"patch:{self.size}:{self.fill}: the fill value must lie in [0, 1]")

    def __str__(self) -> str:
        return f"patch:{self.size}:{self.fill:g}"

    def damage(self, clean: Tensor, image_shape: tuple[int, int], generator: torch.Generator) -> Damaged:
        """As in `Task`; raises UsageError if the patch does not fit into the image."""
        import torch

        from restore.channels import BitFlip, GaussianNoise, Occlusion

        height, width = self._checked(image_shape)
        rows = _covered(height, self.size, len(clean), generator)
        columns = _covered(width, self.size, len(clean), generator)
        hidden = (rows[:, :, None] & columns[:, None, :]).flatten(1)
        painted = Occlusion(hidden, self.fill).corrupt(clean.to(generator.device), generator)
        observed = painted.to(clean.device)
        if self.mask == "known":
            told = Occlusion(hidden.to(clean.device), self.fill)
            return Damaged(observed, replace(told, noise=GaussianNoise(0.0)) if self.grey else told)
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


@dataclass(frozen=True)
class Chain:
    """One task after the other; the restorer is told of all of them.

    Attributes:
        tasks: at least one, in the order in which they damage.
    """

    tasks: tuple[Task, ...]

    def __str__(self) -> str:
        return "+".join(map(str, self.tasks))

    @property
    def mask(self) -> Literal["known", "unknown"] | None:
        return next((task.mask for task in self.tasks if task.mask is not None), None)

    def damage(self, clean: Tensor, image_shape: tuple[int, int], generator: torch.Generator) -> Damaged:
        """As in `Task`; raises UsageError if there is no channel for tasks in this order."""
        observed, channel = self.tasks[0].damage(clean, image_shape, generator)
        for task in self.tasks[1:]:
            observed, then = task.damage(observed, image_shape, generator)
            try:
                channel = channel + then  # type: ignore[operator]
            except TypeError as fault:
                raise UsageError(
                    f"{self}: no restorer can be told of {task} after what comes before; give noise first, then salt "
                    "(binary images: flips alone), and a patch, with a known mask, last"
                ) from fault
        return Damaged(observed, channel)

    def damage_picture(
        self, pixels: np.ndarray, generator: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray | None]:
        hidden: np.ndarray | None = None
        for task in self.tasks:
            pixels, painted = task.damage_picture(pixels, generator)
            if painted is not None:
                hidden = painted if hidden is None else hidden | painted
        return pixels, hidden


def parse_task(text: str, mask: str | None = None, *, grey: bool = False) -> Task:
    """The task that a text names.

    Args:
        text: "flip:0.1", "noise:0.2", "salt:0.1", "patch:8" (painted 0), "patch:12:1"; or several, one after the other:
            "noise:0.1+patch:8".
        mask: "known" (the default for patches) or "unknown"; only patches have one.
        grey: whether the restorer is to be told of grey values; if not, images are binary.

    Raises:
        UsageError: for anything else; the message lists the accepted forms.
    """
    if mask not in (None, "known", "unknown"):
        raise UsageError(f"--mask must be known or unknown, not {mask!r}")
    tasks = tuple(_parse_one(part, text, "unknown" if mask == "unknown" else "known", grey) for part in text.split("+"))
    task = tasks[0] if len(tasks) == 1 else Chain(tasks)
    if mask is not None and task.mask is None:
        raise UsageError(f"{text}: may hit any pixel, so there is no mask to know; leave --mask away")
    return task


def _parse_one(part: str, text: str, mask: Literal["known", "unknown"], grey: bool) -> Task:
    """The task that a part of a text names."""
    match part.split(":"):
        case ["flip", probability]:
            if grey:
                raise UsageError(f"{text}: only binary images can be flipped; give grey ones noise:SIGMA or salt:P")
            return Flip(_number(probability, text))
        case ["noise", sigma]:
            return Noise(_number(sigma, text))
        case ["salt", probability]:
            return Salt(_number(probability, text), grey)
        case ["patch", size, *rest] if size.isdecimal() and len(rest) <= 1:
            return Patch(int(size), _number(rest[0], text) if rest else 0.0, mask, grey)
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
