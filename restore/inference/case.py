"""A picture on its way: as it came, as priors see it, the priors to choose among, and what the caller fixed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from restore.channels.damage import Observed
from restore.errors import ModelError, UsageError, option, require
from restore.images import shrink
from restore.inference.candidates import Candidate, Planes, Prior, squares_in
from restore.inference.decision.rules import Ask, for_others, objection
from restore.inference.engine import PictureEngine
from restore.inference.open import Engines, assumed
from restore.inference.options import Options
from restore.inference.restored import level_of_blank
from restore.inference.rivals.diffusion import Diffusion
from restore.inference.scans.reading import Reading, read
from restore.inference.tiles.blend import Watch
from restore.sizes import check_near
from restore.status import Status
from restore.zoo.description import Description

# The most pixels of pictures that are restored together.
SMALL_PICTURE = 64 * 64


@dataclass(frozen=True, eq=False)
class Case:
    """A picture on its way.

    Attributes:
        index: its number among all.
        original: as it came.
        reading: as priors see it.
        engines: the priors to choose among.
        options: how to restore it.
        named: True if the prior was named.
        ask: what else the caller fixed.
        blank: the value that all visible pixels share, if they do.
        objection: why it is not worth a search, if a rule says so.
    """

    index: int
    original: Observed
    reading: Reading
    engines: tuple[PictureEngine, ...]
    options: Options
    named: bool
    ask: Ask
    blank: Any = None
    objection: Status | None = None

    @classmethod
    def of(cls, index: int, original: Observed, options: Options, engines: Engines, watch: Watch) -> Case:
        """Read a picture for its priors.

        Raises:
            UsageError: if the damage does not fit the prior.
            ModelError: if a prior cannot be opened, or the picture cannot be resized.
        """
        opened = engines.for_picture(original)
        opened = _of_colours(opened) if len(original.shape) > 2 else opened
        picture = _resized(replace(original, damage=assumed(original.damage, opened[0].header)), options, opened)
        certain = engines.named and picture.damage.unknown is None
        scanned = original.damage.scanned
        ask = Ask.TOLD if certain or scanned else Ask.FORCE if options.force else Ask.FIND
        case = cls(index, original, Reading(picture), opened, options, engines.named, ask)
        solved = ask is Ask.TOLD and not (scanned or original.filled_only)
        if not solved and (blank := level_of_blank(original)) is not None:
            return replace(case, blank=blank)
        return case if case.header.grey else case._read(engines, watch)

    def _read(self, engines: Engines, watch: Watch) -> Case:
        """The case in black and white; as it was, with priors of grey pictures, where grey levels are to be filled."""
        header = self.header
        careful = self.ask is Ask.FIND and not header.task
        threshold = header.threshold / 255 if self.named else None
        inverted = self.options.invert
        reading = read(self.picture, threshold, engines, inverted, watch, careful=careful)
        why = objection(reading.facts) if careful else None
        if why is not None:
            return self._unread(replace(reading, picture=self.picture), why, engines)
        if reading.sheet is None:
            return replace(self, reading=reading)
        tones = reading.tones if self.original.filled_only else None
        reader_only = not (self.named or for_others(reading.facts))
        return replace(
            self, reading=replace(reading, tones=tones), engines=(engines.reader,) if reader_only else self.engines
        )

    def _unread(self, reading: Reading, why: Status, engines: Engines) -> Case:
        """The case that is no picture in black and white: priors of grey pictures may fill its holes."""
        holes = self.original.filled_only and not (self.named or self.original.colours is not None)
        if holes and why in (Status.NOT_INK, Status.FAINT):
            return replace(self, engines=engines.for_picture(self.original, grey=True))
        return replace(self, objection=why, reading=reading)

    @property
    def picture(self) -> Observed:
        return self.reading.picture

    @property
    def holes(self) -> np.ndarray | None:
        """The pixels to fill, boolean (H, W). Parts of a page that are none are hidden from priors, too."""
        hidden = self.picture.damage.hidden
        parts = self.reading.parts
        return hidden if hidden is None or parts is None else hidden & ~parts

    @property
    def header(self) -> Description:
        """The header of the first prior."""
        return self.engines[0].header

    @property
    def own_size(self) -> bool:
        """True for a picture of the size of a prior, too small to tell what it is not."""
        return any(engine.header.image_shape == self.picture.shape[:2] for engine in self.engines)

    @property
    def keeps_levels(self) -> bool:
        """True for a drawing with soft edges whose pixels keep their grey levels unless they turn black or white."""
        return self.ask is Ask.FIND and self.reading.drawn and self.picture.shape == self.original.shape

    @property
    def squares(self) -> bool:
        """True if squares may restore it: no prior is named, or of its size."""
        return len(self.engines) > 1 and not (self.own_size or self.header.grey)

    @property
    def candidates(self) -> list[Candidate]:
        """Each prior in each polarity, and squares if no prior is named or of the picture's size."""
        invert = bool(self.options.invert)
        if self.answered_by_reader:
            return [Prior(self.engines[0], self.reading.inverted)]
        if len(self.picture.shape) > 2:
            return [Planes(engine, invert) for engine in self.engines]
        if self.named and self.ask is Ask.TOLD and self.own_size:
            return [Prior(self.engines[0], invert)]
        priors = [Prior(engine, one) for engine in self.engines for one in self._polarities(engine.header)]
        diffusion = [Diffusion()] if self.original.filled_only and not self.header.grey else []
        return [*priors, *diffusion, *(squares_in(self.picture) if self.squares else [])]

    def _polarities(self, header: Description) -> tuple[bool, ...]:
        """The polarities of a prior to choose between; one where it is given, or little depends on it.

        What fills a hole depends on it even for a prior of as much white as black: it may continue black alone.
        """
        if self.options.invert is not None:
            return (self.options.invert,)
        holes = self.original.filled_only and header.inverts
        return (False, True) if header.polarised or holes else (False,)

    @property
    def answered_by_reader(self) -> bool:
        """True if the output of the prior that reads grey pages is the answer."""
        return self.reading.page is not None and self.header.kind.pages

    @property
    def answers_whole_page(self) -> bool:
        """True if its reader is not named, and does more than to fill holes: it has the marks of the page as read."""
        return self.answered_by_reader and not (self.named or self.original.filled_only)

    @property
    def judged_as_read(self) -> bool:
        """True for a page that its reader answers, and for damage that a prior has learnt: no answer is judged."""
        return self.answered_by_reader or bool(self.header.task)

    @property
    def batch_key(self) -> Any:
        """Small pictures with equal keys are restored in one batch; large ones have unique keys."""
        damage, shape = self.picture.damage, self.picture.shape
        # Squares of one picture are not those of another.
        unique = self.reading.page is not None or self.squares
        if len(shape) > 2 or shape[0] * shape[1] > SMALL_PICTURE or unique:
            return self.index
        return *map(id, self.engines), self.ask, damage.unknown, type(damage.p), damage.hidden is None, shape


