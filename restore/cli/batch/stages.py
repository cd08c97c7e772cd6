"""The stages of an image in a batch: read, solved together with others, encoded, written.

Each takes what the stage before it makes. If an image fails, its fault takes its place, and later stages pass it on.
"""

from __future__ import annotations

import io
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import wraps
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np

from restore.cli.batch.items import Answer, Failed, Loaded, Made, Report, Solved, levels_of, record_of, record_of_kept
from restore.cli.batch.jobs import STDIO, Job
from restore.cli.batch.manifest import Entry, stamp
from restore.cli.options import Settings
from restore.errors import Foreign, InputError, ModelError, OutputError, RestoreError, shown
from restore.files import holds, write_atomically
from restore.images import Picture, check_format, encode, format_of, picture_of, read_mask, read_raster
from restore.inference.choice import restore_with_each, windowed
from restore.inference.damage import Damage
from restore.inference.explained import objection
from restore.inference.holes import in_photograph, painted, scan_around
from restore.inference.opening import open_each
from restore.inference.pictures import PictureEngine, outcome, stopped_as_trained
from restore.inference.scans.reading import scan_of
from restore.marginals import Status
from restore.sizes import check_size, in_windows
from restore.zoo import candidates

# How many images, or pixels, are solved, recorded and written together: what a stopped batch may have to do again.
CHUNK = 64
CHUNK_PIXELS = 2**17


class EngineOf(Protocol):
    """Opens the engine of a prior by its name, for images of so many pixels each."""

    def __call__(self, model: str, pixels: int = 1) -> PictureEngine: ...


Restore = Callable[[Sequence[Loaded], Sequence[PictureEngine]], list[Answer]]


Item = TypeVar("Item", Job, Solved, Made)
Result = TypeVar("Result")
Step = Callable[["Stages", Item], Result]


def _step(work: Step[Item, Result]) -> Callable[[Stages, Item | Failed], Result | Failed]:
    @wraps(work)
    def step(self: Stages, item: Item | Failed) -> Result | Failed:
        if isinstance(item, Failed):
            return item
        job = item if isinstance(item, Job) else item.job
        if job.target in self.lost:
            return Failed(job, self.lost[job.target])
        try:
            return work(self, item)
        except RestoreError as fault:
            return self.failed(job, fault)

    return step


def portions(items: Iterable[Loaded | Failed]) -> Iterator[list[Loaded | Failed]]:
    """Split the items into lists that fit into memory."""
    portion: list[Loaded | Failed] = []
    pixels = 0
    for item in items:
        portion.append(item)
        pixels += 0 if isinstance(item, Failed) else item.picture.levels.size
        if len(portion) == CHUNK or pixels >= CHUNK_PIXELS:
            yield portion
            portion, pixels = [], 0
    if portion:
        yield portion


