"""How a prior restores images of another size than its own."""

from __future__ import annotations

from dataclasses import dataclass

from restore.zoo import limits


@dataclass(frozen=True)
class Tiling:
    """Windows that overlap and send each other messages, as `restore.inference.tiles.exchange` derives them.

    Attributes:
        overlap: how many windows begin within the length of one, along either axis. A prior of whole objects restores
            windows that lie side by side best: one between two objects looks like neither.
        rounds: how often windows hear what others make of the pixels that they share; 0 for never. The first
            solution is of every second row and column of windows, where these hold all pixels; rounds solve others
            where in doubt.
        worth: share of their log-odds that such messages are worth.
        least: mean strength of the evidence, in log-odds per pixel. Under weaker evidence a solver may find the blank
            window alone; the first round is then solved under evidence as strong as this.
        neighbours: how strongly each pixel agrees with the four beside it, in a mean field that restores the whole
            image; 0 for windows.
    """

    overlap: int = 1
    rounds: int = 1
    worth: float = 0.15
    least: float = 1.3
    neighbours: float = 0.0

    def __post_init__(self) -> None:
        limits.check_ranges(
            self,
            overlap=(1, limits.OVERLAP),
            rounds=(0, limits.ROUNDS),
            worth=(0, 1),
            least=(0, limits.FINITE),
            neighbours=(0, limits.FINITE),
        )


# How priors restore that learn from windows of larger images.
OF_WINDOWS = Tiling(overlap=2, rounds=2)
