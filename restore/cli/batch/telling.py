"""What commands on many images report: faults and notes on stderr, JSON on stdout."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from restore.console import say
from restore.errors import PartialFailure, RestoreError, shown

if TYPE_CHECKING:
    from restore.cli.batch.items import Report


@dataclass
class Failures:
    """Faults of images: if there is one image, its fault ends the command; of many, each is reported and counted."""

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
            say(f"restore: {fault}")

    def verdict(self, total: int) -> None:
        """Raise PartialFailure if any of the images failed."""
        if self.found:
            raise PartialFailure(f"{self.found} of {total} images failed; the messages above say why")


@dataclass
class Notes:
    """Notes about images on stderr: each after its image's name, except that notes on many images are counted.

    Attributes:
        quiet: report nothing.
        many: there are several images.
        counted: how many images each common note applies to.
        levels: the levels of noise that were chosen, by name.
        largest: how many of them are the largest that was tried, so that larger ones may be more probable.
    """

    quiet: bool
    many: bool
    counted: Counter[str] = field(default_factory=Counter)
    levels: dict[str, list[float]] = field(default_factory=dict)
    largest: int = 0

    def tell(self, report: Report) -> None:
        """Report the notes on an image; among many images, common notes are counted and its level is kept."""
        notes, common, level = report.record["notes"], report.common, report.level
        if self.many:
            self.counted.update(note for note in notes if note in common)
            if level is not None:
                for name, value in level.values:
                    self.levels.setdefault(name, []).append(value)
                self.largest += level.largest
                common = (*common, level.sentence)
            notes = [note for note in notes if note not in common]
        for note in () if self.quiet else notes:
            say(f"{shown(report.name)}: {note}")

    def add(self, note: str) -> None:
        """Report a note on the whole."""
        if not self.quiet:
            say(note)

    def conclude(self, total: int) -> None:
        """Report the common notes, each with its count, and the range of the levels."""
        if self.quiet:
            return
        for name, values in self.levels.items():
            middle, low, high = (f"{value:.3g}" for value in (median(values), min(values), max(values)))
            end = f", for {self.largest} of them the largest that was tried" if self.largest else ""
            say(f"{len(values)} of {total} images: {name} = {middle} was found (the median; from {low} to {high}{end})")
        for note, count in self.counted.items():
            say(f"{count} of {total} images: {note}")


def print_json(record: dict[str, Any]) -> None:
    print(json.dumps(record), flush=True)
