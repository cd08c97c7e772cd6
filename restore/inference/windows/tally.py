"""How the windows of a large image fared, and what the user should know of it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from restore.inference.pictures import cut_to_ink, outcome
from restore.marginals import Status
from restore.zoo.description import Description

# An image is solved if all but so many of its windows are.
UNSOLVED = 0.01

# Said of an image with pixels that no window sees anything around.
BLIND = "has masked areas around which nothing is visible: the prior alone fills them"


@dataclass
class Tally:
    """Counts over the windows of an image.

    Attributes:
        windows, stopped, diverged: how many there are, and how many of them did not converge.
        iterations, residual: the most of any window.
        lost: whether a pixel has no answer.
        blind: whether a pixel lies in no window with anything visible.
        cut: whether grey levels were cut to black and white.
    """

    windows: int = 0
    stopped: int = 0
    diverged: int = 0
    iterations: int = 0
    residual: float = 0.0
    lost: bool = False
    blind: bool = False
    cut: bool = False

    def add(self, status: np.ndarray, iterations: np.ndarray, residual: np.ndarray) -> None:
        self.windows += len(status)
        self.stopped += int((status == Status.MAX_ITER).sum())
        self.diverged += int((status == Status.DIVERGED).sum())
        self.iterations = max(self.iterations, int(iterations.max()))
        self.residual = max(self.residual, float(np.max(residual, initial=0, where=np.isfinite(residual))))

    @property
    def status(self) -> Status:
        """Of the whole image: diverged if a pixel has no answer, at its limit if more than a few windows are."""
        if self.lost:
            return Status.DIVERGED
        return Status.MAX_ITER if self.stopped + self.diverged > UNSOLVED * self.windows else Status.CONVERGED

    def notes(self, about: Description) -> list[str]:
        """What the user should know, one sentence each."""
        notes = []
        if self.lost or (about.conditional and self.stopped):
            notes.append(outcome(self.status, about))
        elif self.stopped + self.diverged:
            notes.append(
                f"the solver did not converge in {self.stopped + self.diverged} of {self.windows} windows; "
                "compare with another model"
            )
        if self.blind:
            notes.append(BLIND)
        if self.cut:
            notes.append(cut_to_ink(about))
        return notes
