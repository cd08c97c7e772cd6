"""Restore posted pictures, as the command does, or find the marks on them."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import fields, replace
from time import perf_counter
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_type_hints

import numpy as np

from restore import zoo
from restore.channels.damage import Damage, Observed
from restore.images import Picture, encode, read_mask, read_picture
from restore.images.pages import Book
from restore.inference.open import Engines
from restore.inference.options import FRAME, Options
from restore.inference.restore import marks_in, restore
from restore.inference.restored import Restored
from restore.inference.tiles.blend import Watch
from restore.registry import LEVELS, MARKS

if TYPE_CHECKING:
    from pydantic import BaseModel

# What can be asked of a picture.
Task: TypeAlias = Literal["denoise", "complete", "marks"]

# Options of this panel are set by the operator of the server, all others by a request.
OPERATOR = "Computing"

# The options that finding marks has.
FINDING = ("model", "invert", "remove", "specks", "frame")


def request_model(task: Task) -> type[BaseModel]:
    """The options of a request. Priors are chosen by name, never by a path."""
    from pydantic import ConfigDict, Field, create_model

    kinds: dict[str, Any] = get_type_hints(Options)
    kinds["model"] = Literal[("auto", *(folder.name for folder in zoo.folders()))]
    known: dict[str, Any] = {
        option.name: (kinds[option.name], Field(option.default, description=option.metadata["help"]))
        for option in fields(Options)
        if option.metadata["panel"] != OPERATOR
    }
    known |= {name: (str | None, Field(None, description=level.help)) for name, level in LEVELS.items()}
    known["frame"] = (int | None, Field(None, ge=0, le=2**31, description=FRAME))
    if task == "marks":
        known = {name: known[name] for name in FINDING}
        known["remove"] = (str, Field("all", description=f"Kinds to find: some of {','.join(MARKS)}, or all."))
    return create_model("Asked", __config__=ConfigDict(extra="forbid"), **known)


class Answers:
    """Restores pictures in any thread; opens each prior once."""

    def __init__(self, options: Options) -> None:
        """Take the options of the server."""
        self.options = options
        self._engines = Engines(options)

    def answer(
        self, image: bytes, mask: bytes | None, wanted: Mapping[str, Any], watch: Watch, *, whole: bool = True
    ) -> tuple[dict[str, Any], dict[str, bytes]]:
        """Restore a picture.

        Args:
            image, mask: the content of image files; white = to fill.
            wanted: the options of `request_model`.
            watch: receives the share of work done.
            whole: True to add means and deviations, and what `soft` writes.

        Returns:
            Facts on the result, and PNGs: `image`, `means`, `deviations` (twice as large) and `soft`.

        Raises:
            RestoreError: if the request, the picture or a prior cannot be used; NotRestored, with `strict`, if no
                restoration can be trusted.
        """
        rest = dict(wanted)
        damage = Damage.of(**{name: rest.pop(name, None) for name in LEVELS})
        frame = rest.pop("frame", None)
        options = replace(self.options, **rest)
        engines = self._engines.with_options(options)
        observed, notes = _observed(image, mask, damage, frame, engines.in_colour(damage), options)
        began = perf_counter()
        (restored,) = restore([observed], replace(options, soft=options.soft or whole), engines, watch)
        facts = restored.record(observed.damage)
        facts |= {"notes": [*notes, *restored.notes], "seconds": perf_counter() - began}
        if options.strict:
            restored.require("image")
        assert isinstance(observed.pixels, Picture)
        return facts, _pngs(observed.pixels, restored, soft=options.soft, whole=whole)

    def marks(self, image: bytes, wanted: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, bytes]]:
        """Find the marks on a picture, which stays as it is.

        Args:
            image: the content of an image file.
            wanted: the options of `request_model`.

        Returns:
            Facts on the marks, how many there are of each kind; and masks as PNGs, white = marks: `image` of all, and
            one for each kind.

        Raises:
            RestoreError: if the request, the picture or a prior cannot be used.
        """
        rest = dict(wanted)
        frame = rest.pop("frame", None)
        options = replace(self.options, **rest)
        observed, notes = _observed(image, None, Damage(), frame, False, options)
        began = perf_counter()
        marks = marks_in(observed, options, self._engines.with_options(options))
        counts = {mark.kind: {"count": mark.count, "words": MARKS[mark.kind].counted(mark.count)} for mark in marks}
        masks = {mark.kind: mark.mask for mark in marks}
        masks["image"] = np.any([np.zeros(observed.shape, bool), *masks.values()], 0)
        pngs = {name: _mask_png(mask) for name, mask in masks.items()}
        return {"marks": counts, "notes": [*notes], "seconds": perf_counter() - began}, pngs


def _observed(
    image: bytes, mask: bytes | None, damage: Damage, frame: int | None, colour: bool, options: Options
) -> tuple[Observed, tuple[str, ...]]:
    """A picture under its mask, with notes on both."""
    most = options.max_pixels
    picture = read_picture(image, name="image", frame=frame, max_pixels=most, colour=colour)
    notes = picture.notes
    if mask is not None:
        with closing(Book.of(mask, "mask", most)) as book:
            page = frame if book.count > 1 else None
            marked = read_mask(book.source, name="mask", shape=picture.shape, frame=page, max_pixels=most)
        damage = replace(damage, hidden=marked.hidden)
        notes = (*notes, *marked.notes)
    return Observed(picture, damage, picture.colours), notes


def _pngs(picture: Picture, restored: Restored, *, soft: bool, whole: bool) -> dict[str, bytes]:
    def png(of: Picture, values: np.ndarray, hidden: np.ndarray | None = None) -> bytes:
        return encode(of, np.asarray(values), format="PNG", hidden=hidden)

    pictures = {"image": png(picture, restored.picture(soft=soft), restored.replaced)}
    if whole:
        grey = Picture(picture.levels, info=picture.info)
        pictures["means"] = png(grey, restored.means, restored.replaced)
        pictures["deviations"] = png(grey, 2 * restored.deviations)
        pictures["soft"] = png(picture, restored.picture(soft=True), restored.replaced)
    return pictures


def _mask_png(mask: np.ndarray) -> bytes:
    return encode(Picture(255 * mask.astype(np.uint8)), mask.astype(float), format="PNG")
