"""Restore what comes into folders, until stopped: `--watch`."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from restore.cli import batch
from restore.cli.options import Options, Results
from restore.console import say
from restore.errors import InputError, ModelError, PartialFailure, UsageError, option
from restore.images.outputs import images_in, is_folder, means_folder
from restore.inference.damage import Damage
from restore.inference.open import Engines
from restore.zoo import find

# Between two looks; a file that is the same in both is complete.
SECONDS = 1.0


def run(inputs: Sequence[str], damage: Damage, options: Options, results: Results, masks: str | None = None) -> None:
    """Restore every image in folders that has no result yet, and all that come, until Ctrl-C.

    An image that fails is reported, and tried again only if it changes. Raises RestoreError as `batch.run` for what is
    no fault of an image.
    """
    folders = [Path(each) for each in inputs]
    for each in folders:
        if not is_folder(each):
            raise UsageError(f"is no folder, which {option('watch')} needs; make it first", each)
    if results.overwrite:
        raise UsageError(f"{option('overwrite')} and {option('watch')} exclude each other; remove old results first")
    if results.output is not None and not means_folder(results.output):
        raise UsageError("is one file for all that comes; give a folder, ending with /", results.output)
    maps = results.uncertainty
    if maps and any(Path(maps).resolve() == each.resolve() for each in folders):
        raise UsageError("is watched, and what is written there would be restored; choose another", maps)
    if options.model != "auto":
        find(options.model)
    engines, results = Engines(options), replace(results, watch=False, skip_existing=True)
    say("restore: watching; Ctrl-C ends it")
    with contextlib.suppress(KeyboardInterrupt):
        for images in arrivals(folders):
            try:
                batch.run(images, damage, options, results, masks, engines)
            except PartialFailure:
                pass  # each has been reported
            except (InputError, ModelError) as fault:
                say(f"restore: {fault}")


def arrivals(folders: Sequence[Path]) -> Iterator[list[str]]:
    """Images that two looks found alike, look after look; each once, unless it changes."""
    done, before = dict[Path, tuple[int, int]](), dict[Path, tuple[int, int]]()
    while True:
        now = {path: state for folder in folders for path in images_in(folder) if (state := _state(path))}
        ready = [path for path, state in now.items() if before.get(path) == state != done.get(path)]
        done |= {path: now[path] for path in ready}
        if ready:
            yield [str(path) for path in ready]
        before = now
        time.sleep(SECONDS)


def _state(path: Path) -> tuple[int, int] | None:
    """What changes as a file is written; None once it is gone."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_size, found.st_mtime_ns
