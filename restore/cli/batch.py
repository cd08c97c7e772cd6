"""What denoise and complete do: files in, restored files out, a line of JSON each, and a verdict on the whole."""

from __future__ import annotations

import io
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from restore.cli.jobs import STDIO, Job, jobs_of
from restore.cli.options import Settings, memory_size
from restore.cli.telling import Failures, Notes, print_json
from restore.engines import open_engine
from restore.errors import ModelError, OutputError, UsageError, shown
from restore.files import write_atomically
from restore.images import Mask, Picture, check_format, encode, format_of, read_mask, read_picture
from restore.marginals import Status
from restore.progress import progress
from restore.restoration import PictureEngine, Restored, outcome, restore_pictures, size_mismatch, stopped_as_trained
from restore.zoo import auto, describe, find

# Images read, restored and written together: what a stopped batch may have to do again.
CHUNK = 64


@dataclass(frozen=True, eq=False)
class Loaded:
    """A job with its picture in memory."""

    job: Job
    picture: Picture
    mask: Mask | None


def run(
    inputs: Sequence[str], settings: Settings, p: float | None, sigma: float | None, masks: str | None = None
) -> None:
    """Restore every input; see the two commands for what the options mean.

    Raises:
        RestoreError: of the one input that failed, or PartialFailure if there were several inputs.
    """
    if settings.max_pixels < 1:
        raise UsageError(f"--max-pixels must be at least 1, not {settings.max_pixels}")
    memory = memory_size(settings.max_memory)
    if settings.model != "auto":
        # The header alone says whether the prior wants to be told of the damage.
        place = find(settings.model)
        if place.is_dir():
            describe(place).check_told(p is not None, sigma is not None, masks is not None)
    elif p is None and sigma is None and masks is None:
        raise UsageError(
            "--p is missing; give the probability that a pixel is inverted, such as --p 0.1, or of grey images the "
            "--sigma of their noise"
        )
    jobs = jobs_of(inputs, settings, masks)
    failures = Failures(settings.json, many=len(jobs) > 1)
    notes = Notes(settings.quiet, many=len(jobs) > 1)
    engines: dict[str, PictureEngine] = {}
    if settings.model != "auto":
        # A model that cannot be had fails the whole command, before an image is read; and after everything that can be
        # refused without one, for it may be torch that loads here.
        engines[settings.model] = _engine(settings.model, settings, memory, len(jobs))
    with progress("restored", len(jobs), quiet=settings.quiet or len(jobs) == 1) as meter:
        for first in range(0, len(jobs), CHUNK):
            loaded = []
            for job in jobs[first : first + CHUNK]:
                with failures.of(job.source):
                    loaded.append(_read(job, settings))
            by_model: dict[str, list[Loaded]] = {}
            for item in loaded:
                with failures.of(item.job.source):
                    shape = item.picture.levels.shape
                    name = auto(shape, sigma is not None) if settings.model == "auto" else settings.model
                    if name not in engines:
                        engines[name] = _engine(name, settings, memory, len(jobs))
                    _check_size(item, engines[name], settings)
                    by_model.setdefault(name, []).append(item)
            for name, items in by_model.items():
                _restore(items, engines[name], settings, p, sigma, failures, notes)
            meter(min(first + CHUNK, len(jobs)))
    notes.conclude(len(jobs))
    failures.verdict(len(jobs))


def _engine(model: str, settings: Settings, memory: int | None, images: int) -> PictureEngine:
    return open_engine(model, settings.engine, settings.device, memory, images, settings.solver)


def _read(job: Job, settings: Settings) -> Loaded:
    source: Any = io.BytesIO(sys.stdin.buffer.read()) if job.source == STDIO else Path(job.source)
    name = "stdin" if job.source == STDIO else job.source
    picture = read_picture(source, name=name, frame=settings.frame, max_pixels=settings.max_pixels)
    check_format(picture, "PNG" if job.target == STDIO else format_of(job.target), name=job.target)
    mask = None
    if job.mask is not None:
        mask = read_mask(job.mask, name=str(job.mask), shape=picture.levels.shape, max_pixels=settings.max_pixels)
    return Loaded(job, picture, mask)


def _check_size(item: Loaded, engine: PictureEngine, settings: Settings) -> None:
    about = engine.description
    shape = item.picture.levels.shape
    if settings.fit == "error" and shape != about.image_shape:
        raise ModelError(f"{shown(item.job.source)}: {size_mismatch(shape, about.image_shape, about.name)}")


def _restore(
    items: Sequence[Loaded],
    engine: PictureEngine,
    settings: Settings,
    p: float | None,
    sigma: float | None,
    failures: Failures,
    notes: Notes,
) -> None:
    started = time.perf_counter()
    restored, _ = restore_pictures(
        engine,
        [item.picture.pixels for item in items],
        p=p,
        hidden=None if items[0].mask is None else [item.mask.hidden for item in items if item.mask is not None],
        fit=settings.fit,
        invert=settings.invert,
        sigma=sigma,
    )
    seconds = (time.perf_counter() - started) / len(items)
    for item, result in zip(items, restored, strict=True):
        with failures.of(item.job.source):
            _write(item, result, settings)
            said = (*item.picture.notes, *(item.mask.notes if item.mask else ()), *result.notes)
            as_trained = stopped_as_trained(result.status, engine.description)
            notes.tell(item.job.source, said, outcome(result.status, engine.description) if as_trained else None)
            if settings.json:
                print_json(_record(item, result, engine, p, sigma, seconds, said))


def _write(item: Loaded, result: Restored, settings: Settings) -> None:
    job = item.job
    if result.status is Status.DIVERGED:
        raise OutputError(f"{shown(job.target)}: is not written, for {result.status.sentence}")
    values = result.means if settings.soft else result.estimate
    format = "PNG" if job.target == STDIO else format_of(job.target)
    content = encode(item.picture, values, format=format, hidden=result.replaced, name=job.target)
    if job.uncertainty is not None:
        plain = Picture(item.picture.levels)
        map_content = encode(plain, 2 * result.deviations, format=format_of(job.uncertainty), name=str(job.uncertainty))
        write_atomically(job.uncertainty, map_content)
    if job.target == STDIO:
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()
    else:
        write_atomically(job.target, content)


def _record(
    item: Loaded,
    result: Restored,
    engine: PictureEngine,
    p: float | None,
    sigma: float | None,
    seconds: float,
    notes: Sequence[str],
) -> dict[str, Any]:
    """What --json tells of a restored image."""
    about = engine.description
    return {
        "input": shown(item.job.source),
        "output": shown(item.job.target),
        "model": about.name,
        "engine": engine.name,
        "solver": about.inference.solver,
        "channel": {"p": p, "sigma": sigma, "mask": None if item.job.mask is None else shown(str(item.job.mask))},
        "learnt": about.task or None,
        "iterations": result.iterations,
        "converged": result.status == 0,
        "status": outcome(result.status, about),
        "residual": result.residual,
        "seconds": seconds,
        "notes": list(notes),
    }
