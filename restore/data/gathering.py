"""`gather`: from whatever holds a user's images to what a prior learns from and what it is judged by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

from numpy.typing import NDArray

from restore.data.dataset import Dataset

Fit: TypeAlias = Literal["error", "crop", "resize"]
Levels: TypeAlias = Literal["binary", "grey"]


@dataclass(frozen=True, eq=False)
class Gathered:
    """Images to learn from and images to be judged by, none of which comes from a file of the others.

    Attributes:
        training: (N, H, W), at least two.
        held_out: (M, H, W), at least one.
        levels: whether they are black and white, or grey: as detected, or as asked for.
        threshold: 0 to 254; a pixel above it is white.
        notes: a sentence for everything a user should know: files skipped, how sizes were made equal, how the files were
            split, near-duplicates across the split, which levels were found, which polarity.
    """

    training: Dataset
    held_out: Dataset
    levels: Levels
    threshold: int
    notes: tuple[str, ...] = ()


def gather(
    source: str | Path | NDArray[Any] | Sequence[NDArray[Any]],
    *,
    shape: tuple[int, int] | None = None,
    fit: Fit = "resize",
    patches: int = 0,
    levels: Literal["auto", "binary", "grey"] = "auto",
    held_out: float = 0.1,
    seed: int = 0,
    root: Path | None = None,
    max_bad: int = 0,
) -> Gathered:
    """Gather the images of a source, at one size, split by file.

    Raises:
        UsageError: a setting is out of its range.
        InputError: the source does not exist, is no such file, or is an archive that is damaged or dangerous.
        TrainingError: the data are empty, too few, unreadable beyond `max_bad`, or of sizes that `fit` does not equalise.
    """
    raise NotImplementedError
