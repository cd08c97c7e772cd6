"""What a caller knows of the damage of a picture, checked once; and a picture with it."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np

from restore.channels import Channel, Told, channel_of
from restore.channels.values import LARGEST
from restore.errors import RestoreWarning, UsageError, option, shown
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
        hidden: pixels to fill, boolean, in the shape of the pictures; None for none.
    """

    p: Level = None
    sigma: Level = None
    hidden: np.ndarray | None = None

    @classmethod
    def of(cls, p: Any = None, sigma: Any = None) -> Damage:
        """Check the noise levels that a caller gives; numbers may be texts, in per cent too.

        Raises:
            UsageError: if p is no probability, sigma no standard deviation, or both are "auto".

        >>> Damage.of("10%").p, Damage.of(sigma="auto").unknown
        (0.1, 'sigma')
        """
        p, sigma = _parsed("p", p), _parsed("sigma", sigma)
        if isinstance(p, str) and p == sigma:
            raise UsageError(f"{option('p')} and {option('sigma')} cannot both be auto; give a number for one of them")
        known = p if p is None or isinstance(p, str) else _probabilities(p)
        if isinstance(known, float) and 0.5 < known < 1:
            warnings.warn(
                f"p = {known:g} says that most pixels are inverted, and so is the result", RestoreWarning, stacklevel=4
            )
        return cls(known, sigma if sigma is None or isinstance(sigma, str) else _deviation(sigma))  # type: ignore[arg-type]

    def check_for(self, header: Description) -> None:
        """Refuse damage that a prior does not know.

        Raises:
            UsageError: if damage is given to a conditional prior, or none to another one; Gaussian noise or a scan to
                one of the wrong kind.
        """
        header.check_told(self.p is not None, self.sigma is not None, self.hidden is not None)
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
    def unknown(self) -> Literal["p", "sigma"] | None:
        """The level that is to be found."""
        if isinstance(self.p, str) and self.p == "auto":
            return "p"
        return "sigma" if isinstance(self.sigma, str) else None

    @property
    def scanned(self) -> bool:
        """True if the grey level of each pixel says how certain it is."""
        return isinstance(self.p, str) and self.p == "scan"

    @property
    def touched(self) -> bool:
        """True if visible pixels are damaged too."""
        return self.p is not None or self.sigma is not None

    def at(self, level: Any) -> Damage:
        """The same damage with a value for the unknown level."""
        return replace(self, **{self.unknown: level}) if self.unknown else self

    def mapped(self, change: Callable[[np.ndarray], np.ndarray]) -> Damage:
        """The same damage after a change of all its arrays."""
        levels: tuple[Any, ...] = (self.p, self.sigma, self.hidden)
        return Damage(*(change(level) if isinstance(level, np.ndarray) else level for level in levels))

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

        return cls(
            together([one.p for one in each]),
            together([one.sigma for one in each]),
            together([one.hidden for one in each], outside=False),
        )

    def known(self, name: Literal["p", "sigma"]) -> float | np.ndarray:
        """A level that is known: one number, or one per pixel; 0 for no such noise."""
        level: Level = getattr(self, name)
        assert not isinstance(level, str)
        return 0.0 if level is None else level

    def channel(self, grey: bool) -> Channel:
        """The channel of binary or grey pictures (N, D) with this damage."""
        sigma = _flat(self.sigma) if grey else None
        return channel_of(Told(_flat(self.p), sigma, None if self.hidden is None else _flat(self.hidden)), grey=grey)

    @classmethod
    def told(cls, channel: Channel, image_shape: tuple[int, int]) -> Damage:
        """The damage of one picture (1, D) that went through a channel."""

        def level(values: Any) -> Any:
            if values is None:
                return None
            found = np.asarray(values, np.float64)
            return found.reshape(image_shape) if found.size > 1 else float(found)

        p, sigma, hidden = channel.told()
        return cls(level(p), level(sigma), None if hidden is None else np.asarray(hidden).reshape(image_shape))


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
    """

    pixels: Pixels
    damage: Damage

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.pixels.shape)

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


# What the levels may be, in words.
_KINDS = {
    "p": "a flip probability in [0, 1] such as 0.1 or 10%, auto or scan",
    "sigma": "a standard deviation, a finite number above 0, or auto",
}


def _refused(name: str, level: Any) -> UsageError:
    return UsageError(f"{option(name)} is {_KINDS[name]}, not {shown(str(level)) or 'nothing'}")


def _parsed(name: str, level: Any) -> Any:
    """A level, or the number in a text such as 0.1 or 10%."""
    if not isinstance(level, str) or level == "auto" or (name, level) == ("p", "scan"):
        return level
    try:
        return float(level.removesuffix("%")) / (100 if level.endswith("%") else 1)
    except ValueError:
        raise _refused(name, level) from None


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
    return values if values.ndim else values.item()


def _deviation(sigma: Any) -> float:
    """Check a standard deviation; raise UsageError if it is not a number above 0."""
    # Numpy's numbers are accepted, but would compare with the largest value of their own type.
    value = sigma.item() if isinstance(sigma, np.floating | np.integer) else sigma
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= LARGEST:
        raise _refused("sigma", sigma)
    if value > 1:
        meant = f"; of 255 levels it is {value / 255:.2g}" if value < 255 else ""
        warnings.warn(
            f"sigma = {value:g} is more than from black to white, which is 1{meant}", RestoreWarning, stacklevel=5
        )
    return float(value)
