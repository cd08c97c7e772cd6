"""What callers give: images of their own kind, what they know of the damage, and options."""

from __future__ import annotations

import inspect
import logging
import textwrap
import warnings
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from PIL import Image

from restore import console
from restore.api.batch import RestoredBatch
from restore.api.kinds import is_sequence, unpack, unpack_masks
from restore.channels.damage import Damage, Observed
from restore.channels.levels import NOISE
from restore.console import Display
from restore.errors import Foreign, RestoreWarning, UsageError, shown, unforeseen
from restore.images.colours import BY_LUMINANCE
from restore.inference.engine import PictureEngine
from restore.inference.open import Engines, in_colour
from restore.inference.options import EngineName, Levels, Options
from restore.inference.restore import restore
from restore.inference.restored import Restored, unsolved
from restore.inference.tiles.blend import Watch
from restore.registry import LEVELS
from restore.sizes import Fit
from restore.status import Status

if TYPE_CHECKING:
    import torch
    from typing_extensions import TypeVar

    # What comes back as it was given; a path comes back as a PIL image, the default.
    T = TypeVar(
        "T",
        Image.Image,
        np.ndarray,
        torch.Tensor,
        Sequence[Image.Image],
        Sequence[np.ndarray],
        Sequence[torch.Tensor],
        default=Image.Image,
    )
    Input: TypeAlias = T | str | Path

# How callers describe flips; see `restore.denoise`. As texts are sequences, too, mypy takes a wrong word for a wrong p,
# and names the words there are, instead of listing all overloads.
Flips: TypeAlias = "Literal['auto', 'scan'] | float | np.ndarray | torch.Tensor | Sequence[Sequence[float]] | None"
Paths: TypeAlias = list[str] | Sequence[Path]
No: TypeAlias = Literal[False]
Yes: TypeAlias = Literal[True]

_LOG = logging.getLogger("restore")

# Standard deviations of noise by which a float of a noisy image may lie outside [0, 1]; and how far at most, as its
# square has to fit into single precision.
FARTHEST = 6.0
FARTHEST_OF_ALL = 1e15


class Manner(Levels, total=False):
    """How images are restored by a prior that is open; see `restore.denoise`."""

    channel_axis: int | None
    fit: Fit
    force: bool
    invert: bool
    soft: bool
    solver: str | None
    max_pixels: int
    progress: Display


class Opening(Manner, total=False):
    """The same, and how a prior is opened."""

    engine: EngineName
    device: str
    max_memory: int | None


def listing(manner: type, options: type = Options) -> Callable[[Any], Any]:
    """Show the options of `manner` in a function's signature, for its **how, and in its docstring, for `{options}`."""
    known = {option.name: option for option in fields(options)}

    def listed(function: Any) -> Any:
        own = inspect.signature(function)
        more, every = [], manner.__annotations__
        for name, kind in every.items():
            default = known[name].default if name in known else False if name == "progress" else None
            annotation = getattr(kind, "__forward_arg__", kind)
            more.append(inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation))
        function.__signature__ = own.replace(parameters=[*list(own.parameters.values())[:-1], *more])
        help = {name: level.help for name, level in LEVELS.items()}
        help |= {name: option.metadata["help"] for name, option in known.items() if "help" in option.metadata}
        texts = [f"{name}: {help[name]}" for name in every if name in help]
        wrapped = [textwrap.fill(text, 120, initial_indent=8 * " ", subsequent_indent=12 * " ") for text in texts]
        function.__doc__ = (function.__doc__ or "").replace("        {options}", "\n".join(wrapped))
        return function

    return listed


def check_names(how: Iterable[str], known: Collection[str]) -> None:
    """Raise TypeError for an option that is not known, with those that are."""
    if unknown := [name for name in how if name not in known]:
        raise TypeError(f"there is no option {unknown[0]!r}; the options are {', '.join(known)}")


def settings(model: str, p: Flips, how: dict[str, Any]) -> tuple[Damage, Options, int | None]:
    """The damage, the options and the axis of colours that a caller describes; `how` are the options in `Opening`."""
    check_names(how, Opening.__annotations__)
    rest = {name: value for name, value in how.items() if name not in (*LEVELS, "channel_axis", "progress")}
    levels = {name: how.get(name) for name in LEVELS if name != "p"}
    return Damage.of(p, **levels), Options(model, **rest), how.get("channel_axis")


