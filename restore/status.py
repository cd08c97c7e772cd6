"""The outcome of restoring a picture."""

from __future__ import annotations

from enum import IntEnum, StrEnum


class Outcome(StrEnum):
    """What a picture came back as.

    >>> Outcome.NOT_SURE == "not sure"
    True
    """

    RESTORED = "restored"  # something changed
    CLEAN = "clean"  # as it came: damage was looked for, and none found
    NOT_SURE = "not sure"  # as it came: what would change cannot be trusted


class Status(IntEnum):
    """How restoring a picture ended; `sentence` is shown to users. From `DIVERGED` on it comes back as it was.

    >>> print(Status.MAX_ITER)
    max_iter
    """

    CONVERGED = 0
    MAX_ITER = 1
    DIVERGED = 2
    UNRECOGNISED = 3
    NOT_INK = 4
    TOO_NOISY = 5
    NOT_NOISE = 6
    FAINT = 7
    CLASSES = 8
    FAILED = 9

    def __str__(self) -> str:
        return self.name.lower()

    @property
    def sentence(self) -> str:
        return _SENTENCES[self]

    @property
    def refused(self) -> bool:
        """True if the picture comes back as it was, as no restoration of it can be trusted."""
        return self >= Status.DIVERGED


_SENTENCES = {
    Status.CONVERGED: "the solver converged",
    Status.MAX_ITER: "the solver stopped at its iteration limit before it converged; compare with another model",
    Status.DIVERGED: "the solver diverged (a value became infinite or NaN)",
    Status.UNRECOGNISED: "no prior recognises this picture",
    Status.NOT_INK: "it has grey tones, not only black and white",
    Status.TOO_NOISY: "its noise is too strong to be told from texture",
    Status.NOT_NOISE: "what would change does not look like noise, so it is probably detail",
    Status.FAINT: "what looks like ink can hardly be told from its paper",
    Status.CLASSES: "it looks like a map of classes, not like a picture",
    Status.FAILED: "restoring it failed",
}
