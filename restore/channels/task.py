"""Tasks on each pixel, tasks one after the other, and the texts that name a channel's task."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from restore.channels.contract import Channel, Damaged, Task
from restore.errors import UsageError

if TYPE_CHECKING:
    import torch
    from torch import Tensor


@dataclass(frozen=True)
class Request:
    """What the caller of `parse_task` gives besides the numbers of a task.

    Attributes:
        text: the whole text.
        mask, grey: see `parse_task`.
    """

    text: str
    mask: Literal["known", "unknown"] = "known"
    grey: bool = False


@dataclass(frozen=True)
class Form:
    """The texts that name tasks of one kind.

    Attributes:
        shown: how to write one, for users.
        pattern: a regular expression, whose groups are the task's numbers.
        task: makes the task from a `Request` and these numbers.
        grey: False if it is for binary images alone.
    """

    shown: str
    pattern: str
    task: Callable[..., Task]
    grey: bool = True


@dataclass(frozen=True)
class EachPixel:
    """A task on every pixel: damage by `channel`, while the restorer assumes `told`. It is written as `text`."""

    text: str
    channel: Channel
    told: Channel

    def __str__(self) -> str:
        return self.text

    @property
    def mask(self) -> None:
        return None

    def unmasked(self) -> EachPixel:
        return self

    def damage(self, clean: Tensor, image_shape: tuple[int, int], generator: torch.Generator) -> Damaged:
        return Damaged(self.channel.corrupt(clean.to(generator.device), generator).to(clean.device), self.told)

    def damage_picture(self, pixels: np.ndarray, generator: np.random.Generator) -> tuple[np.ndarray, None]:
        return self.channel.corrupt(pixels, generator).clip(0, 1).astype(pixels.dtype), None


@dataclass(frozen=True)
class Chain:
    """Several tasks in a row; the restorer knows all of them.

    Attributes:
        tasks: at least one, in the order in which they damage.

    >>> from restore.channels import parse_task
    >>> noisy_with_hole = Chain((parse_task("noise:0.1", grey=True), parse_task("patch:8", grey=True)))
    >>> str(noisy_with_hole), noisy_with_hole.mask
    ('noise:0.1+patch:8:0', 'known')
    """

    tasks: tuple[Task, ...]

    def __str__(self) -> str:
        return "+".join(map(str, self.tasks))

    @property
    def mask(self) -> Literal["known", "unknown"] | None:
        return next((task.mask for task in self.tasks if task.mask is not None), None)

    def unmasked(self) -> Chain:
        return Chain(tuple(task.unmasked() for task in self.tasks))

    def damage(self, clean: Tensor, image_shape: tuple[int, int], generator: torch.Generator) -> Damaged:
        """Raises UsageError if there is no channel for tasks in this order."""
        observed, channel = self.tasks[0].damage(clean, image_shape, generator)
        for task in self.tasks[1:]:
            observed, then = task.damage(observed, image_shape, generator)
            try:
                channel = channel + then  # type: ignore[operator]
            except TypeError as fault:
                raise UsageError(
                    f"{task} cannot follow what precedes it; give noise first, then salt (black and white "
                    "images: flips alone), and a patch or holes last",
                    self,
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
