"""Reports on files: notes and faults on stderr, and JSON on stdout."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from restore import signals
from restore.console import say
from restore.errors import PartialFailure, RestoreError, shown, unforeseen

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
