"""Restore the images of a caller together; a fault of some of them is one sentence that names the first."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from restore.errors import ModelError, in_python, shown
from restore.images import doubted
from restore.images.kinds import Collection, Item, fitted_masks, unpack, unpack_masks
from restore.inference.choice import Tried, restore_one, restore_with_each
from restore.inference.damage import Damage
from restore.inference.explained import objection, unexplained
from restore.inference.holes import in_photograph, painted, scan_around
from restore.inference.pictures import PictureEngine, Restored, stopped_as_trained
from restore.inference.scans.reading import Scan, scan_of
from restore.marginals import Marginals, Status
from restore.sizes import Fit, check_size, in_windows, lost_detail, near
from restore.zoo.description import Description

if TYPE_CHECKING:
    from restore.inference.windows.choosing.survey import Choice

# Standard deviations of noise by which a float of a noisy image may lie outside [0, 1].
FARTHEST = 6.0

# No float may lie further outside than this, whatever the noise: its square has to fit into single precision.
FARTHEST_OF_ALL = 1e15


@dataclass(frozen=True)
class Manner:
    """The options that `restore.denoise` and `restore.complete` share; documented there."""

    fit: Fit
    force: bool
    invert: bool
    soft: bool
    return_solution: bool


def restored(
    engines: Sequence[PictureEngine],
    collection: Collection,
    damage: Damage,
    manner: Manner,
) -> Any:
    """Restore images with the engine under which they are most probable, and return them as the caller's own kind.

    Raises:
        ModelError: for the first image that cannot be resized, diverged, or is not explained.
    """
    pixels, paths = [item.pixels for item in collection.items], [item.path for item in collection.items]
    about, told = engines[0].description, damage
    damage = told.assumed(about, mask=told.hidden is not None)
    scans: list[Scan | None] = [None] * len(pixels)
    if damage.scanned or (damage is not told and not about.grey):
        damage.check_kind(about, mask=damage.hidden is not None)
        for index, values in enumerate(pixels):
            try:
                scans[index] = scan_of(values, damage, assumed=damage is not told, force=manner.force)
            except ModelError as fault:
                raise ModelError(f"{_named(paths, index)}: {fault}") from None
    holes = None if damage.touched else damage.hidden
    if holes is not None and not (about.grey or about.conditional):
        scans = [scan_around(values, damage.of_image(index)) for index, values in enumerate(pixels)]
    answers, solution = _answers(engines, pixels, paths, damage, scans, manner)
    if holes is not None:
        answers = [
            (of, painted(part, values, hole, of, scan))
            for (of, part), values, hole, scan in zip(answers, pixels, holes, scans, strict=True)
        ]
    lost = [index for index, (_, part) in enumerate(answers) if part.status is Status.DIVERGED]
    strange = [index for index, (_, part) in enumerate(answers) if part.shortfall]
    if lost and not manner.return_solution:
        raise ModelError(_loss(paths, lost, Status.DIVERGED.sentence))
    stopped = [
        index
        for index, (about, part) in enumerate(answers)
        if part.status is Status.MAX_ITER and not stopped_as_trained(part.status, about)
    ]
    if stopped and not manner.return_solution:
        warnings.warn(_loss(paths, stopped, Status.MAX_ITER.sentence, advice=""), stacklevel=4)
    if strange:
        about, part = answers[strange[0]]
        if manner.force:
            warnings.warn(_loss(paths, strange, unexplained(about.name, part.rival), advice=""), stacklevel=4)
        elif not manner.return_solution:
            said = objection(
                about,
                part.rival,
                inverted=part.inverted,
                invert=manner.invert,
                chosen=damage.unknown is not None,
                compared=len(engines) > 1,
            )
            raise ModelError(_loss(paths, strange, said))
    if damage is not told and not (manner.force or manner.return_solution):
        for index, (about, part) in enumerate(answers):
            if part.level is not None and (why := part.level.objection(about)):
                raise ModelError(f"{_named(paths, index)}: {why}")
    kept = lost if manner.force else [*lost, *strange]
    found = [
        item.unchanged() if index in kept else item.back(part.means if manner.soft else part.painted, part.replaced)
        for index, (item, (_, part)) in enumerate(zip(collection.items, answers, strict=True))
    ]
    together = collection.together(found)
    if not manner.return_solution:
        return together
    each = zip(answers, scans, strict=True)
    notes = tuple(
        tuple(map(in_python, (*part.notes, *(() if scan is None else (scan.note,))))) for (_, part), scan in each
    )
    return together, replace(solution, notes=notes)


def photographs(items: Sequence[Item], damage: Damage) -> bool:
    """Whether images, of which nothing but holes is told, are photographs.

    Raises:
        ModelError: if some are, and others are not.
    """
    if damage.touched or damage.hidden is None:
        return False
    found = [in_photograph(item.pixels, hidden) for item, hidden in zip(items, damage.hidden, strict=True)]
    if len(set(found)) > 1:
        first, other = found.index(True), found.index(False)
        raise ModelError(
            f"image {first} of {len(found)}, from 0, is a photograph, and image {other} is in black and white; "
            "complete them apart"
        )
    return found[0]


def _answers(
    engines: Sequence[PictureEngine],
    pixels: Sequence[np.ndarray],
    paths: Sequence[str],
    damage: Damage,
    scans: Sequence[Scan | None],
    manner: Manner,
) -> tuple[list[tuple[Description, Restored]], Marginals]:
    """What became of each image, with the prior that restored it, and the marginals of all of them."""
    about = engines[0].description
    _check_sizes(about, pixels, paths, manner)
    if any(scans) or any(in_windows(values.shape, about.image_shape, manner.fit) for values in pixels):
        from restore.inference.windows.gathered import marginals_of

        each = [
            _alone(engines, values, damage.of_image(index), scans[index], manner) for index, values in enumerate(pixels)
        ]
        return [(tried.engine.description, part) for tried, part in each], marginals_of(each)
    tried = restore_with_each(engines, pixels, damage, invert=manner.invert)
    best = max(tried, key=lambda one: one.evidence.sum())
    return [(best.engine.description, part) for part in best.restored], best.marginals


def _alone(
    engines: Sequence[PictureEngine], pixels: np.ndarray, damage: Damage, scan: Scan | None, manner: Manner
) -> tuple[Choice | Tried, Restored]:
    """What became of one image with damage of its own."""
    if scan is None:
        return restore_one(engines, pixels, damage, fit=manner.fit, invert=manner.invert, force=manner.force)
    from restore.inference.scans.unblurring import unblurred

    told = replace(damage, p=scan.damage.p)
    tried, part = restore_one(engines, scan.pixels, told, fit="tile", invert=manner.invert, force=manner.force)
    return tried, unblurred(scan, part, None if damage.hidden is None else np.asarray(damage.hidden[0]))


def _check_sizes(about: Description, pixels: Sequence[np.ndarray], paths: Sequence[str], manner: Manner) -> None:
    """Refuse images that are to be resized too much."""
    for index, values in enumerate(pixels):
        if manner.fit == "resize" and manner.force and not near(values.shape[:2], about.image_shape):
            warnings.warn(f"{_named(paths, index)}: {lost_detail(about.image_shape)}", stacklevel=6)
        try:
            check_size(values.shape[:2], about.image_shape, fit=manner.fit, force=manner.force)
        except ModelError as fault:
            raise ModelError(f"{_named(paths, index)}: {fault}" if paths[index] or len(paths) > 1 else fault) from None


REST = "; return_solution=True restores the others and reports on each"


def _loss(paths: Sequence[str], lost: Sequence[int], reason: str, advice: str = REST) -> str:
    """The sentence for images that could not be restored: `lost` has their numbers, `paths` may be empty texts."""
    more = f"; so it did for {len(lost) - 1} more of them" if len(lost) > 1 else ""
    return f"{_named(paths, lost[0])}: {reason}{more}{advice if len(lost) < len(paths) else ''}"


def _named(paths: Sequence[str], index: int) -> str:
    return shown(paths[index]) or ("the image" if len(paths) == 1 else f"image {index} of {len(paths)}, from 0")


def collected(images: Any, channel_axis: int | None, damage: Damage, max_pixels: int) -> Collection:
    """The caller's images; Gaussian noise may carry floats out of [0, 1]."""
    beyond = min(FARTHEST * damage.largest_sigma, FARTHEST_OF_ALL)
    colour = damage.keeps_colours(mask=damage.hidden is not None)
    return unpack(images, channel_axis, beyond, max_pixels, colour)


def masked(
    images: Any, mask: Any, channel_axis: int | None, damage: Damage, max_pixels: int
) -> tuple[Collection, Damage]:
    """The caller's images, and their damage with what is to be filled."""
    found = unpack_masks(mask, max_pixels)
    collection = collected(images, channel_axis, damage.covering(found), max_pixels)
    shapes = [(item.pixels.shape[0], item.pixels.shape[1]) for item in collection.items]
    for sentence in dict.fromkeys(doubt for each in found if (doubt := doubted(each))):
        warnings.warn(sentence, stacklevel=5)
    return collection, damage.covering(fitted_masks(found, shapes))
