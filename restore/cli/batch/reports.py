"""Reports on pictures that were restored: their records for --json, and the lines of a summary."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from restore.channels.damage import Damage
from restore.cli.batch.jobs import Job, Sheet
from restore.errors import shown, some
from restore.images.outputs import STDIO
from restore.images.picture import BY_LUMINANCE
from restore.inference.restored import Restored, change_text
from restore.registry import LEVELS
from restore.status import Outcome, Status

# How pictures came back in which nothing changed.
_CAME = {Outcome.CLEAN: "as they came, clean", Outcome.NOT_SURE: "as they came, not sure"}

_NUMBER = re.compile(r"(\d+(?:\.\d+)?)")


def record_of(sheet: Sheet, answer: Restored, damage: Damage, lost: Sequence[str]) -> dict[str, Any]:
    """The outcome for a picture, for reports and --json; `lost` names what its file cannot hold."""
    record = answer.record(damage)
    read = [note for image in (sheet.picture, sheet.mask) if image is not None for note in image.notes]
    if answer.unchanged:  # nothing becomes grey
        read = [note for note in read if note != BY_LUMINANCE]
    return {
        "input": shown(sheet.job.source),
        "page": None if sheet.page is None else sheet.page + 1,
        "output": shown(sheet.job.target),
        "mask": None if sheet.job.mask is None else shown(sheet.job.mask),
        **record,
        "notes": [*read, *record["notes"], *lost],
    }


def record_of_failed(sheet: Sheet) -> dict[str, Any]:
    """The outcome for a page that failed, and stays as it is in its document."""
    return {
        "input": shown(sheet.job.source),
        "page": (sheet.page or 0) + 1,
        "output": shown(sheet.job.target),
        "outcome": str(Outcome.NOT_SURE),
        "status": str(Status.FAILED),
        "reason": sheet.objection,
        "notes": [],
    }


def summary(jobs: Sequence[Job], damage: Damage, verb: str = "restored") -> Iterator[str]:
    """Lines on what was done, by this verb: notes on the pictures, what came back as it came, and how many of each."""
    sheets = [sheet for job in jobs for sheet in job.sheets]
    count = f"{len(sheets)} {'images' if len(sheets) == len(jobs) else 'pages'}"
    yield from _notes(sheets, count)
    yield from (_left_out(job) for job in jobs if len(job.sheets) < job.pages)
    where = f": {'stdout' if jobs[0].target == STDIO else shown(jobs[0].target)}" if len(jobs) == 1 else ""
    restored = [sheet.record for sheet in sheets if not sheet.unchanged]
    if len(sheets) == 1:
        sheet = sheets[0]
        done = f"as it came, {sheet.outcome}: {sheet.objection}" if sheet.unchanged else ""
        yield f"{sheet.name}: {done or _restored(restored, damage, verb)}{where}"
    elif sheets:
        yield from _not_sure(sheets, count)
        outcomes = Counter(sheet.outcome for sheet in sheets)
        if 0 < len(restored) < len(sheets):
            yield f"{len(restored)} of {count}: {verb}: {some(sheet.name for sheet in sheets if not sheet.unchanged)}"
        texts = {Outcome.RESTORED: _restored(restored, damage, verb), **_CAME}
        parts = [f"{outcomes[outcome]} {text}" for outcome, text in texts.items() if outcomes[outcome]]
        yield f"{count}: {'; '.join(parts)}{where}"


def _left_out(job: Job) -> str:
    left = sorted({*range(job.pages)} - {sheet.page for sheet in job.sheets})
    numbers = ", ".join(str(page + 1) for page in left)
    return f"{shown(job.name)}: left as they are, as they are no scans: pages {numbers}"


def _not_sure(sheets: Sequence[Sheet], count: str) -> Iterator[str]:
    """Why pictures came back as they were, of which nobody is sure; one line for those with the same reason."""
    reasons: dict[str, list[str]] = {}
    for sheet in sheets:
        if sheet.outcome is Outcome.NOT_SURE:
            reasons.setdefault(sheet.objection, []).append(sheet.name)
    for reason, names in reasons.items():
        if len(names) == 1:
            yield f"{names[0]}: as it came, not sure: {reason}"
        else:
            yield f"{len(names)} of {count}: {_CAME[Outcome.NOT_SURE]}: {reason}: {some(names)}"


def _restored(records: Sequence[dict[str, Any]], damage: Damage, verb: str) -> str:
    """What restored pictures, at which level, and how much changed."""
    models = Counter(record["model"] for record in records)
    names = ", ".join(f"{name} ({count})" if len(models) > 1 else name for name, count in models.most_common())
    levels = [_level(records, kind, getattr(damage, kind)) for kind in LEVELS]
    changed = [record["changed"] for record in records if record["changed"] is not None]
    page = all("left" in record["facts"] for record in records)
    share = change_text(float(np.mean(changed)), page=page) if changed else ""
    return ", ".join(filter(None, (f"{verb} with {names}", *levels, share)))


def _level(records: Sequence[dict[str, Any]], kind: str, level: Any) -> str:
    """A level of noise: found, or as it was given; empty if there is none."""
    levels = [float(np.mean(record[kind])) for record in records if record["found"] == kind]
    if not levels:
        return "" if level is None or level == "auto" else f"{kind} = {level}"  # a page is read without a level
    span = _span([f"{level:.2g}" for level in levels])
    return f"{kind} = {np.median(levels):.2g} (found{f', {span}' if ' to ' in span else ''})"


def _notes(sheets: Sequence[Sheet], count: str) -> Iterator[str]:
    """Notes on pictures with their names; one line for all that differ in numbers alone, with their ranges."""
    alike: dict[tuple[str, ...], list[tuple[str, list[str]]]] = {}
    for sheet in sheets:
        for note in sheet.record["notes"]:
            parts = _NUMBER.split(note)
            alike.setdefault(tuple(parts[::2]), []).append((sheet.name, parts))
    for notes in alike.values():
        names = [name for name, _ in notes]
        who = names[0] if len(names) == 1 else f"{len(names)} of {count}"
        which = f": {some(names)}" if 1 < len(names) < len(sheets) else ""
        yield f"{who}: {''.join(map(_span, zip(*(parts for _, parts in notes), strict=True)))}{which}"


def _span(parts: Sequence[str]) -> str:
    """What several notes say at one place: the same words, or numbers, of which the least and the largest are shown."""
    if len(set(parts)) == 1:
        return parts[0]
    numbers = sorted(parts, key=float)
    return f"{numbers[0]} to {numbers[-1]}"
