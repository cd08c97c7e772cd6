"""What the stages of a batch hand on, and its record for --json."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from restore.cli.batch.jobs import Job
from restore.cli.batch.manifest import Entry, Stamp
from restore.errors import RestoreError, shown
from restore.images import Mask, Picture
from restore.inference.damage import Damage
from restore.inference.pictures import ChosenLevel, PictureEngine, Restored, outcome
from restore.inference.scans.reading import Scan
from restore.marginals import Marginals

# Said of a page that is not restored while others are.
KEPT = "nothing explains this page, which is left as it is"


@dataclass(frozen=True, eq=False)
class Loaded:
    """A job with its picture in memory, and the state of its files when they were read."""

    job: Job
    picture: Picture
    mask: Mask | None
    stamps: dict[str, Stamp]
    scan: Scan | None = None

    @property
    def pixels(self) -> np.ndarray:
        """What is restored: the grey values of the picture, or what its scan shows."""
        return self.picture.pixels if self.scan is None else self.scan.pixels

    def damage(self, told: Damage) -> Damage:
        """What is known of its damage, with its mask, where `told` is what the user said."""
        known = told if self.scan is None else self.scan.damage
        return known.covering(None if self.mask is None else [self.mask.hidden])


@dataclass(frozen=True, eq=False)
class Answer:
    """What became of a picture.

    Attributes:
        engines: what restored it.
        marginals, row: its own are in this row of the marginals.
        others: priors under which it is less probable.
    """

    engines: tuple[PictureEngine, ...]
    restored: Restored
    marginals: Marginals
    row: int
    others: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Solved:
    """A picture restored by the prior under which it is most probable.

    Attributes:
        result: the restoration.
        engines, models: what restored it, and the names or folders of these priors.
        levels: the damage that was assumed, for --json.
        notes: what the user should know about the choice of prior.
        seconds: time it took.
    """

    loaded: Loaded
    result: Restored
    engines: tuple[PictureEngine, ...]
    models: tuple[str, ...]
    levels: dict[str, Any]
    notes: tuple[str, ...]
    seconds: float

    @property
    def job(self) -> Job:
        return self.loaded.job

    @property
    def engine(self) -> PictureEngine:
        """What restored it, or most of it."""
        return self.engines[0]


@dataclass(frozen=True)
class Report:
    """What is reported about a restored image.

    Attributes:
        name: what the image is called.
        record: its record for --json.
        common: the notes that may apply to many images.
        level: the level of noise chosen for it; None if it was given.
    """

    name: str
    record: dict[str, Any]
    common: tuple[str, ...]
    level: ChosenLevel | None


@dataclass(frozen=True)
class Made:
    """A restored image, or all pages of a file, before it is written.

    Attributes:
        entry: the contents of its files, and what they were made from.
        reports: what is reported about each page.
    """

    job: Job
    entry: Entry
    reports: tuple[Report, ...]


@dataclass(frozen=True)
class Failed:
    """An image that could not be restored.

    Attributes:
        kept: a page of several, as it came, if it is only that nothing explains it; else None.
    """

    job: Job
    fault: RestoreError
    kept: Made | None = None


def record_of(item: Solved, notes: list[str]) -> dict[str, Any]:
    """The record of a restored image for --json."""
    job, about, result = item.job, item.engine.description, item.result
    return {
        **_files(job),
        "model": ", ".join(engine.description.name for engine in item.engines),
        "engine": item.engine.name,
        "solver": about.inference.solver,
        "learnt": about.task or None,
        "iterations": result.iterations,
        "converged": result.status == 0,
        "status": outcome(result.status, about),
        "residual": result.residual,
        "changed": _changed(item),
        "seconds": item.seconds,
        "notes": notes,
        **item.levels,
    }


def record_of_kept(job: Job) -> dict[str, Any]:
    """The record of a page that was left as it is."""
    return {**_files(job), "model": None, "changed": 0.0, "notes": [KEPT]}


def _files(job: Job) -> dict[str, Any]:
    page = None if job.page is None else job.page + 1
    return {"input": shown(job.source), "output": shown(job.target), "page": page}


def levels_of(damage: Damage, item: Loaded, found: Marginals, index: int) -> dict[str, Any]:
    """The damage that was assumed, and the levels it was chosen from, for --json."""
    mask = None if item.job.mask is None else shown(str(item.job.mask))
    noise = found.noise
    if noise is None:
        return {"channel": {**damage.levels(), "mask": mask}, "levels": None}
    told = {**damage.chosen(noise, index).levels(), "mask": mask}
    evidence = [value if math.isfinite(value) else None for value in noise.evidence[index].tolist()]
    if evidence.count(None) == len(evidence):
        # Counted, or predicted; no evidence was asked for.
        return {"channel": told, "levels": None}
    converged = noise.converged[index].tolist()
    return {
        "channel": told,
        "levels": {"tried": noise.tried.tolist(), "evidence": evidence, "converged": converged},
    }


def _changed(item: Solved) -> float | None:
    """The share of pixels that have the other colour now, by themselves black or white; None for grey images."""
    about = item.engine.description
    if about.grey:
        return None
    changed = about.as_known(item.loaded.pixels) != item.result.estimate
    return float(np.mean(changed if item.result.replaced is None else changed & item.result.replaced))
