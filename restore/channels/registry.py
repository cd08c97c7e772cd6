"""The registry of channels, by the texts of their tasks: "flip:0.1", "noise:0.2+patch:8"."""

from __future__ import annotations

import re

from restore.channels import asymmetric_flip, bit_flip, gaussian_noise, holes, occlusion, salt_and_pepper
from restore.channels.contract import Task
from restore.channels.task import Asked, Chain, Form
from restore.errors import UsageError

FORMS: tuple[Form, ...] = (
    bit_flip.FORM,
    asymmetric_flip.FORM,
    gaussian_noise.FORM,
    salt_and_pepper.FORM,
    occlusion.FORM,
    holes.FORM,
)

_SHOWN = f"{', '.join(form.shown for form in FORMS)}, or several of them, as in noise:0.1+patch:8"


def parse_task(text: str, mask: str | None = None, *, grey: bool = False) -> Task:
    """Read a task from its text.

    Args:
        text: "flip:0.1", "flip:0.1,0.02", "noise:0.2", "salt:0.1", "patch:8" (painted 0), "patch:12:1", "holes:8:0.1";
            or several in order: "noise:0.1+patch:8".
        mask: "known" (the default for patches and holes) or "unknown"; others have none.
        grey: whether images are grey; if not, they are binary.

    Raises:
        UsageError: for anything else; the message lists the accepted forms.

    >>> import numpy as np
    >>> white = np.ones((200, 200))
    >>> damaged, _ = parse_task("flip:0.1,0.02").damage_picture(white, np.random.default_rng(0))
    >>> round(float((damaged != white).mean()), 2)
    0.1
    """
    if mask not in (None, "known", "unknown"):
        raise UsageError(f"--mask must be known or unknown, not {mask!r}")
    asked = Asked(text, "unknown" if mask == "unknown" else "known", grey)
    tasks = tuple(_parse_one(part, asked) for part in text.split("+"))
    task = tasks[0] if len(tasks) == 1 else Chain(tasks)
    if mask is not None and task.mask is None:
        raise UsageError(f"{text}: may hit any pixel, so there is no mask; leave --mask out")
    return task


def _parse_one(part: str, asked: Asked) -> Task:
    for form in FORMS:
        found = re.fullmatch(form.pattern, part)
        if found is not None:
            return form.task(asked, *(_number(each, asked.text) for each in found.groups() if each is not None))
    raise UsageError(f"{asked.text!r} is not a task; give {_SHOWN}")


def _number(text: str, whole: str) -> float:
    try:
        return float(text)
    except ValueError as fault:
        raise UsageError(f"{whole!r} is not a task, because {text!r} is not a number; give {_SHOWN}") from fault
