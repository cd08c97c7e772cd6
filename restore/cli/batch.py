"""What denoise and complete share: files in, restored files out, a line of JSON each, and a verdict on the whole."""

from __future__ import annotations

import io
import json
import re
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import typer

from restore.description import Solver
from restore.engines import Choice, open_engine
from restore.errors import ModelError, OutputError, PartialFailure, RestoreError, UsageError, shown
from restore.files import write_atomically
from restore.images import Mask, Picture, check_format, encode, format_of, read_mask, read_picture
from restore.marginals import Status
from restore.outputs import expand, plan
from restore.progress import progress
from restore.restoration import (
    Fit,
    PictureEngine,
    Restored,
    check_sigma,
    outcome,
    restore_pictures,
    size_mismatch,
    stopped_as_trained,
)
from restore.zoo import auto, describe, find

Images = Annotated[list[str], typer.Argument(help="Images, folders of images, or - for stdin.", show_default=False)]
Model = Annotated[str, typer.Option(help="Name or folder of a prior; auto picks one by the size of the image.")]
Output = Annotated[
    str | None,
    typer.Option("-o", "--output", help="File, folder (ending with /), or - for stdout [NAME.restored.png]."),
]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace existing outputs.")]
SkipExisting = Annotated[bool, typer.Option("--skip-existing", help="Leave out inputs whose output exists.")]
FitOption = Annotated[Fit, typer.Option(help="Images of another size than the prior's.")]
Invert = Annotated[bool, typer.Option("--invert", help="Dark strokes on light: invert for the prior, and back.")]
Soft = Annotated[
    bool,
    typer.Option(
        "--soft",
        help="Write posterior probabilities as grey levels, not black and white; models of grey images always do.",
    ),
]
Uncertainty = Annotated[
    str | None,
    typer.Option(metavar="FILE", help="Write the posterior standard deviation: black is 0, white is 0.5, its maximum."),
]
Sigma = Annotated[
    float | None,
    typer.Option(help="Standard deviation of Gaussian noise, black being 0 and white 1: for models of grey images."),
]
Frame = Annotated[int | None, typer.Option(help="Frame or page of files that hold several, from 0.")]
MaxPixels = Annotated[int, typer.Option(help="Refuse larger images.")]
Json = Annotated[bool, typer.Option("--json", help="One JSON object per image on stdout.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="No progress, no notes.")]
Engine = Annotated[Choice, typer.Option(help="onnx starts at once, torch knows every device; auto picks.")]
Device = Annotated[str, typer.Option(help="auto, cpu or cuda[:N].")]
MaxMemory = Annotated[
    str | None,
    typer.Option(metavar="SIZE", help="Memory for messages or matrices of a solver, such as 500M or 4G [2G]."),
]
SolverOption = Annotated[
    Solver | None, typer.Option("--solver", help="Solve the prior with this in place of its own, in torch.")
]

# Images read, restored and written together: what a stopped batch may have to do again.
CHUNK = 64

STDIO = "-"


@dataclass(frozen=True)
class Settings:
    """The options that denoise and complete have in common."""

    model: str
    output: str | None
    overwrite: bool
    skip_existing: bool
    fit: Fit
    invert: bool
    soft: bool
    uncertainty: str | None
    frame: int | None
    max_pixels: int
    json: bool
    quiet: bool
    engine: Choice
    device: str
    max_memory: str | None
    solver: Solver | None = None


@dataclass(frozen=True)
class Job:
    """One image to restore: where it comes from, where the results go, and its mask's file if it has one."""

    source: str
    target: str
    uncertainty: Path | None = None
    mask: Path | None = None


@dataclass(frozen=True, eq=False)
class Loaded:
    """A job with its picture in memory."""

    job: Job
    picture: Picture
    mask: Mask | None


@dataclass
class Failures:
    """Faults of single images: one image's stops the command, one of many is reported and counted."""

    json: bool
    many: bool
    found: int = 0

    @contextmanager
    def of(self, source: str | Path) -> Iterator[None]:
        try:
            yield
        except RestoreError as fault:
            if self.json:
                print_json({"input": shown(source), "error": str(fault)})
            if not self.many:
                raise
            self.found += 1
            print(f"restore: {fault}", file=sys.stderr)

    def verdict(self, total: int) -> None:
        """Raise PartialFailure if any of the images failed."""
        if self.found:
            raise PartialFailure(f"{self.found} of {total} images failed; the messages above say why")


@dataclass
class Notes:
    """What stderr is told about images: each note behind the image's name, but one that is true of many only once.

    Attributes:
        quiet: tell nothing.
        many: there are several images.
        counted: how many images a common note is true of.
    """

    quiet: bool
    many: bool
    counted: Counter[str] = field(default_factory=Counter)

    def tell(self, source: str, notes: Sequence[str], common: str | None) -> None:
        """Tell the notes on an image, except that among many the common one is counted."""
        for note in notes:
            if self.many and note == common:
                self.counted[note] += 1
            elif not self.quiet:
                print(f"{shown(source)}: {note}", file=sys.stderr)

    def conclude(self, total: int) -> None:
        """Tell the common notes, each with its count."""
        for note, count in self.counted.items() if not self.quiet else ():
            print(f"{count} of {total} images: {note}", file=sys.stderr)


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
    jobs = _jobs(inputs, settings, masks)
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


def _jobs(inputs: Sequence[str], settings: Settings, masks: str | None) -> list[Job]:
    if STDIO in inputs or settings.output == STDIO:
        return [_stdio_job(inputs, settings, masks)]
    sources = expand(inputs)
    protected = [Path(masks)] if masks is not None else []
    pairs = plan(
        sources,
        settings.output,
        overwrite=settings.overwrite,
        skip_existing=settings.skip_existing,
        protected=protected,
    )
    for _, target in pairs:
        format_of(target)
    maps: dict[Path, Path] = {}
    if settings.uncertainty is not None:
        left = [source for source, _ in pairs]
        maps = dict(
            plan(
                left,
                settings.uncertainty,
                suffix="uncertainty",
                overwrite=settings.overwrite,
                skip_existing=False,
                protected=[*protected, *(target for _, target in pairs)],
            )
        )
        clash = {target for _, target in pairs} & set(maps.values())
        if clash:
            raise UsageError(
                f"{shown(min(clash))}: is the output and the uncertainty map; choose another --uncertainty"
            )
    return [Job(str(source), str(target), maps.get(source), _mask_of(source, masks)) for source, target in pairs]


def _stdio_job(inputs: Sequence[str], settings: Settings, masks: str | None) -> Job:
    if len(inputs) != 1:
        raise UsageError("- stands for the only image; name files instead to restore several")
    target = STDIO if settings.output in (None, STDIO) else str(settings.output)
    if target == STDIO:
        if settings.json:
            raise UsageError("--json and the image cannot both go to stdout; give -o FILE")
        if sys.stdout.isatty():
            raise UsageError("a PNG does not belong on a terminal; give -o FILE or redirect stdout")
    else:
        plan([Path(inputs[0])], target, overwrite=settings.overwrite, skip_existing=settings.skip_existing)
    maps = Path(settings.uncertainty) if settings.uncertainty is not None else None
    if maps is not None:
        plan([Path(inputs[0])], settings.uncertainty, overwrite=settings.overwrite, skip_existing=False)
    return Job(inputs[0], target, maps, _mask_of(Path(inputs[0]), masks))


def _mask_of(source: Path, masks: str | None) -> Path | None:
    """The mask of an image: the file given, or the one of the same name in the folder given."""
    if masks is None:
        return None
    folder = Path(masks)
    return folder / source.name if folder.is_dir() else folder


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


def print_json(record: dict[str, Any]) -> None:
    print(json.dumps(record), flush=True)


def memory_size(text: str | None) -> int | None:
    """Bytes in a text such as 500M, 4G or 2GiB; None for None."""
    if text is None:
        return None
    found = re.fullmatch(r"(\d{1,15}(?:\.\d+)?)\s*([KMGT]?)(?:i?B)?", text.strip(), re.IGNORECASE)
    size = int(float(found[1]) * 1024 ** " KMGT".index(found[2].upper() or " ")) if found else 0
    if size < 1:
        raise UsageError(f"--max-memory {shown(text)} is no size; give one such as 500M or 4G")
    return size


def check_noise(p: float | None, sigma: float | None) -> None:
    """Refuse a flip probability outside [0, 1], and a standard deviation that is none, before anything is read."""
    if p is not None and not 0 <= p <= 1:
        raise UsageError(f"--p is a flip probability and must lie in [0, 1], not {p}")
    if sigma is not None:
        check_sigma(sigma)
