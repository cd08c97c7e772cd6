"""Tasks: ways to damage images, written as in "noise:0.2+patch:8", and what a restorer knows of the damage."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import numpy as np

from restore.channels.damage import Damage
from restore.channels.drawing import Holes, Painting, Patch
from restore.channels.flips import BitFlip
from restore.channels.noise import GaussianNoise, SaltAndPepper
from restore.channels.specks import Specks
from restore.channels.values import require
from restore.errors import UsageError, option, reason

if TYPE_CHECKING:
    import torch
    from torch import Tensor

# One kind of damage; its text is what `str` says of it.
Step: TypeAlias = BitFlip | GaussianNoise | SaltAndPepper | Specks | Painting


class Damaged(NamedTuple):
    """Damaged images (N, D), and the damage that a restorer should assume."""

    observed: Tensor
    damage: Damage


@dataclass(frozen=True)
class Task:
    """A way to damage images, one step after the other. `str(task)` is the text that `parse_task` reads.

    Attributes:
        steps: at least one.
        mask: "known": the restorer is given the hidden pixels, and all others are exact. "unknown": it knows only how
            probable it is that a pixel is hidden, and assumes bit flips with half that probability. None if no step
            hides any.
        grey: True for grey images. They have other channels than ink, and no unknown mask.

    >>> task = Task((GaussianNoise(0.1), Patch(8)), "known", grey=True)
    >>> str(task), task == parse_task("noise:0.1+patch:8", grey=True)
    ('noise:0.1+patch:8:0', True)
    """

    steps: tuple[Step, ...]
    mask: Literal["known", "unknown"] | None = None
    grey: bool = False

    def __post_init__(self) -> None:
        if self.grey and self.mask == "unknown":
            remedy = "is for priors of binary images; leave it out for grey ones"
            raise UsageError(f"{option('mask', 'unknown')} {remedy}", self)

    def __str__(self) -> str:
        return "+".join(map(str, self.steps))

    def unmasked(self) -> Task:
        """The same damage, with a mask that the restorer does not know."""
        return replace(self, mask=self.mask and "unknown")

    def damage(self, clean: Tensor, image_shape: tuple[int, int], generator: torch.Generator) -> Damaged:
        """Damage images (N, H·W), in [0, 1], on the generator's device; the same seed gives the same damage.

        Raises:
            UsageError: if it does not fit the images, or there is no channel for steps in this order.
        """
        observed = clean.to(generator.device).reshape(-1, *image_shape)
        damage = Damage()
        for step in self.steps:
            observed, hidden = _after(step, observed, generator)
            hidden = None if hidden is None else hidden.to(clean.device)
            damage = self._joined(damage, self._known(step, hidden, image_shape), step)
        return Damaged(observed.flatten(1).to(clean.device), damage)

    def damage_picture(
        self, pixels: np.ndarray, generator: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """Damage one picture (H, W), floats in [0, 1], with the same distribution as `damage` and without torch.

        Returns:
            The picture, clipped to [0, 1]; and the painted pixels, boolean (H, W), or None if the task paints none.
        """
        hidden: np.ndarray | None = None
        for step in self.steps:
            observed, painted = _after(step, pixels[None], generator)
            pixels = observed[0].clip(0, 1).astype(pixels.dtype)
            if painted is not None:
                hidden = painted[0] if hidden is None else hidden | painted[0]
        return pixels, hidden

    def _known(self, step: Any, hidden: Any, image_shape: tuple[int, int]) -> Damage:
        """What a restorer knows of one step, which has hidden these pixels."""
        match step:
            case BitFlip(p):
                return Damage(p)
            case GaussianNoise(sigma):
                return Damage(sigma=sigma)
            case SaltAndPepper(p):  # on ink, half of the impulses are flips
                return Damage(p if self.grey else p / 2)
            case Specks(share):  # to a restorer that knows single pixels alone, as many are inverted one by one
                return Damage(share / 2)
        return Damage(hidden=hidden) if self.mask == "known" else Damage(step.coverage(image_shape)[None] / 2)

    def _joined(self, before: Damage, after: Damage, step: Step) -> Damage:
        """What a restorer knows of damage, and of a step that follows it."""
        hidden = before.hidden
        if after.hidden is not None:
            return replace(before, hidden=after.hidden if hidden is None else hidden | after.hidden)
        # Noise comes before all else, and impulses are the last that visible pixels undergo; flips add up.
        late = before.touched if after.sigma is not None else (before.p if self.grey else before.sigma) is not None
        if late or hidden is not None:
            order = "give noise first, then salt (black and white images: flips alone), and a patch or holes last"
            raise UsageError(f"{step} cannot follow what precedes it; {order}", self)
        if not before.touched:
            return after
        # A pixel ends inverted if exactly one of the two inverted it.
        p, q = before.known("p"), after.known("p")
        return replace(before, p=p * (1 - q) + q * (1 - p))


def _after(step: Step, x: Any, generator: Any) -> tuple[Any, Any]:
    """Images (N, H, W) after a step, and the pixels that it has hidden, or None."""
    return step.painted(x, generator) if isinstance(step, Painting) else (step.corrupt(x, generator), None)


def _noise(sigma: float) -> GaussianNoise:
    require(sigma, "sigma is the standard deviation of noise, with black 0 and white 1, and must lie in [0, 1]", 1)
    return GaussianNoise(sigma)


@dataclass(frozen=True)
class Form:
    """The texts that name steps of one kind.

    Attributes:
        shown: how to write one, for users.
        pattern: a regular expression, whose groups are the step's numbers.
        step: makes the step from these numbers.
        grey: False if it is for binary images alone.
    """

    shown: str
    pattern: str
    step: Callable[..., Step]
    grey: bool = True


FORMS = (
    Form("flip:P (0 <= P <= 1)", "flip:([^:]*)", BitFlip, grey=False),
    Form("noise:SIGMA (0 <= SIGMA <= 1)", "noise:([^:]*)", _noise),
    Form("salt:P", "salt:([^:]*)", SaltAndPepper),
    Form("specks:SHARE (of at most 1/5 of the image)", "specks:([^:]*)", Specks, grey=False),
    Form(
        "patch:SIZE or patch:SIZE:FILL (SIZE >= 1 pixels, 0 <= FILL <= 1)",
        r"patch:(\d{1,9})(?::([^:]*))?",
        lambda size, fill=0.0: Patch(int(size), fill),
    ),
    Form(
        "holes:SIZE:SHARE (of at most 1/4 of the image)",
        r"holes:(\d{1,9}):([^:]*)",
        lambda size, share: Holes(int(size), share),
    ),
)

TASK_FORMS = f"{', '.join(form.shown for form in FORMS)}, or several of them, as in noise:0.1+patch:8"


def parse_task(text: str, mask: str | None = None, *, grey: bool = False) -> Task:
    """Read a task from its text.

    Args:
        text: "flip:0.1", "noise:0.2", "salt:0.1", "specks:0.01", "patch:8" (painted 0), "patch:12:1", "holes:8:0.1";
            or several in order: "noise:0.1+patch:8".
        mask: "known" (the default for patches and holes) or "unknown"; others have none.
        grey: True for grey images; else they are binary.

    Raises:
        UsageError: for anything else; the message lists the accepted forms.

    >>> import numpy as np
    >>> white = np.ones((200, 200))
    >>> damaged, _ = parse_task("flip:0.1").damage_picture(white, np.random.default_rng(0))
    >>> round(float((damaged != white).mean()), 2)
    0.1
    """
    if mask not in (None, "known", "unknown"):
        raise UsageError(f"{option('mask')} must be known or unknown, not {mask!r}")
    steps = tuple(_step(part, text, grey) for part in text.split("+"))
    paints = any(isinstance(step, Painting) for step in steps)
    if mask is not None and not paints:
        raise UsageError(f"may hit any pixel, so there is no mask; leave {option('mask')} out", text)
    return Task(steps, ("unknown" if mask == "unknown" else "known") if paints else None, grey)


def _step(part: str, text: str, grey: bool) -> Step:
    for form in FORMS:
        match = re.fullmatch(form.pattern, part)
        if match is None:
            continue
        if grey and not form.grey:
            raise UsageError("is for binary images; give grey ones noise:SIGMA or salt:P", text)
        try:
            return form.step(*(float(number) for number in match.groups() if number is not None))
        except ValueError as fault:
            raise UsageError(f"{text!r} is not a task ({reason(fault)}); give {TASK_FORMS}") from fault
    raise UsageError(f"{text!r} is not a task; give {TASK_FORMS}")
