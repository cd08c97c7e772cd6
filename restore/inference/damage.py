"""The damage of images as the caller knows it: checked once, where it is given, and passed whole to the channel."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from restore.channels import (
    AsymmetricFlip,
    Channel,
    Told,
    bit_flip,
    channel_of,
    gaussian_noise,
    salt_and_pepper,
)
from restore.channels.levels import Scale
from restore.channels.values import LARGEST
from restore.errors import UsageError, shown
from restore.marginals import NoiseLevel
from restore.zoo.description import Description

# Engines take noise in single precision. A value outside its range becomes the nearest inside (at most `LARGEST`).
SMALLEST = float(np.finfo(np.float32).tiny)

# A level of noise that is to be chosen by its evidence; and flip probabilities that grey levels are to give.
Auto: TypeAlias = Literal["auto"]
Scanned: TypeAlias = Literal["scan"]

# A level as a caller may give it: one number, one per pixel, a word, or None for no such noise.
Level: TypeAlias = "float | np.ndarray | Auto | Scanned | None"


class Rates(NamedTuple):
    """Flip probabilities that differ by colour: a white pixel turns black, and a black one white.

    They are numbers, or arrays (N, 1, 1) of one for each image.
    """

    white: Any
    black: Any

    @classmethod
    def each(cls, rates: np.ndarray) -> float | np.ndarray | Rates:
        """p for images whose rates of white and black are (N, 2), or (2,) for one image: a single one if both agree.

        >>> Rates.each(np.array([0.1, 0.1])), Rates.each(np.array([0.02, 0.2]))
        (0.1, Rates(white=0.02, black=0.2))
        """
        if rates.ndim == 1:
            white, black = rates.tolist()
            return white if white == black else cls(white, black)
        white, black = (part[:, None, None] for part in rates.T)
        return white if (white == black).all() else cls(white, black)


@dataclass(frozen=True, eq=False)
class Damage:
    """What is known of the damage of images; `Damage.of` checks it.

    Attributes:
        p: flip probability of the visible pixels: one for all, per pixel (H, W), per image (N, 1, 1), or one each for
            white and black pixels. For a prior of grey images, the probability of salt or pepper. "auto" to choose it
            for each image, "scan" for what the grey level of each pixel says (`restore.inference.scans`); None for no
            flips, or for a prior that has learnt the damage.
        sigma: standard deviation of Gaussian noise, for priors of grey images: one for all or per image (N, 1, 1);
            "auto" to choose it; None for no noise.
        hidden: the pixels to fill: one boolean (H, W) per image, or all as (N, H, W); None for none.
    """

    p: Level | Rates = None
    sigma: Level = None
    hidden: Sequence[np.ndarray] | np.ndarray | None = None

    @classmethod
    def of(cls, p: Any = None, sigma: Any = None, hidden: Sequence[np.ndarray] | np.ndarray | None = None) -> Damage:
        """Check the damage that a caller gives to `restore.denoise` or `restore.complete`.

        Raises:
            UsageError: if a text is no such word, p and sigma are both "auto", p is not a probability, or sigma not a
                standard deviation.
        """
        if isinstance(p, str) and p not in ("auto", "scan"):
            raise UsageError(f"p is a flip probability in [0, 1], auto or scan, not {shown(p)}")
        if isinstance(p, str) and isinstance(sigma, str) and p == sigma:
            raise UsageError("p and sigma cannot both be auto; give a number for one of them, or leave it out")
        told = p if p is None or isinstance(p, str) else _probabilities(p)
        if isinstance(told, float) and 0.5 < told < 1:
            warnings.warn(f"p = {told:g} says that most pixels are inverted, and so is the result", stacklevel=4)
        known = sigma is None or (isinstance(sigma, str) and sigma == "auto")
        return cls(told, sigma if known else _deviation(sigma), hidden)  # type: ignore[arg-type]

    def assumed(self, about: Description | None, *, mask: bool = False) -> Damage:
        """The same damage; if the caller described none, damage whose level is to be chosen by its evidence.

        Args:
            about: the prior; None if it is to be chosen, among those of binary images.
            mask: whether pixels are to be filled; all others are then known.
        """
        if self.touched or mask or (about is not None and about.conditional):
            return self
        return replace(self, sigma="auto") if about is not None and about.grey else replace(self, p="auto")

    def keeps_colours(self, *, mask: bool) -> bool:
        """Whether images may be photographs in colour: under Gaussian noise, or with nothing but holes to fill."""
        return self.sigma is not None or (mask and self.p is None)

    def check_for(self, about: Description) -> None:
        """Refuse damage that does not fit a prior.

        Raises:
            UsageError: if p has one value per pixel and another size than the prior; if white and black pixels of grey
                images have different rates; if damage is given to a conditional prior, none to another one, or Gaussian
                noise to a binary one.
        """
        self.check_kind(about, mask=self.hidden is not None)
        if isinstance(self.p, np.ndarray) and self.p.shape != about.image_shape:
            raise UsageError(
                f"p has shape {self.p.shape}; give one number, or one per pixel of the prior: {about.image_shape}"
            )

    def check_kind(self, about: Description, mask: bool) -> None:
        """As `check_for`, as far as the kind of prior decides; works before masks are read (`mask`: there are any)."""
        about.check_told(self.p is not None, self.sigma is not None, mask)
        if about.grey and self.scanned:
            raise UsageError(
                f"{shown(about.name)} knows grey images, and --p scan reads black and white from grey levels; name a "
                "prior of black and white ones"
            )
        if about.mixture and self.p is not None:
            raise UsageError(
                f"{shown(about.name)} knows Gaussian noise and holes, no salt or pepper; give --sigma in place of --p"
            )
        if about.grey and isinstance(self.p, Rates):
            raise UsageError(
                f"{shown(about.name)} knows grey images, of which --p is one probability, that of salt or pepper; "
                "rates of white and of black pixels are for black and white ones"
            )

    # ------------------------------------------------------------------------------------------------ levels to choose

    @property
    def unknown(self) -> Literal["p", "sigma"] | None:
        """The level to choose."""
        return "p" if self.p_is("auto") else "sigma" if isinstance(self.sigma, str) else None

    @property
    def scanned(self) -> bool:
        """Whether grey levels are to say how certain each pixel is."""
        return self.p_is("scan")

    def p_is(self, word: str) -> bool:
        return isinstance(self.p, str) and self.p == word

    def scale(self, about: Description) -> Scale:
        """The levels to try for the unknown one."""
        if self.unknown == "sigma":
            return gaussian_noise.LEVELS
        return salt_and_pepper.LEVELS if about.grey else bit_flip.LEVELS

    def at(self, levels: float | np.ndarray) -> Damage:
        """The same damage with `levels` in place of the unknown one: one for all, or one per image (N,)."""
        told = levels[:, None, None] if isinstance(levels, np.ndarray) else levels
        return replace(self, p=told) if self.unknown == "p" else replace(self, sigma=told) if self.unknown else self

    def chosen(self, noise: NoiseLevel, index: int | None = None) -> Damage:
        """The same damage with what was chosen in place of the unknown level, for all images or for one of them."""
        if noise.rates is not None:
            return replace(self, p=Rates.each(noise.rates if index is None else noise.rates[index]))
        return self.at(noise.chosen if index is None else float(noise.chosen[index]))

    @property
    def largest_sigma(self) -> float:
        """The largest standard deviation that the noise can have."""
        if isinstance(self.sigma, str):
            return float(gaussian_noise.LEVELS.levels[-1])
        return 0.0 if self.sigma is None else float(np.max(self.sigma))

    def levels(self) -> dict[str, Any]:
        """The levels as JSON writes them."""
        return {"p": list(self.p) if isinstance(self.p, Rates) else self.p, "sigma": self.sigma}

    # ------------------------------------------------------------------------------------------------- changed copies

    @property
    def touched(self) -> bool:
        """Whether visible pixels are damaged too."""
        return self.p is not None or self.sigma is not None

    def covering(self, hidden: Sequence[np.ndarray] | np.ndarray | None) -> Damage:
        """The same damage with other pixels to fill."""
        return replace(self, hidden=hidden)

    def inverted(self) -> Damage:
        """The damage of the inverted images: what is white there was black."""
        return replace(self, p=Rates(self.p.black, self.p.white)) if isinstance(self.p, Rates) else self

    def of_image(self, index: int) -> Damage:
        """The damage of one image of several."""
        return self if self.hidden is None else replace(self, hidden=[self.hidden[index]])

    def rows(self, rows: np.ndarray) -> Damage:
        """The damage of some of the images."""
        hidden = self.hidden
        return self.mapped(lambda level: level[rows] if level.ndim == 3 else level).covering(
            None if hidden is None else np.asarray(hidden)[rows]
        )

    def mapped(self, change: Callable[[np.ndarray], np.ndarray]) -> Damage:
        """The same damage after a change of the levels that are arrays."""

        def changed(level: Level | Rates) -> Any:
            if isinstance(level, Rates):
                return Rates(*map(changed, level))
            return change(level) if isinstance(level, np.ndarray) else level

        return replace(self, p=changed(self.p), sigma=changed(self.sigma))

    def with_at_least(self, least: float, about: Description) -> Damage:
        """The same damage with at least so much noise, of the kind the prior knows."""
        if about.grey:
            return replace(self, sigma=np.maximum(number(self.sigma), least))
        if isinstance(self.p, Rates):
            # Raise one and limit the other so that their sum stays below 1.
            return replace(self, p=Rates(*(np.clip(rate, least, 1 - 2 * least) for rate in self.p)))
        return replace(self, p=np.clip(number(self.p), least, 1 - least))

    # ---------------------------------------------------------------------------------------------------- its channel

    @property
    def rates(self) -> tuple[float | np.ndarray, float | np.ndarray]:
        """Flip probabilities of white and of black pixels."""
        return self.p if isinstance(self.p, Rates) else (number(self.p), number(self.p))

    def flips_of(self, seen: np.ndarray) -> float | np.ndarray:
        """p as one number, or one per pixel: what it says about the images (N, H, W) that were seen."""
        return AsymmetricFlip(*self.p).symmetric(seen) if isinstance(self.p, Rates) else number(self.p)

    def channel(self, grey: bool) -> Channel:
        """The channel of binary or grey images (N, D) with this damage."""
        if isinstance(self.p, Rates):
            flips: Any = tuple(_flat(rate) if isinstance(rate, np.ndarray) else rate for rate in self.p)
        else:
            flips = _flat(number(self.p))
        sigma = _flat(number(self.sigma)) if grey else None
        hidden = None if self.hidden is None else _flat(np.asarray(self.hidden))
        return channel_of(Told(flips, sigma, hidden), grey=grey)

    @classmethod
    def told(cls, channel: Channel, image_shape: tuple[int, int]) -> Damage:
        """The damage of one image (1, D) that went through a channel."""

        def level(values: Any) -> Any:
            if values is None or isinstance(values, tuple):
                return values and Rates(*values)
            found = np.asarray(values, np.float64)
            return found.reshape(image_shape) if found.size > 1 else float(found)

        p, sigma, hidden = channel.told()
        return cls(level(p), level(sigma), None if hidden is None else [np.asarray(hidden).reshape(image_shape)])

    def log_black(self, about: Description, grey: np.ndarray) -> np.ndarray:
        """log p(y | x = 0) of images (N, H, W), in nats: their evidence minus log Z of the prior under it; (N,).

        Pixels that are seen exactly count with their finite evidence; hidden pixels add nothing.
        """
        seen = grey if about.grey else about.as_known(grey)
        of_pixels = self.channel(about.grey).log_black(_flat(seen))
        return of_pixels.reshape(grey.shape).sum((1, 2))


def number(level: Level | Rates) -> float | np.ndarray:
    """A known level as numbers; 0 for no such noise."""
    assert not isinstance(level, str | Rates)
    return 0.0 if level is None else level


def _flat(values: float | np.ndarray) -> np.ndarray:
    """Reshape what broadcasts with images (N, H, W) to broadcast with (N, D)."""
    whole = np.array(values, ndmin=3, copy=None)
    return whole.reshape(len(whole), -1)


def _probabilities(p: Any) -> float | np.ndarray | Rates:
    """Check flip probabilities; raise UsageError if one is not a probability."""
    try:
        values = np.asarray(p, dtype=np.float64)
    except (TypeError, ValueError) as fault:
        raise UsageError(f"p is a flip probability in [0, 1], or one per pixel, not {shown(str(p))}") from fault
    # Written so that NaN fails too.
    wrong = values[~((values >= 0) & (values <= 1))]
    if wrong.size:
        raise UsageError(f"--p is a flip probability and must lie in [0, 1], not {wrong[0]}")
    single = values.astype(np.float32)
    values = np.where(single < SMALLEST, 0.0, np.where(single == 1, 1.0, values))
    if values.shape == (2,):
        channel = AsymmetricFlip(*values.tolist())
        return Rates(channel.white, channel.black)
    return values if values.ndim else values.item()


def _deviation(sigma: Any) -> float:
    """Check a standard deviation; raise UsageError if it is not a number above 0."""
    # Numpy's numbers are accepted, but would compare with the largest value of their own type.
    number = sigma.item() if isinstance(sigma, np.floating | np.integer) else sigma
    if isinstance(number, bool) or not isinstance(number, int | float) or not 0 < number <= sys.float_info.max:
        raise UsageError(f"sigma is the standard deviation of noise, a finite number above 0, not {shown(str(sigma))}")
    if number > 1:
        meant = f"; of 255 levels it is {number / 255:.2g}" if number < 255 else ""
        warnings.warn(f"sigma = {number:g} is more than from black to white, which is 1{meant}", stacklevel=5)
    return min(max(float(sigma), SMALLEST), LARGEST)
