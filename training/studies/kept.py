"""What a run of training has kept of its epochs."""

from __future__ import annotations

from pathlib import Path

from restore.learning.run.folder import epoch_records


def epoch_seconds(folder: Path) -> list[float]:
    """Time used by a run at the end of each epoch, in all stages and leases."""
    return [record["seconds"] for record in epoch_records(folder)]


def kept_epochs(folder: Path) -> dict[int, Path]:
    """The priors that a run has kept, by epoch."""
    return {int(kept.name): kept for kept in sorted((folder / "epochs").glob("[0-9][0-9][0-9][0-9]"))}
