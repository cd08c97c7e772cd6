"""Channels by the words of a caller: tasks by their texts, as in "noise:0.2+patch:8", and channels by their levels."""

from __future__ import annotations

import re

from restore.channels import bit_flip, gaussian_noise, holes, occlusion, salt_and_pepper, specks
from restore.channels.bit_flip import BitFlip
from restore.channels.contract import Channel, Task, Told
from restore.channels.gaussian_noise import GaussianNoise
from restore.channels.levels import Scale
from restore.channels.occlusion import Occlusion
from restore.channels.salt_and_pepper import SaltAndPepper
from restore.channels.task import Chain, Form, Request
from restore.errors import UsageError, option, reason

FORMS: tuple[Form, ...] = (
    bit_flip.FORM,
    gaussian_noise.FORM,
    salt_and_pepper.FORM,
    specks.FORM,
    occlusion.FORM,
    holes.FORM,
)

SHOWN = f"{', '.join(form.shown for form in FORMS)}, or several of them, as in noise:0.1+patch:8"


def parse_task(text: str, mask: str | None = None, *, grey: bool = False) -> Task:
    """Read a task from its text.

    Args:
        text: "flip:0.1", "noise:0.2", "salt:0.1", "specks:0.01", "patch:8" (painted 0), "patch:12:1", "holes:8:0.1";
            or several in order: "noise:0.1+patch:8".
        mask: "known" (the default for patches and holes) or "unknown"; others have none.
        grey: whether images are grey; if not, they are binary.

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
    request = Request(text, "unknown" if mask == "unknown" else "known", grey)
    tasks = tuple(_parse_one(part, request) for part in text.split("+"))
    task = tasks[0] if len(tasks) == 1 else Chain(tasks)
    if mask is not None and task.mask is None:
        raise UsageError(f"may hit any pixel, so there is no mask; leave {option('mask')} out", text)
    return task


def _parse_one(part: str, request: Request) -> Task:
    for form in FORMS:
        found = re.fullmatch(form.pattern, part)
        if found is None:
            continue
        if request.grey and not form.grey:
            raise UsageError("only binary images can be flipped; give grey ones noise:SIGMA or salt:P", request.text)
        try:
            return form.task(request, *(float(each) for each in found.groups() if each is not None))
        except ValueError as fault:
            raise UsageError(f"{request.text!r} is not a task ({reason(fault)}); give {SHOWN}") from fault
    raise UsageError(f"{request.text!r} is not a task; give {SHOWN}")


def channel_of(told: Told, *, grey: bool) -> Channel:
    """The channel of binary or grey images with this damage; levels that are missing or None are no damage.

    Grey ones go through Gaussian noise, then salt and pepper, and then pixels are hidden.

    Raises:
        UsageError: if a level is out of range, or binary images have flips and Gaussian noise.

    >>> channel_of({"p": 0.1}, grey=False)
    BitFlip(probability=0.1)
    """
    p, sigma, hidden = (told.get(name) for name in ("p", "sigma", "hidden"))
    if grey:
        # Also without impulses: a black pixel seen exactly is then known to be 0, and not only close to it.
        exact = GaussianNoise(0.0 if sigma is None else sigma)
        noise: Channel = SaltAndPepper(0.0 if p is None else p, exact)
    elif sigma is None:
        noise = BitFlip(0.0 if p is None else p)
    elif p is None:
        noise = GaussianNoise(sigma)
    else:
        raise UsageError("black and white images have flips (p) or Gaussian noise (sigma), not both; give one")
    return noise if hidden is None else Occlusion(hidden, noise=noise)


def scale_of(name: str, *, grey: bool) -> Scale:
    """The levels that are compared where one of `Told` is unknown, of binary or grey images."""
    if name == "sigma":
        return gaussian_noise.LEVELS
    return salt_and_pepper.LEVELS if grey else bit_flip.LEVELS