def _of_colours(engines: Sequence[PictureEngine]) -> tuple[PictureEngine, ...]:
    """The priors that restore colours; raises ModelError if there are none."""
    of_photographs = tuple(engine for engine in engines if engine.header.kind.photographs)
    if not of_photographs:
        name = engines[0].header.name
        raise ModelError(f"{name} knows no colours; leave the model out, or convert a copy to greyscale")
    return of_photographs


def _resized(picture: Observed, options: Options, engines: Sequence[PictureEngine]) -> Observed:
    """A picture in the size of its prior, if that was asked for; and its damage, checked."""
    header = engines[0].header
    shape = picture.shape[:2]
    header.check_damage(picture.damage)
    if options.fit == "resize":
        require(len(picture.shape) == 2, f"{option('fit', 'resize')} is not for colours; leave it out")
        if not options.force:
            check_near((shape[0], shape[1]), header.image_shape)
        hidden = picture.damage.hidden
        values, mask = shrink(np.asarray(picture.pixels[:, :]), hidden, header.image_shape)
        picture = Observed(values, replace(picture.damage, hidden=None if hidden is None else mask))
    p = picture.damage.p
    if isinstance(p, np.ndarray) and p.shape != picture.shape[:2]:
        raise UsageError(f"p has shape {p.shape}; give one number, or one per pixel: {picture.shape[:2]}")
    return picture
