"""The outcome of restoring a picture."""

from __future__ import annotations

from enum import IntEnum


class Status(IntEnum):
    """Outcome for one picture; `sentence` is shown to users. From `DIVERGED` on the picture is returned unchanged.

    >>> print(Status.MAX_ITER)
    max_iter
    """

    CONVERGED = 0
    MAX_ITER = 1
    DIVERGED = 2
    UNRECOGNISED = 3
    NOT_INK = 4
    TOO_NOISY = 5
    NO_GAIN = 6
    NOT_NOISE = 7
    UNSETTLED = 8
    FAINT = 9
    CLASSES = 10
    FAILED = 11

    def __str__(self) -> str:
        return self.name.lower()

    @property
    def sentence(self) -> str:
        return _SENTENCES[self]

    @property
    def refused(self) -> bool:
        """True if the picture is returned unchanged."""
        return self >= Status.DIVERGED


_SENTENCES = {
    Status.CONVERGED: "the solver converged",
    Status.MAX_ITER: "the solver stopped at its iteration limit before it converged; compare with another model",
    Status.DIVERGED: "the solver diverged (a value became infinite or NaN)",
    Status.UNRECOGNISED: "no prior recognises this picture",
    Status.NOT_INK: "it has grey tones, not only black and white",
    Status.TOO_NOISY: "it looks noisier than anything that can be told from noise",
    Status.NO_GAIN: "most of the wrong pixels would stay",
    Status.NOT_NOISE: "what would change is not spread like noise, so details would be lost",
    Status.UNSETTLED: "the solver did not settle on an answer",
    Status.FAINT: "what is darker than its paper is too faint to be ink (less than 15 % darker)",
    Status.CLASSES: "its few colours or levels name classes, which have no order",
    Status.FAILED: "restoring it failed",
}
