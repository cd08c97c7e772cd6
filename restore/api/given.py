"""What callers give: images of their own kind, what they know of the damage, and options."""

from __future__ import annotations

import inspect
import logging
import math
import textwrap
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from PIL import Image

from restore import console
from restore.api.batch import RestoredBatch
from restore.api.kinds import Item, is_sequence, unpack, unpack_masks
from restore.channels.damage import Damage, Observed
from restore.channels.levels import NOISE
from restore.console import Display, Meter
from restore.errors import RestoreWarning, UsageError, shown, unforeseen
from restore.inference.decision.facts import Facts
from restore.inference.engine import PictureEngine
from restore.inference.open import Engines
from restore.inference.options import EngineName, Levels, Options
from restore.inference.restore import PICTURES_AT_ONCE, restore
from restore.inference.restored import Restored, not_sure
from restore.inference.threads import portions
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

# Pixels after which answers are given back, before further pictures are restored: an answer has some 30 bytes for each.
PORTION_PIXELS = 2**20


class Manner(Levels, total=False):
    """How images are restored by a prior that is open; see `restore.denoise`."""

    channel_axis: int | None
    fit: Fit
    force: bool
    invert: bool | None
    soft: bool
    strict: bool
    remove: str | None
    specks: int | None
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
        declared = inspect.signature(function)
        more = []
        every = manner.__annotations__
        for name, kind in every.items():
            default = known[name].default if name in known else False if name == "progress" else None
            annotation = getattr(kind, "__forward_arg__", kind)
            more.append(inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation))
        function.__signature__ = declared.replace(parameters=[*list(declared.parameters.values())[:-1], *more])
        help = {name: level.help for name, level in LEVELS.items()}
        help |= {name: option.metadata["help"] for name, option in known.items() if "help" in option.metadata}
        texts = [f"{name}: {help[name]}" for name in every if name in help]
        wrapped = [textwrap.fill(text, 120, initial_indent=8 * " ", subsequent_indent=12 * " ") for text in texts]
        function.__doc__ = (function.__doc__ or "").replace("        {options}", "\n".join(wrapped))
        return function

    return listed


def check_names(how: Iterable[str], known: Collection[str], named: Sequence[str] = ()) -> None:
    """Raise TypeError for an option that is not known, with those that are, and others, which the function names."""
    if unknown := [name for name in how if name not in known]:
        raise TypeError(f"there is no option {unknown[0]!r}; the options are {', '.join([*named, *known])}")


def settings(model: str, p: Flips, how: dict[str, Any]) -> tuple[Damage, Options, int | None]:
    """The damage, the options and the axis of colours that a caller describes; `how` are the options in `Opening`."""
    check_names(how, Opening.__annotations__, ("model", "p"))
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
    engines = engines or Engines(options, engine)
    collection = unpack(images, axis, _beyond(damage), options.max_pixels, engines.in_colour(damage))
    items = collection.items
    single = len(items) == 1 and not _several(images, axis)
    pictures = _observed(items, masks, damage, options.max_pixels)
    with console.progress("restored", len(items) if len(items) > 1 else 1.0, how.get("progress", False)) as meter:
        answers = list[Restored]()
        results = []
        for item, answer in zip(items, _answers(pictures, options, engines, meter), strict=True):
            name = shown(item.path) or ("the image" if single else f"image {len(answers)}")
            results.append(_result(item, answer, name, options))
            answers.append(answer if return_solution else _without_pixels(answer))
    _warn(answers)
    together = collection.together(results)
    if not return_solution:
        return together
    return together, answers[0] if single else RestoredBatch.of(answers)


def _several(images: Any, axis: int | None) -> bool:
    """True for a list of images, even of one, or an array of several; `axis` is that of colours."""
    return is_sequence(images) or getattr(images, "ndim", 0) > (2 if axis is None else 3)


def _result(item: Item, answer: Restored, name: str, options: Options) -> Any:
    """What an answer makes of an image; raises NotRestored for one that is not sure, if options are strict."""
    if options.strict:
        answer.require(name)
    facts = "; ".join(filter(None, (answer.objection, *answer.notes)))
    _LOG.info("%s: %s, %s: %s", name, answer.outcome, answer.model, facts)
    return item.back(np.asarray(answer.picture(soft=options.soft), np.float64), answer.replaced)


def _beyond(damage: Damage) -> float:
    """How far floats may lie outside [0, 1], as Gaussian noise carries them."""
    highest: Any = NOISE.levels[-1] if damage.unknown == "sigma" else damage.sigma or 0.0
    return min(FARTHEST * float(highest), FARTHEST_OF_ALL)


def _observed(items: Sequence[Item], masks: Any, damage: Damage, max_pixels: int) -> list[Observed]:
    """Images under masks, or None, with what is known of their damage."""
    count = len(items)
    holes = list[Any]([None] * len(items))
    if masks is not None:
        marked = unpack_masks(masks, [item.pixels.shape for item in items], max_pixels)
        holes = [mask.hidden for mask in marked]
        for sentence in dict.fromkeys(note for mask in marked for note in mask.notes):
            warnings.warn(sentence, RestoreWarning, stacklevel=4)
    known = [replace(_part(damage, index, count), hidden=hidden) for index, hidden in enumerate(holes)]
    pairs = zip(items, known, strict=True)
    return [Observed(item.pixels, damage, item.pixels.colours) for item, damage in pairs]


def _answers(pictures: Sequence[Observed], options: Options, engines: Engines, meter: Meter) -> Iterator[Restored]:
    """The answers about pictures, in order: a few at a time, as each takes many times the memory of a picture."""
    done = 0
    meter(0)
    for portion in portions(pictures, lambda picture: math.prod(picture.shape), PICTURES_AT_ONCE, PORTION_PIXELS):
        yield from _restored(portion, options, engines, _further(meter, done))
        done += len(portion)


def _further(meter: Meter, done: int) -> Watch:
    return lambda share: meter(done + share)


def _without_pixels(answer: Restored) -> Restored:
    """What is said of a picture, without arrays as large as it is."""
    none = np.empty((0, 0))
    arrays: dict[str, Any] = {"estimate": none, "means": none, "deviations": none, "layers": (), "marks": {}}
    return replace(answer, **arrays, replaced=None, lightened=None, observed=None)


def _restored(pictures: Sequence[Observed], options: Options, engines: Engines, meter: Watch) -> list[Restored]:
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
            error = str(unforeseen(fault, f"image {number}"))
            answers.append(not_sure(picture, Status.FAILED, error, Facts(), model="", engine=""))
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
        value = level[index % len(level)]
        return value.item() if value.size == 1 else value.reshape(value.shape[-2:])

    return replace(damage, p=part(damage.p))


def _warn(answers: Sequence[Restored]) -> None:
    """Warn of images that came back as they were, and of doubtful results, once each."""
    kept = [answer.objection for answer in answers if answer.not_sure]
    doubts = [answer.doubt for answer in answers if answer.doubt]
    for sentences, one, many in (
        (kept, "the image came back as it was", "came back as they were"),
        (doubts, "the result is doubtful", "are doubtful"),
    ):
        if sentences:
            several = f"{len(sentences)} of {len(answers)} images {many}; the first"
            warnings.warn(f"{one if len(answers) == 1 else several}: {sentences[0]}", RestoreWarning, stacklevel=4)