@dataclass(frozen=True)
class Stages:
    """The stages, and what they share.

    Attributes:
        settings: the user's options.
        damage: the damage, as the user described it or as it is assumed; masks belong to the jobs.
        engine_of: opens engines.
        watch: is told which share is done of an image that is restored in windows.
        assumed: whether the user did not describe the damage.
        lost: files of several pages, one of which has failed, by their output: the others need not be restored.
    """

    settings: Settings
    damage: Damage
    engine_of: EngineOf
    watch: Callable[[float], None] = lambda share: None
    assumed: bool = False
    lost: dict[str, RestoreError] = field(default_factory=dict)

    def failed(self, job: Job, fault: RestoreError) -> Failed:
        if job.pages > 1:
            self.lost.setdefault(job.target, fault)
        return Failed(job, fault)

    def refused(self, item: Loaded, fault: RestoreError) -> Failed:
        """As `failed`; but a page of several that nothing explains is kept as it is, if nobody described its damage."""
        job, picture = item.job, item.picture
        if not (isinstance(fault, Foreign) and self.assumed and job.pages > 1):
            return self.failed(job, fault)
        contents = {}
        plain, nowhere = np.zeros(picture.levels.shape), np.zeros(picture.levels.shape[:2], bool)
        if job.uncertainty is not None:
            name = str(job.uncertainty)
            certain = Picture(np.zeros(nowhere.shape, picture.levels.dtype), stored=picture.stored)
            contents[name] = encode(certain, plain, format=format_of(name), hidden=nowhere, name=name)
        format = "PNG" if job.target == STDIO else format_of(job.target)
        contents[job.target] = encode(picture, plain, format=format, hidden=nowhere, name=job.target)
        report = Report(job.name, record_of_kept(job), (), None)
        return Failed(job, fault, Made(job, Entry(item.stamps, [], contents), (report,)))

    @_step
    def read(self, job: Job) -> Loaded:
        """Read the picture of a job, and its mask."""
        settings = self.settings
        stamps = {str(path): stamp(path) for path in job.sources}
        source: Any = io.BytesIO(_stdin()) if job.source == STDIO else Path(job.source)
        most = settings.max_pixels
        raster = read_raster(source, name=job.name, frame=job.page, max_pixels=most)
        mask = None
        if job.mask is not None:
            shape = (raster.levels.shape[0], raster.levels.shape[1])
            mask = read_mask(job.mask, name=str(job.mask), shape=shape, frame=job.mask_page, max_pixels=most)
        colour = self.damage.keeps_colours(mask=mask is not None)
        picture = picture_of(raster, colour=colour)
        check_format(picture, "PNG" if job.target == STDIO else format_of(job.target), name=job.target)
        return Loaded(job, picture, mask, stamps)

    def solve(self, items: Sequence[Loaded | Failed]) -> list[Solved | Failed]:
        """Restore pictures, those with the same priors together; in the order of the items.

        Raises:
            RestoreError: for faults that concern all of them.
        """
        found: list[Solved | Failed | None] = []
        read: list[Loaded | Failed] = []
        # Pictures that are restored together: with the same priors, or one by itself in windows.
        groups: dict[tuple[tuple[str, ...], int | None], list[int]] = {}
        for index, item in enumerate(items):
            fault = item if isinstance(item, Failed) else None
            if isinstance(item, Loaded) and item.job.target in self.lost:
                fault = Failed(item.job, self.lost[item.job.target])
            elif isinstance(item, Loaded):
                try:
                    models, item = self._models_for(item)
                    about = self.engine_of(models[0]).description
                    shape = item.picture.levels.shape
                    alone = item.scan is not None or in_windows(shape, about.image_shape, self.settings.fit)
                    groups.setdefault((models, index if alone else None), []).append(index)
                except RestoreError as reason:
                    fault = self.refused(item, reason)
            found.append(fault)
            read.append(item)
        for (models, alone_as), indices in groups.items():
            chosen = [item for item in (read[index] for index in indices) if isinstance(item, Loaded)]
            restored = self._solved(chosen, models, self._together if alone_as is None else self._in_windows)
            for index, solved in zip(indices, restored, strict=True):
                found[index] = solved
        return [item for item in found if item is not None]

    def _models_for(self, item: Loaded) -> tuple[tuple[str, ...], Loaded]:
        """The priors to choose among for a picture, and the picture, read as a scan if it is one."""
        shape = item.picture.levels.shape
        chosen, fit, force = self.settings.model, self.settings.fit, self.settings.force
        filled = None if self.damage.touched else item.mask
        try:
            models: tuple[str, ...] = (chosen,)
            if chosen == "auto":
                photograph = filled is not None and in_photograph(item.picture.lazily(), filled.hidden)
                models = candidates(shape[:2], photograph or self.damage.sigma is not None, fit)
            # All are opened here, so that a fault is reported for this image.
            engines = open_each(models, lambda model: self.engine_of(model, shape[0] * shape[1]))
            about = next(iter(engines.values())).description
            check_size(shape[:2], about.image_shape, fit=fit, force=force)
            scan = None
            if self.damage.scanned or (self.assumed and not about.grey):
                scan = scan_of(item.picture.lazily(), self.damage, assumed=self.assumed, force=force)
            elif filled is not None and not (about.grey or about.conditional):
                scan = scan_around(item.picture.lazily(), item.damage(self.damage))
        except ModelError as fault:
            raise type(fault)(f"{shown(item.job.name)}: {fault}") from None
        return tuple(engines), replace(item, scan=scan)

    def _solved(self, items: Sequence[Loaded], models: Sequence[str], restore: Restore) -> list[Solved]:
        started = time.perf_counter()
        engines = [self.engine_of(model) for model in models]
        answers = restore(items, engines)
        seconds = (time.perf_counter() - started) / len(items)
        solved = []
        for item, answer in zip(items, answers, strict=True):
            about, others = answer.engines[0].description, ", ".join(answer.others)
            better, by = ("better predicted", "by") if about.convolutional else ("more probable", "under")
            notes = (f"{better} {by} {about.name} than {by} {others}",) if others else ()
            result = answer.restored
            if item.mask is not None and not self.damage.touched:
                result = painted(result, item.picture.lazily(), item.mask.hidden, about, item.scan)
            told = self.damage if item.scan is None else replace(self.damage, p="scan")
            levels = levels_of(told, item, answer.marginals, answer.row)
            used = tuple(each for each, engine in zip(models, engines, strict=True) if engine in answer.engines)
            solved.append(Solved(item, result, answer.engines, used, levels, notes, seconds))
        return solved

    def _together(self, items: Sequence[Loaded], engines: Sequence[PictureEngine]) -> list[Answer]:
        tried = restore_with_each(
            engines,
            [item.picture.pixels for item in items],
            self.damage.covering(None if items[0].mask is None else [item.mask.hidden for item in items if item.mask]),
            invert=self.settings.invert,
        )
        answers = []
        for row in range(len(items)):
            best = max(tried, key=lambda one: one.evidence[row])
            others = tuple(one.marginals.model for one in tried if one is not best)
            answers.append(Answer((best.engine,), best.restored[row], best.marginals, row, others))
        return answers

    def _in_windows(self, items: Sequence[Loaded], engines: Sequence[PictureEngine]) -> list[Answer]:
        (item,) = items
        choice, restored = windowed(item.picture.levels.shape)(
            engines,
            item.picture.lazily() if item.scan is None else item.scan.pixels,
            item.damage(self.damage),
            invert=self.settings.invert,
            force=self.settings.force,
            watch=lambda share: self.watch(((item.job.page or 0) * (item.job.pages > 1) + share) / item.job.pages),
        )
        if item.scan is not None:
            from restore.inference.scans.unblurring import unblurred

            restored = unblurred(item.scan, restored, None if item.mask is None else item.mask.hidden)
        return [Answer(choice.prior.engines, restored, choice.marginals, 0, choice.others)]

    @_step
    def encode(self, item: Solved) -> Made | Failed:
        """Make the contents of a restored picture's files."""
        job, picture, mask, result = item.job, item.loaded.picture, item.loaded.mask, item.result
        if result.status is Status.DIVERGED:
            raise OutputError(f"{shown(job.name)}: is not written, for {result.status.sentence}")
        if result.shortfall and not self.settings.force:
            why = objection(
                item.engine.description,
                result.rival,
                inverted=result.inverted,
                invert=self.settings.invert,
                chosen=self.damage.unknown is not None,
                compared=self.settings.model == "auto",
            )
            return self.refused(item.loaded, Foreign(f"{shown(job.name)}: {why}"))
        level = result.level if self.assumed and not self.settings.force else None
        if level is not None and (why := level.objection(item.engine.description)):
            return self.refused(item.loaded, Foreign(f"{shown(job.name)}: {why}"))
        contents = {}
        if job.uncertainty is not None:
            name = str(job.uncertainty)
            plain = Picture(picture.levels, stored=picture.stored)
            contents[name] = encode(plain, 2 * result.deviations, format=format_of(name), name=name)
        values = result.means if self.settings.soft else result.painted
        format = "PNG" if job.target == STDIO else format_of(job.target)
        contents[job.target] = encode(picture, values, format=format, hidden=result.replaced, name=job.target)
        about = item.engine.description
        chosen = () if result.level is None else (result.level.sentence,)
        scanned = () if item.loaded.scan is None else (item.loaded.scan.note,)
        done = [*result.notes, *chosen, *scanned, *item.notes]
        empty = mask is not None and not (mask.hidden.any() or self.damage.touched)
        notes = [*picture.notes, *(mask.notes if mask else ()), *([] if empty else done)]
        common = (outcome(result.status, about),) if stopped_as_trained(result.status, about) else ()
        entry = Entry(item.loaded.stamps, item.models, contents)
        return Made(job, entry, (Report(job.name, record_of(item, notes), (*common, *item.notes), result.level),))

    @_step
    def write(self, item: Made) -> Made:
        """Write the files to disk or stdout. A file that a killed run had finished stays as it is."""
        for name, content in item.entry.contents.items():
            if name == STDIO:
                sys.stdout.buffer.write(content)
                sys.stdout.buffer.flush()
            elif not holds(name, content):
                write_atomically(name, content)
        return item


def _stdin() -> bytes:
    try:
        return sys.stdin.buffer.read()
    except OSError as fault:
        raise InputError(f"stdin: cannot be read ({fault.strerror}); redirect it from an image, or name one") from fault
