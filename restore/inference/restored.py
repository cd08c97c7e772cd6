"""The answer about a picture."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import isfinite, isnan
from typing import Any

import numpy as np

from restore.channels.damage import Damage, Observed
from restore.errors import NotRestored
from restore.inference.decision.facts import Facts
from restore.inference.notebook import SHOWN, html_of, with_holes
from restore.registry import LEVELS
from restore.sizes import size_text
from restore.status import Outcome, Status

# Values differ if they are further apart than rounding to 16 bits; and rows that are worked on at a time.
UNEQUAL = 2**-16
STRIP = 256


@dataclass(frozen=True)
class Level:
    """A noise level of a picture: estimated from it, or given.

    Attributes:
        name: "p" or "sigma".
        value: the level, a number or one for each pixel.
        estimated: True if it was found in the picture.
        at_least, at_most: the lowest and the largest level that the picture does not speak against; None if that was
            not measured.

    >>> Level("p", 0.1).sentence
    'p = 0.1 was found'
    """

    name: str
    value: float | np.ndarray
    estimated: bool = True
    at_least: float | None = None
    at_most: float | None = None

    @classmethod
    def given(cls, damage: Damage) -> Level | None:
        """The level that the caller gave, the first of several; None if there is none, or only a word for one.

        >>> Level.given(Damage(0.1))
        Level(name='p', value=0.1, estimated=False, at_least=None, at_most=None)
        """
        levels = {name: getattr(damage, name) for name in LEVELS}
        numbers = ((name, level) for name, level in levels.items() if not isinstance(level, str | None))
        return next((cls(name, level, estimated=False) for name, level in numbers), None)

    @property
    def sentence(self) -> str:
        return f"{self.name} = {self.value:.3g} was found"


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Restored:
    """The answer about a picture.

    Attributes:
        estimate: the restored picture, (H, W): 0 and 1, or grey levels.
        means: probability of white, or mean grey level, of every pixel, (H, W).
        deviations: posterior standard deviation of every pixel, (H, W).
        status: how it ended, as converged also where a solver has learnt to stop; or why nobody is sure.
        outcome: "restored", "clean" or "not sure" (`restore.status.Outcome`).
        reason: why it came back as it was; empty if it was restored.
        facts: what was measured to decide that.
        model: the prior that restored it.
        engine: what computed it: "onnx", "torch", or "numpy".
        iterations: of the solver: the most of any tile.
        residual: how far means moved in the last iteration.
        level: the noise level: its name, its value, and True if it was estimated; None if there is none, as for a
            hole alone.
        changed: share of pixels that differ from the picture's; of a page that was read, those that became ink or
            paper; None for grey pictures.
        bits: how well the prior predicts pixels that it has not seen, in bits per pixel; None if that was not measured.
        notes: what the user should know, one sentence each.
        doubt: why the result may be wrong, though it was not refused; empty if nothing speaks against it.
        replaced: the pixels that the estimate replaces, boolean (H, W); None for all.
        lightened: a grey page with white paper, and ink as dark as it was; None for other pictures.
        layers: means of the hidden layers of the prior; empty after tiles, or a prior of any size.
        remedy: what to do about a picture that is "not sure"; else empty.
        observed: the picture before, with what is known of its damage.
        marks: the marks that were removed, boolean (H, W) by kind.
    """

    estimate: np.ndarray
    means: np.ndarray
    deviations: np.ndarray
    status: Status
    outcome: Outcome = Outcome.RESTORED
    reason: str = ""
    facts: Facts = field(default_factory=Facts)
    model: str
    engine: str
    iterations: int = 0
    residual: float = 0.0
    level: Level | None = None
    changed: float | None = None
    bits: float | None = None
    notes: tuple[str, ...] = ()
    doubt: str = ""
    replaced: np.ndarray | None = None
    lightened: np.ndarray | None = None
    layers: tuple[np.ndarray, ...] = ()
    remedy: str = ""
    observed: Observed | None = None
    marks: Mapping[str, np.ndarray] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"Restored({size_text(self.means.shape[:2])}, {self.outcome}, {self.status}, model={self.model!r})"

    def _repr_html_(self) -> str:
        """What a notebook shows: the picture before and after, how uncertain it is, and the notes."""
        return self.html()

    def html(self, side: int = SHOWN) -> str:
        """The picture before, after, and twice its standard deviations (white: a guess); facts and notes."""
        panels = {"after": self.picture(soft=self.lightened is not None), "uncertainty": 2 * self.deviations}
        if self.observed is not None:
            panels = {"before": with_holes(self.observed.values(), self.observed.damage.hidden), **panels}
        level = self.level
        facts = [
            self.model and f"restored with {self.model}",
            "" if level is None or np.ndim(level.value) else f"{level.name} = {level.value:.3g}",
            "" if self.changed is None else change_text(self.changed, page=not isnan(self.facts.left)),
            self.status.sentence,
        ]
        facts = [f"as it came, {self.outcome}: {self.objection}"] if self.unchanged else facts
        known = {self.status.sentence, level.sentence if level is not None and level.estimated else ""}
        notes = [note for note in self.notes if note not in known]
        return html_of(panels, ", ".join(filter(None, facts)), notes, side)

    def picture(self, *, soft: bool) -> np.ndarray:
        """The picture to write, (H, W): the estimate, or if `soft` the grey levels of a page, or means."""
        if not soft or self.unchanged:
            return self.estimate
        return self.means if self.lightened is None else self.lightened

    @property
    def unchanged(self) -> bool:
        """True if the picture comes back as it was."""
        return self.outcome is not Outcome.RESTORED

    @property
    def not_sure(self) -> bool:
        """True if it comes back as it was because no restoration can be trusted."""
        return self.outcome is Outcome.NOT_SURE

    def require(self, name: str) -> None:
        """Raise NotRestored, which begins with a name, if no restoration of the picture can be trusted."""
        if self.not_sure:
            raise NotRestored(self.objection, name)

    def record(self, damage: Damage) -> dict[str, Any]:
        """What became of a picture with this damage, as values that JSON can hold; its notes are without the level."""
        level = self.level if self.level and self.level.estimated else None
        levels: dict[str, Any] = {} if level is None else {level.name: level.value}
        known = replace(damage, **levels)
        return {
            "model": self.model or None,
            "engine": self.engine or None,
            "outcome": str(self.outcome),
            "status": str(self.status),
            "reason": self.reason or None,
            "remedy": self.remedy or None,
            "iterations": self.iterations,
            "residual": _finite(self.residual),
            **{name: getattr(known, name) for name in LEVELS},
            "found": None if level is None else level.name,
            "bits": self.bits,
            "changed": self.changed,
            "facts": {name: _finite(value) for name, value in self.facts.measured.items()},
            "notes": [note for note in self.notes if level is None or note != level.sentence],
        }

    @property
    def objection(self) -> str:
        """Why the picture came back as it was, and what to do about it, in one sentence."""
        return "; ".join(filter(None, (self.reason, self.remedy)))


def _finite(value: float) -> float | None:
    """A number that JSON can hold."""
    return value if isfinite(value) else None


def level_of_blank(picture: Observed) -> Any:
    """The value that all visible pixels of a picture share, a number or a colour; None if they differ, or none is."""
    first = None
    visible = picture.visible
    for top in range(0, len(visible), STRIP):
        rows = slice(top, top + STRIP)
        levels = np.asarray(picture.pixels[rows, :])[visible[rows]]
        first = levels[0] if first is None and len(levels) else first
        if (levels != first).any():
            return None
    return first


def blank(picture: Observed, value: Any) -> Restored:
    """The answer about a picture whose visible pixels share a value: holes have it, too."""
    pixels = np.broadcast_to(value, picture.shape).copy()
    hole = ~picture.visible
    unknown = picture.damage.unknown
    reason = "all that is visible is alike"
    filled = share_changed(picture, pixels, hole) > 0
    return Restored(
        **_as_it_came(pixels, hole),
        status=Status.CONVERGED,
        outcome=Outcome.RESTORED if filled else Outcome.CLEAN,
        reason="" if filled else reason,
        notes=(reason,) if filled else (),
        model="independent pixels",
        engine="numpy",
        level=Level(unknown, 0.0) if unknown else None,
        changed=float(np.mean(hole)) if filled else 0.0,
        observed=picture,
    )


def as_it_came(picture: Observed, reason: str) -> Restored:
    """The answer that a picture is clean, as nothing was found in it."""
    return Restored(
        **_as_it_came(picture.values(), np.zeros(picture.shape[:2], bool)),
        status=Status.CONVERGED,
        outcome=Outcome.CLEAN,
        reason=reason,
        model="",
        engine="",
        changed=0.0,
        observed=picture,
    )


def not_sure(picture: Observed, why: Status, remedy: str, facts: Facts, **others: Any) -> Restored:
    """The answer that a picture comes back as it was, as no restoration can be trusted."""
    return Restored(
        **_as_it_came(picture.values(), np.zeros(picture.shape[:2], bool)),
        status=why,
        outcome=Outcome.NOT_SURE,
        reason=why.sentence,
        remedy=remedy,
        facts=facts,
        changed=0.0,
        observed=picture,
        **others,
    )


def _as_it_came(pixels: np.ndarray, replaced: np.ndarray) -> dict[str, Any]:
    """The arrays of an answer that no solver was asked for."""
    return {"estimate": pixels, "means": pixels, "deviations": np.zeros(pixels.shape), "replaced": replaced}


def change_text(share: float, *, page: bool) -> str:
    """How much of a picture changed, in words: of a page that was read, all of which is painted anew, what it shows."""
    return f"{share:.2%} of pixels changed{' between ink and paper' if page else ''}"


def share_changed(picture: Observed, estimate: np.ndarray, replaced: np.ndarray | None) -> float:
    """The share of pixels whose value differs from the picture's, of those that are replaced."""
    count = 0
    for top in range(0, estimate.shape[0], STRIP):
        rows = slice(top, top + STRIP)
        differs = np.abs(estimate[rows] - np.asarray(picture.pixels[rows, :])) > UNEQUAL
        differs = differs.any(-1) if differs.ndim > 2 else differs
        count += int(np.sum(differs if replaced is None else differs & replaced[rows]))
    return count / max(1, estimate.shape[0] * estimate.shape[1])
