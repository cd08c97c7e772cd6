"""What a caller knows of the damage of a picture, checked once; and a picture with it."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np

from restore.channels import Channel, channel_of
from restore.channels.bit_flip import CERTAIN
from restore.channels.levels import Scale
from restore.channels.registry import scale_of
from restore.channels.specks import DENSEST
from restore.channels.values import LARGEST
from restore.errors import RestoreWarning, UsageError, option, shown
from restore.inference.options import LEVELS
from restore.zoo.description import Description

Auto: TypeAlias = Literal["auto"]
Scanned: TypeAlias = Literal["scan"]

# A noise level: one number, an array that broadcasts with the pictures, a word, or None for no such noise.
Level: TypeAlias = "float | np.ndarray | Auto | Scanned | None"


@dataclass(frozen=True, eq=False)
class Damage:
    """The damage of one picture (H, W), or of a batch (N, H, W); `Damage.of` checks what a caller gives.

    Attributes:
        p: flip probability of visible pixels: a number, or one per pixel. For priors of grey images, the
            probability of salt or pepper. "auto": to be found; "scan": as each grey level says; None: no flips, or
            those that a conditional prior has learnt.
        sigma: standard deviation of Gaussian noise, black being 0 and white 1; "auto": to be found; None: no noise.
        specks: share of pixels under specks (`restore.channels.specks`), alone; "auto": to be found; None: no specks.
        hidden: pixels to fill, boolean, in the shape of the pictures; None for none.
    """

    p: Level = None
    sigma: Level = None
    specks: Level = None
    hidden: np.ndarray | None = None

    @classmethod
    def of(cls, p: Any = None, sigma: Any = None, **others: Any) -> Damage:
        """Check the noise levels that a caller gives, each a name in `LEVELS`; numbers may be texts, in per cent too.

        Raises:
            UsageError: if one is out of range, or several are "auto".

        >>> Damage.of("10%").p, Damage.of(sigma="auto").unknown
        (0.1, 'sigma')
        """
        found = {name: _parsed(name, level) for name, level in {"p": p, "sigma": sigma, **others}.items()}
        unknown = [option(name) for name, level in found.items() if isinstance(level, str) and level == "auto"]
        if len(unknown) > 1:
            raise UsageError(f"{' and '.join(unknown)} cannot both be auto; give a number for one of them")
        if found.get("specks") is not None and sum(level is not None for level in found.values()) > 1:
            raise UsageError(
                "are removed by themselves; restore the result once more for other noise", option("specks")
            )
        return cls(**{name: _checked(name, level) for name, level in found.items()})

    def check_for(self, header: Description) -> None:
        """Refuse damage that a prior does not know.

        Raises:
            UsageError: if damage is given to a conditional prior, or none to another one; Gaussian noise or a scan to
                one of the wrong kind.
        """
        header.check_told(not (self.p is None and self.specks is None), self.of_grey, self.hidden is not None)
        if self.specks is not None and (header.grey or self.hidden is not None):
            raise UsageError("are removed from pictures in black and white, without a mask", option("specks"))
        if not header.grey:
            return
        name = shown(header.name)
        if self.scanned:
            what = option("p", "scan")
            raise UsageError(f"{name} restores grey images, and {what} is for black and white ones; give a number")
        if self.p is not None and "p" not in header.inputs:
            remedy = f"give {option('sigma')} in place of {option('p')}"
            raise UsageError(f"{name} knows Gaussian noise and holes, no salt or pepper; {remedy}")

    @property
    def unknown(self) -> str | None:
        """The level that is to be found."""
        levels = {name: getattr(self, name) for name in LEVELS}
        return next((name for name, level in levels.items() if isinstance(level, str) and level == "auto"), None)

    @property
    def scanned(self) -> bool:
        """True if the grey level of each pixel says how certain it is."""
        return isinstance(self.p, str) and self.p == "scan"

    @property
    def touched(self) -> bool:
        """True if visible pixels are damaged too."""
        return any(getattr(self, name) is not None for name in LEVELS)

    @property
    def of_grey(self) -> bool:
        """True if there is damage that only grey pictures have."""
        return self.sigma is not None

    def at(self, level: Any) -> Damage:
        """The same damage with a value for the unknown level."""
        return replace(self, **{self.unknown: level}) if self.unknown else self

    def mapped(self, change: Callable[[np.ndarray], np.ndarray]) -> Damage:
        """The same damage after a change of all its arrays."""
        every = {each.name: getattr(self, each.name) for each in fields(self)}
        return Damage(**{name: change(of) if isinstance(of, np.ndarray) else of for name, of in every.items()})

    @classmethod
    def stacked(cls, each: Sequence[Damage], shape: tuple[int, ...]) -> Damage:
        """The damage of a batch of pictures of one shape; a number that all of them share stays a number."""

        def together(levels: Sequence[Any], outside: float | bool = 0.0) -> Any:
            if all(level is None for level in levels):
                return None
            known = [outside if level is None else level for level in levels]
            if not any(isinstance(level, np.ndarray) for level in known):
                return known[0] if len(set(known)) == 1 else np.array(known, np.float64)[:, None, None]
            return np.stack([np.broadcast_to(level, shape) for level in known])

        levels = {name: together([getattr(one, name) for one in each]) for name in LEVELS}
        return cls(**levels, hidden=together([one.hidden for one in each], outside=False))

    def known(self, name: str) -> Any:
        """A level that is known: one number, or one per pixel; 0 for no such noise."""
        level: Level = getattr(self, name)
        assert not isinstance(level, str)
        return 0.0 if level is None else level

    def channel(self, grey: bool) -> Channel:
        """The channel of binary or grey pictures (N, D) with this damage."""
        levels = {name: _flat(getattr(self, name)) for name in LEVELS if grey or name == "p"}
        hidden = None if self.hidden is None else _flat(self.hidden)
        return channel_of({**levels, "hidden": hidden}, grey=grey)

    def log_odds(self, white: np.ndarray) -> np.ndarray:
        """The evidence for white of every pixel of black and white pictures (N, H, W) of 0 and 1, float32."""
        p = np.asarray(self.known("p"), np.float64)
        with np.errstate(divide="ignore"):
            strength = (np.log1p(-p) - np.log(p)).clip(-CERTAIN, CERTAIN)
        evidence = (2 * white - 1) * strength
        return (evidence if self.hidden is None else np.where(self.hidden, 0, evidence)).astype(np.float32)

    def log_predictive(self, seen: np.ndarray, means: np.ndarray, variances: np.ndarray, *, grey: bool) -> np.ndarray:
        """log p of every pixel of pictures, given its predicted mean and variance before they were damaged."""
        levels = {name: self.known(name) for name in LEVELS if grey or name == "p"}
        channel: Any = channel_of(levels, grey=grey)  # of visible pixels, which all say it
        found: np.ndarray = channel.log_predictive(seen, means, variances)
        return found

    def scale(self, *, grey: bool) -> Scale:
        """The levels to compare, of the unknown one or of p."""
        return scale_of(self.unknown or "p", grey=grey)


class Pixels(Protocol):
    """Values (H, W) or (H, W, 3): an array, or what gives a part of one where it is asked for."""

    @property
    def shape(self) -> tuple[int, ...]: ...

    def __getitem__(self, where: tuple[slice, slice], /) -> np.ndarray: ...


@dataclass(frozen=True, eq=False)
class Observed:
    """A damaged picture.

    Attributes:
        pixels: grey values (H, W), or colours (H, W, 3), in [0, 1] except with Gaussian noise; an array, or what gives
            parts of one where they are asked for.
        damage: what is known of its damage.
        coloured: True if these are the luminance of colours.
    """

    pixels: Pixels
    damage: Damage
    coloured: bool = False

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.pixels.shape)

    @property
    def filled_only(self) -> bool:
        """True if only hidden pixels are to change."""
        return self.damage.hidden is not None and not self.damage.touched

    @property
    def visible(self) -> np.ndarray:
        """Pixels that are not to be filled, boolean (H, W)."""
        hidden = self.damage.hidden
        return np.ones(self.shape[:2], bool) if hidden is None else ~hidden

    def part(self, rows: slice, columns: slice) -> Observed:
        """A part of the picture, in memory."""
        where = (rows, columns)
        return Observed(np.asarray(self.pixels[where]), self.damage.mapped(lambda values: values[where]))

    def values(self) -> np.ndarray:
        """All its pixels, in memory."""
        return np.asarray(self.pixels[:, :])


def _flat(values: Any) -> Any:
    """What broadcasts with pictures (N, H, W) in a shape that broadcasts with (N, D); 0 for None."""
    whole = np.array(0.0 if values is None else values, ndmin=3, copy=None)
    return whole.reshape(len(whole), -1)


def _refused(name: str, level: Any) -> UsageError:
    return UsageError(f"{option(name)} is {LEVELS[name].words}, not {shown(str(level)) or 'nothing'}")


def _parsed(name: str, level: Any) -> Any:
    """A level, or the number in a text such as 0.1 or 10%."""
    if not isinstance(level, str) or level in LEVELS[name].metavar.split("|"):
        return level
    try:
        return float(level.removesuffix("%")) / (100 if level.endswith("%") else 1)
    except ValueError:
        raise _refused(name, level) from None


def _checked(name: str, level: Any) -> Any:
    return level if level is None or isinstance(level, str) else _CHECKS[name](level)


def _probabilities(p: Any) -> float | np.ndarray:
    """Check flip probabilities; raise UsageError if one is not a probability."""
    try:
        values = np.asarray(p, np.float64)
    except (TypeError, ValueError, OverflowError, RuntimeError) as fault:  # torch raises the last one
        raise _refused("p", p) from fault
    # Written so that NaN fails too.
    wrong = values[~((values >= 0) & (values <= 1))]
    if wrong.size or np.asarray(p).dtype == bool:
        raise _refused("p", wrong[0] if wrong.size else p)
    if values.ndim == 0 and 0.5 < values < 1:
        warnings.warn(
            f"p = {values:g} says that most pixels are inverted, and so is the result", RestoreWarning, stacklevel=6
        )
    return values if values.ndim else values.item()


def _share(specks: Any) -> float:
    """Check the share of pixels under specks; raise UsageError if it is none."""
    value = specks.item() if isinstance(specks, np.floating | np.integer) else specks
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= DENSEST:
        raise _refused("specks", specks)
    return float(value)


def _deviation(sigma: Any) -> float:
    """Check a standard deviation; raise UsageError if it is not a number above 0."""
    # Numpy's numbers are accepted, but would compare with the largest value of their own type.
    value = sigma.item() if isinstance(sigma, np.floating | np.integer) else sigma
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= LARGEST:
        raise _refused("sigma", sigma)
    if value > 1:
        meant = f"; of 255 levels it is {value / 255:.2g}" if value < 255 else ""
        warnings.warn(
            f"sigma = {value:g} is more than from black to white, which is 1{meant}", RestoreWarning, stacklevel=6
        )
    return float(value)


# What makes a number or an array of each level, and refuses one that is out of range; the words are in `LEVELS`.
_CHECKS = {"p": _probabilities, "sigma": _deviation, "specks": _share}