def restored(
    images: Any,
    masks: Any,
    prior: PictureEngine | str,
    p: Flips,
    return_solution: bool,
    how: dict[str, Any],
    engines: Engines | None = None,
) -> Any:
    """Restore images under masks, or None, and return them as their own kind.

    `how` are the options in `Opening`, and `engines` the priors of a name, if they are open already.
    """
    engine = None if isinstance(prior, str) else prior
    damage, options, axis = settings(prior if isinstance(prior, str) else prior.header.name, p, how)
    highest: Any = NOISE.levels[-1] if damage.unknown == "sigma" else damage.sigma or 0.0
    beyond = min(FARTHEST * highest, FARTHEST_OF_ALL)
    collection = unpack(images, axis, beyond, options.max_pixels, in_colour(options.model, damage, engine))
    items = collection.items
    holes: Sequence[Any] = [None] * len(items)
    if masks is not None:
        marked = unpack_masks(masks, [item.pixels.shape for item in items], options.max_pixels)
        holes = [mask.hidden for mask in marked]
        for sentence in dict.fromkeys(note for mask in marked for note in mask.notes):
            warnings.warn(sentence, RestoreWarning, stacklevel=3)
    pictures = [
        Observed(item.pixels, replace(_part(damage, index, len(items)), hidden=hidden), BY_LUMINANCE in item.notes)
        for index, (item, hidden) in enumerate(zip(items, holes, strict=True))
    ]
    with console.progress("restored", len(pictures) if len(pictures) > 1 else 1.0, how.get("progress", False)) as meter:
        meter(0)
        answers = _answers(pictures, options, engines or Engines(options, engine), meter)
    batch = is_sequence(images) or getattr(images, "ndim", 0) > (2 if axis is None else 3)
    single = len(items) == 1 and not batch
    if single and answers[0].refused:
        raise Foreign(f"{shown(items[0].path) or 'the image'}: {answers[0].objection}")
    _warn(answers)
    for number, (item, answer) in enumerate(zip(items, answers, strict=True)):
        _LOG.info("%s: %s: %s", item.path or f"image {number}", answer.model, "; ".join(answer.notes))
    values = [np.asarray(answer.picture(soft=options.soft), np.float64) for answer in answers]
    backs = zip(items, values, answers, strict=True)
    together = collection.together([item.back(value, answer.replaced) for item, value, answer in backs])
    return (together, answers[0] if single else RestoredBatch.of(answers)) if return_solution else together


def _answers(pictures: Sequence[Observed], options: Options, engines: Engines, meter: Watch) -> list[Restored]:
    """The answers about pictures; of several, one at which something fails comes back as it was, and says why.

    Raises what failed first, if nothing else was restored; and what concerns all of them, such as a wrong option.
    """
    try:
        return restore(pictures, options, engines, meter)
    except (UsageError, ModuleNotFoundError):
        raise
    except Exception as fault:
        if len(pictures) == 1:
            raise
        first = fault
    answers = list[Restored]()
    for number, picture in enumerate(pictures):
        try:
            answers += restore([picture], options, engines)
        except Exception as fault:
            error, values = unforeseen(fault, f"image {number}"), np.asarray(picture.pixels[:, :], np.float64)
            kept: dict[str, Any] = {
                "replaced": np.zeros(picture.shape[:2], bool),
                "observed": picture,
                "model": "",
                "engine": "",
            }
            answers.append(unsolved(values, Status.FAILED, str(error), remedy=str(error), **kept))
        meter(number + 1)
    if all(answer.status is Status.FAILED for answer in answers):
        raise first
    return answers


def _part(damage: Damage, index: int, count: int) -> Damage:
    """The damage of one of several images: its own part of levels that are given for each pixel of a batch."""

    def part(level: Any) -> Any:
        if not isinstance(level, np.ndarray) or level.ndim < 3:
            return level
        if len(level) not in (1, count):
            raise UsageError(f"p is given for {len(level)} images, and there are {count}; give one p, or one for each")
        own = level[index % len(level)]
        return own.item() if own.size == 1 else own.reshape(own.shape[-2:])

    return replace(damage, p=part(damage.p))


def _warn(answers: Sequence[Restored]) -> None:
    """Warn of images that came back as they were, and of doubtful results, once each."""
    kept = [answer.objection for answer in answers if answer.refused]
    doubts = [answer.doubt for answer in answers if answer.doubt]
    for sentences, what in ((kept, "came back as they were"), (doubts, "are doubtful")):
        if sentences:
            several = f"{len(sentences)} of {len(answers)} images {what}; the first"
            whose = "the result is doubtful" if len(answers) == 1 and sentences is doubts else several
            warnings.warn(f"{whose}: {sentences[0]}", RestoreWarning, stacklevel=4)
