"""Reports on files: notes and faults on stderr, and JSON on stdout."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from restore.channels.damage import Damage
from restore.cli.process import signals
from restore.console import say
from restore.errors import PartialFailure, RestoreError, shown, some, unforeseen
from restore.images.outputs import STDIO
from restore.inference.restored import Restored
from restore.registry import LEVELS
from restore.status import Outcome, Status

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
    return {
        "input": shown(job.source),
        "page": None if sheet.page is None else sheet.page + 1,
        "output": shown(job.target),
        "mask": None if job.mask is None else shown(job.mask),
        **record,
        "notes": [*own, *record["notes"], *lost],
    }


@dataclass(frozen=True)
class Ending:
    """What a picture came back as, and if nothing changed, why."""

    outcome: Outcome
    objection: str

    @property
    def unchanged(self) -> bool:
        return self.outcome is not Outcome.RESTORED


def record_of_failed(sheet: Sheet) -> dict[str, Any]:
    """The outcome for a page that failed, and stays as it is in its document."""
    named = {"input": shown(sheet.job.source), "page": (sheet.page or 0) + 1, "output": shown(sheet.job.target)}
    objection = sheet.answer.objection if sheet.answer else ""
    return named | {"outcome": str(Outcome.NOT_SURE), "status": str(Status.FAILED), "reason": objection, "notes": []}


def summary(jobs: Sequence[Job], damage: Damage, verb: str = "restored") -> Iterator[str]:
    """Lines on what was done, by this verb: notes on the pictures, what came back as it came, and how many of each."""
    sheets = [sheet for job in jobs for sheet in job.sheets]
    if not sheets:
        return
    what = "images" if len(sheets) == len(jobs) else "pages"
    yield from _notes(sheets, what)
    for job in jobs:
        if len(job.sheets) < job.pages:
            left = sorted({*range(job.pages)} - {sheet.page for sheet in job.sheets})
            numbers = ", ".join(str(page + 1) for page in left)
            yield f"{shown(job.name)}: left as they are, as they are no scans: pages {numbers}"
    ended = {
        outcome: [sheet for sheet in sheets if sheet.answer and sheet.answer.outcome is outcome] for outcome in Outcome
    }
    records = [sheet.record for sheet in ended[Outcome.RESTORED]]
    done = [_restored(records, damage, verb)] if records else []
    if len(sheets) == 1:
        ending = sheets[0].answer
        unchanged = f"as it came, {ending.outcome}: {ending.objection}" if ending and ending.unchanged else ""
        yield f"{sheets[0].name}: {unchanged or done[0]}{_where(jobs)}"
        return
    yield from _not_sure(ended[Outcome.NOT_SURE], f"{len(sheets)} {what}")
    came = [f"{len(ended[outcome])} {how}" for outcome, how in _CAME.items() if ended[outcome]]
    done = [f"{len(records)} {text}" for text in done]
    yield f"{len(sheets)} {what}: {'; '.join([*done, *came])}{_where(jobs)}"


# How pictures came back in which nothing changed.
_CAME = {Outcome.CLEAN: "as they came, clean", Outcome.NOT_SURE: "as they came, not sure"}


def _where(jobs: Sequence[Job]) -> str:
    """Where the result of a single file is."""
    if len(jobs) != 1:
        return ""
    return f": {'stdout' if jobs[0].target == STDIO else shown(jobs[0].target)}"


def _not_sure(sheets: Sequence[Sheet], all_of_them: str) -> Iterator[str]:
    """Why pictures came back as they were, of which nobody is sure; one line for those with the same reason."""
    reasons: dict[str, list[str]] = {}
    for sheet in sheets:
        reasons.setdefault(sheet.answer.objection if sheet.answer else "", []).append(sheet.name)
    for reason, names in reasons.items():
        if len(names) == 1:
            yield f"{names[0]}: as it came, not sure: {reason}"
        else:
            yield f"{len(names)} of {all_of_them}: as they came, not sure: {reason}: {some(names)}"


def _restored(records: Sequence[dict[str, Any]], damage: Damage, verb: str) -> str:
    """What restored pictures, at which level, and how much changed."""
    models = Counter(record["model"] for record in records).most_common()
    names = models[0][0] if len(models) == 1 else ", ".join(f"{name} ({count})" for name, count in models)
    levels = [_level(records, kind, getattr(damage, kind)) for kind in LEVELS]
    changed = [record["changed"] for record in records if record["changed"] is not None]
    share = f"{np.mean(changed):.2%} of pixels changed" if changed else ""
    return ", ".join(filter(None, (f"{verb} with {names}", *levels, share)))


def _level(records: Sequence[dict[str, Any]], kind: str, given: Any) -> str:
    """A level of noise: found, or as it was given; empty if there is none."""
    found = [float(np.mean(record[kind])) for record in records if record["found"] == kind]
    if found:
        span = ", ".join(dict.fromkeys((f"{min(found):.2g}", f"{max(found):.2g}")))
        return f"{kind} = {np.median(found):.2g} (found" + (f", {span.replace(', ', ' to ')})" if ", " in span else ")")
    return "" if given is None or given == "auto" else f"{kind} = {given}"  # a page is read without a level


_NUMBER = re.compile(r"(\d+(?:\.\d+)?)")


def _notes(sheets: Sequence[Sheet], what: str) -> Iterator[str]:
    """Notes on pictures, each with its name; one line for all that differ in numbers alone, with their ranges."""
    alike: dict[tuple[str, ...], list[tuple[str, list[str]]]] = {}
    for sheet in sheets:
        for note in sheet.record["notes"]:
            parts = _NUMBER.split(note)
            alike.setdefault(tuple(parts[::2]), []).append((sheet.name, parts))
    for notes in alike.values():
        who = notes[0][0] if len(notes) == 1 else f"{len(notes)} of {len(sheets)} {what}"
        yield f"{who}: {''.join(map(_span, zip(*(parts for _, parts in notes), strict=True)))}"


def _span(parts: Sequence[str]) -> str:
    """What several notes say at one place: the same words, or numbers, of which the least and the largest are shown."""
    if len(set(parts)) == 1:
        return parts[0]
    numbers = sorted(parts, key=float)
    return f"{numbers[0]} to {numbers[-1]}"
