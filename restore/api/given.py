"""What callers give: images of their own kind, what they know of the damage, and options."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypedDict, TypeVar

import numpy as np
from PIL import Image

from restore import zoo
from restore.channels import gaussian_noise
from restore.errors import Foreign, RestoreWarning, UsageError, shown
from restore.images import doubted
from restore.images.kinds import Collection, fitted_masks, unpack, unpack_masks
from restore.inference.damage import Auto, Damage, Observed, Rates, Scanned
from restore.inference.engine import PictureEngine
from restore.inference.open import Engines
from restore.inference.options import EngineName, Options
from restore.inference.restore import restore
from restore.inference.restored import Restored, stacked
from restore.marginals import Status
from restore.sizes import Fit
from restore.zoo.description import Description

if TYPE_CHECKING:
    import torch

# How callers describe flips; see `restore.denoise`.
Flips: TypeAlias = float | tuple[float, float] | np.ndarray | Auto | Scanned | None
Picture = TypeVar("Picture", Image.Image, np.ndarray, "torch.Tensor")
No: TypeAlias = Literal[False]
Yes: TypeAlias = Literal[True]

# Standard deviations of noise by which a float of a noisy image may lie outside [0, 1]; and how far at most, as its
# square has to fit into single precision.
FARTHEST, FARTHEST_OF_ALL = 6.0, 1e15


class Manner(TypedDict, total=False):
    """How images are restored by a prior that is open; see `restore.denoise`."""

    sigma: float | Auto | None
    channel_axis: int | None
    fit: Fit
    force: bool
    invert: bool
    soft: bool
    solver: str | None
    max_pixels: int


class Opening(Manner, total=False):
    """The same, and how a prior is opened."""

    engine: EngineName
    device: str
    max_memory: int | None


def listing(manner: type) -> Callable[[Any], Any]:
    """Show the options in `manner` in a function's signature, with their defaults, in place of **how."""
    defaults = {"sigma": None, "channel_axis": None} | {each.name: each.default for each in fields(Options)}
    keyword = inspect.Parameter.KEYWORD_ONLY

    def listed(function: Any) -> Any:
        own = inspect.signature(function)
        more = [
            inspect.Parameter(name, keyword, default=defaults[name], annotation=getattr(kind, "__forward_arg__", kind))
            for name, kind in manner.__annotations__.items()
        ]
        function.__signature__ = own.replace(parameters=[*list(own.parameters.values())[:-1], *more])
        return function

    return listed


@dataclass(frozen=True, eq=False)
class Given:
    """What a caller says beside the images: the damage, the options, and a prior that is open already, if any."""

    damage: Damage
    options: Options
    engine: PictureEngine | None
    channel_axis: int | None
    return_solution: bool

    @classmethod
    def of(cls, engine: PictureEngine | None, p: Flips, return_solution: bool, how: dict[str, Any]) -> Given:
        """Check what a caller says; `how` holds the options in `Opening`, and the model."""
        rest = {"sigma": None, "channel_axis": None} | how
        damage, axis = Damage.of(p, rest.pop("sigma")), rest.pop("channel_axis")
        return cls(damage, Options(**rest), engine, axis, return_solution)

    def restored(self, images: Any, masks: Any = None) -> Any:
        """Restore the caller's images, and return them as their own kind; see `restore.denoise`."""
        damage, most = self.damage, self.options.max_pixels
        highest: Any = gaussian_noise.LEVELS.levels[-1] if damage.unknown == "sigma" else damage.sigma or 0.0
        colour = self._about.kind.photographs if self._about else damage.sigma is not None
        collection = unpack(images, self.channel_axis, min(FARTHEST * highest, FARTHEST_OF_ALL), most, colour)
        items = collection.items
        holes: Sequence[Any] = [None] * len(items)
        if masks is not None:
            found = unpack_masks(masks, most)
            holes = fitted_masks(found, [(item.pixels.shape[0], item.pixels.shape[1]) for item in items])
            for sentence in dict.fromkeys(filter(None, map(doubted, found))):
                warnings.warn(sentence, RestoreWarning, stacklevel=3)
        pictures = [
            Observed(item.pixels, replace(_part(damage, place, len(items)), hidden=hidden))
            for place, (item, hidden) in enumerate(zip(items, holes, strict=True))
        ]
        engines = Engines(self.options, sum(item.pixels.size for item in items), self.engine)
        answers = restore(pictures, self.options, engines)
        single = len(items) == 1 and not _is_batch(images, self.channel_axis)
        if single and answers[0].refused:
            raise Foreign(f"{shown(items[0].path) or 'the image'}: {answers[0].objection}")
        _warn(answers)
        together = self._together(collection, answers)
        if not self.return_solution:
            return together
        return together, answers[0] if single else stacked(answers)

    @property
    def _about(self) -> Description | None:
        """The facts about the prior that was named."""
        if self.engine is not None:
            return self.engine.description
        place = None if self.options.model == "auto" else zoo.find(self.options.model)
        return zoo.describe(place) if place is not None and place.is_dir() else None

    def _together(self, collection: Collection, answers: Sequence[Restored]) -> Any:
        found = []
        for item, answer in zip(collection.items, answers, strict=True):
            values = np.asarray(answer.means if self.options.soft else answer.estimate, np.float64)
            found.append(item.back(values, answer.replaced))
        return collection.together(found)


def _part(damage: Damage, place: int, count: int) -> Damage:
    """The damage of one of several images: its own part of levels that are given for each pixel of a batch."""

    def part(level: Any) -> Any:
        if isinstance(level, Rates):
            return Rates(*map(part, level))
        if not isinstance(level, np.ndarray) or level.ndim < 3:
            return level
        if len(level) not in (1, count):
            raise UsageError(f"p is given for {len(level)} images, and there are {count}; give one p, or one for each")
        own = level[place % len(level)]
        return own.item() if own.size == 1 else own

    return replace(damage, p=part(damage.p))


def _is_batch(images: Any, channel_axis: int | None) -> bool:
    return isinstance(images, list | tuple) or getattr(images, "ndim", 0) > (2 if channel_axis is None else 3)


def _warn(answers: Sequence[Restored]) -> None:
    """Warn of images that came back as they were, and of doubtful results, each with their number."""
    kept = [answer for answer in answers if answer.refused]
    doubts = [
        answer.doubt or Status(answer.status).sentence for answer in answers if answer.doubt or _unfinished(answer)
    ]
    for found, what in (([each.objection for each in kept], "came back as they were"), (doubts, "are doubtful")):
        if found:
            whose = (
                f"{len(found)} of {len(answers)} images {what}; the first"
                if len(answers) > 1
                else "the result is doubtful"
            )
            warnings.warn(f"{whose}: {found[0]}", RestoreWarning, stacklevel=4)


def _unfinished(answer: Restored) -> bool:
    return Status(answer.status) is Status.MAX_ITER and not any("was trained with" in note for note in answer.notes)
