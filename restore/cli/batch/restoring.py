"""What denoise and complete do: restore files into files, report on each, and fail if any failed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass, field

from restore.cli.batch.items import Failed, Made, Report
from restore.cli.batch.jobs import Job, work_of
from restore.cli.batch.paging import sheets, whole
from restore.cli.batch.pool import workers
from restore.cli.batch.stages import CHUNK, Stages, portions
from restore.cli.batch.telling import Failures, Notes, print_json
from restore.cli.options import Settings, memory_size
from restore.console import say
from restore.errors import ModelError, UsageError, shown
from restore.inference.damage import Damage
from restore.inference.opening import open_engine
from restore.inference.pictures import PictureEngine
from restore.progress import Meter, progress
from restore.zoo import describe, find


def run(inputs: Sequence[str], settings: Settings, damage: Damage, masks: str | None = None) -> None:
    """Restore every input; see the two commands for the options.

    Raises:
        RestoreError: the error of a single input, or PartialFailure if there were several inputs.
    """
    if settings.max_pixels < 1:
        raise UsageError(f"--max-pixels must be at least 1, not {settings.max_pixels}")
    memory = memory_size(settings.max_memory)
    given = damage
    if settings.model == "auto":
        damage = damage.assumed(None, mask=masks is not None)
    else:
        # The header alone says whether the prior needs to know the damage.
        place = find(settings.model)
        if place.is_dir():
            about = describe(place)
            damage = damage.assumed(about, mask=masks is not None)
            damage.check_kind(about, mask=masks is not None)
            if about.unfinished and not settings.quiet:
                say(f"{shown(settings.model)}: is unfinished: {about.unfinished}")
    work = work_of(inputs, settings, masks, damage.levels())
    failures = Failures(settings.json, many=work.named > 1)
    notes = Notes(settings.quiet, many=work.named > 1)
    total = len(work.jobs)
    if total < work.named:
        notes.add(f"{work.named - total} of {work.named} images have their results already, which are left as they are")
    if not total:
        return
    engines = Engines(settings, memory, work.named)
    if settings.model != "auto":
        # A prior that cannot be loaded fails the whole command before an image is read. This comes after all other
        # checks, because it may load torch.
        engines.of(settings.model)
    jobs: Iterable[Job | Failed] = sheets(work.jobs, settings)
    if total == 1:
        jobs = list(jobs)
        notes.many |= len(jobs) > 1
    with (
        ExitStack() as open_bars,
        nullcontext() if work.manifest is None else work.manifest.writing() as journal,
        progress("restored", total, quiet=settings.quiet or total == 1) as meter,
        workers(settings.workers if notes.many else 1) as mapped,
    ):
        watch = _bar(open_bars, settings.quiet) if total == 1 else lambda share: None
        stages = Stages(settings, damage, engines.of, watch, assumed=damage is not given)
        loaded = mapped(stages.read, jobs, 2 * settings.workers)
        encoded = (list(mapped(stages.encode, stages.solve(portion), CHUNK)) for portion in portions(loaded))

        def made() -> Iterator[Made | Failed]:
            for files in whole(encoded):
                if journal is not None:
                    journal.promise(item.entry for item in files if isinstance(item, Made))
                yield from files

        pages = 0
        # While the files of one portion are written, the next portion is solved.
        for done, item in enumerate(mapped(stages.write, made(), CHUNK), 1):
            pages += item.job.pages
            with failures.of(item.job.source):
                if isinstance(item, Failed):
                    if journal is not None:
                        journal.failed(item.job.source, str(item.fault))
                    raise item.fault
                for report in item.reports:
                    notes.tell(report)
                    if total == 1 and damage is not given and report.record["model"] is not None:
                        notes.add(_done(report))
                    if settings.json:
                        print_json(report.record)
            meter(done)
    notes.conclude(pages)
    failures.verdict(total)


def _done(report: Report) -> str:
    """Say what was done to an image whose damage the user did not describe."""
    record, changed = report.record, report.record["changed"]
    share = "" if changed is None else f", which changed {changed:.2%} of its pixels"
    return f"{shown(report.name)}: restored with {record['model']}{share}: {record['output']}"


def _bar(bars: ExitStack, quiet: bool) -> Callable[[float], None]:
    """Shows the progress of one image that takes more than one step."""
    meters: list[Meter] = []

    def watch(share: float) -> None:
        if not meters and share < 1:
            meters.append(bars.enter_context(progress("restored, in percent", 100, quiet=quiet)))
        for meter in meters:
            meter(round(100 * share))

    return watch


@dataclass(frozen=True)
class Engines:
    """The engines of a run, each opened when it is first needed.

    Attributes:
        settings: what they compute with.
        memory: bytes they may take; None for their own limits.
        images: how many there are to restore, including those of an earlier run, so that the same engine is chosen.
        opened: the engines opened so far, or why they cannot be.
    """

    settings: Settings
    memory: int | None
    images: int
    opened: dict[str, PictureEngine | ModelError] = field(default_factory=dict)

    def of(self, model: str, pixels: int = 1) -> PictureEngine:
        """The engine of a prior for images of so many pixels each; see `open_engine` for the errors."""
        if model not in self.opened:
            chosen = self.settings
            try:
                self.opened[model] = open_engine(
                    model, chosen.engine, chosen.device, self.memory, self.images * pixels, chosen.solver
                )
            except ModelError as fault:
                self.opened[model] = fault
        found = self.opened[model]
        if isinstance(found, ModelError):
            raise found
        return found
