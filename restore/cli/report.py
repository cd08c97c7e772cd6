"""Reports on files: notes and faults on stderr, and JSON on stdout."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from restore.channels.damage import Damage
from restore.cli.process import signals
from restore.console import say
from restore.errors import PartialFailure, RestoreError, shown, unforeseen
from restore.images.outputs import STDIO
from restore.inference.restored import Restored
from restore.registry import LEVELS
from restore.status import Status

if TYPE_CHECKING:
    from restore.cli.batch import Job, Sheet

# Said of files beside results, which are not replaced either.
UNTOUCHED = "kept as they are, as they exist already, maybe from another run"


@dataclass
class Failures:
    """Faults of images: that of a single one ends the command; of many, each is reported and counted.

    Attributes:
        json: report them as JSON too.
        many: several images were named.
        debug: show where those happened that nobody foresaw.
        count: of faults so far.
    """

    json: bool
    many: bool
    debug: bool = False
    count: int = 0

    def add(self, source: str | os.PathLike[str], fault: RestoreError) -> None:
        if self.debug:
            for trace in getattr(fault, "__notes__", ()):
                say(trace.rstrip())
        if self.json:
            print_json({"input": shown(source), "error": str(fault)})
        if not self.many:
            raise fault
        self.count += 1
        say(f"restore: {fault}")

    def verdict(self, total: int) -> None:
        """Raise PartialFailure if any of the images failed."""
        if self.count:
            raise PartialFailure(f"{self.count} of {total} images failed; the messages above say why")


@contextmanager
def one_image(name: str) -> Iterator[None]:
    """Turn whatever goes wrong at one image into an error that names it.

    A signal, a library that is missing, and a reader of stdout that is gone concern all images.
    """
    try:
        yield
    except (RestoreError, ModuleNotFoundError, BrokenPipeError):
        raise
    except Exception as fault:
        signals.stop(fault)
        raise unforeseen(fault, name) from fault


def print_json(record: dict[str, Any]) -> None:
    print(json.dumps(record), flush=True)


def record_of(sheet: Sheet, answer: Restored, damage: Damage, lost: Sequence[str]) -> dict[str, Any]:
    """The outcome for a picture, for reports and --json; `lost` names what its file cannot hold."""
    job, record = sheet.job, answer.record(damage)
    own = [note for read in (sheet.picture, sheet.mask) if read is not None for note in read.notes]
    notes = record["notes"]
    if answer.refused:
        notes[-1] = f"is left as it is: {notes[-1]}"
    return {
        "input": shown(job.source),
        "page": None if sheet.page is None else sheet.page + 1,
        "output": shown(job.target),
        "mask": None if job.mask is None else shown(job.mask),
        **record,
        "notes": [*own, *notes, *lost],
    }


def record_of_failed(sheet: Sheet) -> dict[str, Any]:
    """The outcome for a page that failed, and stays as it is in its document."""
    named = {"input": shown(sheet.job.source), "page": (sheet.page or 0) + 1, "output": shown(sheet.job.target)}
    return named | {"status": str(Status.FAILED), "notes": [f"is left as it is: {sheet.objection}"]}


def summary(jobs: Sequence[Job], damage: Damage, verb: str = "restored") -> Iterator[str]:
    """Lines on what was done, by this verb: notes on each picture, one on several once, and what all have in common."""
    sheets = [sheet for job in jobs for sheet in job.sheets]
    counted = Counter(note for sheet in sheets for note in sheet.record["notes"])
    for sheet in sheets:
        yield from (f"{sheet.name}: {note}" for note in sheet.record["notes"] if counted[note] == 1)
    several = f"{len(sheets)} {'images' if len(sheets) == len(jobs) else 'pages'}"
    yield from (f"{count} of {several}: {note}" for note, count in counted.items() if count > 1)
    for job in jobs:
        if len(job.sheets) < job.pages:
            left = sorted({*range(job.pages)} - {sheet.page for sheet in job.sheets})
            numbers = ", ".join(str(page + 1) for page in left)
            yield f"{shown(job.name)}: left as they are, as they are no scans: pages {numbers}"
    done = [sheet.record for sheet in sheets if not sheet.objection]
    if not done:
        return
    models = Counter(record["model"] for record in done).most_common()
    parts = [f"{verb} with {', '.join(f'{name} ({count})' for name, count in models)}"]
    if len(models) == 1:
        parts = [f"{verb} with {models[0][0]}"]
    for kind in LEVELS:
        given: Any = getattr(damage, kind)
        levels = [float(np.mean(record[kind])) for record in done if record["found"] == kind]
        if levels:
            span = f", {min(levels):.2g} to {max(levels):.2g}" if len(levels) > 1 else ""
            parts.append(f"{kind} = {np.median(levels):.2g} (found{span})")
        elif given is not None and given != "auto":  # a page is read without a level
            parts.append(f"{kind} = {given}")
    changed = [record["changed"] for record in done if record["changed"] is not None]
    parts += [f"{np.mean(changed):.2%} of pixels changed"] if changed else []
    who = sheets[0].name if len(sheets) == 1 else f"{len(done)} of {several}"
    target = "stdout" if jobs[0].target == STDIO else shown(jobs[0].target)
    yield f"{who}: {', '.join(parts)}" + (f": {target}" if len(jobs) == 1 else "")
