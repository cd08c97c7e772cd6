"""The known damage of pictures, checked once; and a picture with its damage."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

import numpy as np

from restore.channels.flips import CERTAIN_FIELD, NO_FLIPS, BitFlip
from restore.channels.levels import FLIPS, IMPULSES, NOISE, Scale
from restore.channels.noise import GaussianNoise, SaltAndPepper
from restore.channels.values import Parameter
from restore.errors import RestoreWarning, UsageError, option, require, shown
from restore.registry import LEVELS

if TYPE_CHECKING:
    from torch import Tensor

    from restore.fields import Fields

Auto: TypeAlias = Literal["auto"]
Scanned: TypeAlias = Literal["scan"]

# A noise level: one number, an array that broadcasts with the pictures, a word, or None for no such noise.
Level: TypeAlias = "Parameter | Auto | Scanned | None"

# The largest value of each level in `LEVELS`.
_LARGEST = {"p": 1.0, "sigma": 1.0}


class Channel(Protocol):
    """A model p(y | x) of an observation y of an image x, with independent pixels; images have shape (batch, D).

    The law tested for each channel: with the fields of evidence(y), linear·x - quadratic·x²/2 + presence·[x != 0]
    equals log p(y|x) up to a constant in x.
    """

    def evidence(self, y: Tensor) -> Fields:
        """What the observation y says about x, as fields on the pixels."""


@dataclass(frozen=True)
class Occlusion:
    """Hide some pixels completely; let the others come through the channel `noise`.

    Attributes:
        hidden: a boolean array, broadcastable with the images; True = painted over (the pixels to fill).
        noise: the channel of the visible pixels. By default they are seen exactly, as ink; for exact grey values give
            GaussianNoise(0.0).

    Raises:
        UsageError: if the mask is not boolean.

    >>> import torch
    >>> hole = Occlusion(torch.tensor([True, False, False]))
    >>> hole.evidence(torch.tensor([0.0, 0.0, 1.0])).linear.tolist()  # nothing, certainly black, certainly white
    [0.0, -1000.0, 1000.0]
    """

    hidden: Any
    noise: Channel = NO_FLIPS

    def __post_init__(self) -> None:
        if str(self.hidden.dtype) not in ("bool", "torch.bool"):
            raise UsageError(
                f"a mask must be boolean (True = to fill), not {self.hidden.dtype}; compare it with 0 first"
            )

    def evidence(self, y: Tensor) -> Fields:
        import torch

        visible = self.noise.evidence(y)
        hidden = torch.as_tensor(self.hidden) if isinstance(self.hidden, np.ndarray) else self.hidden
        nothing = torch.zeros((), dtype=y.dtype, device=y.device)
        return visible.mapped(lambda values: torch.where(hidden, nothing, values))


@dataclass(frozen=True, eq=False)
class Damage:
    """The damage of one picture (H, W), or of a batch (N, H, W); `Damage.of` checks what a caller gives.

    Values are numbers or numpy arrays; the damage of tensors (N, D) has tensors.

    Attributes:
        p: flip probability of visible pixels: a number, or one per pixel. For priors of grey images, the
            probability of salt or pepper. "auto": to be found; "scan": from each grey level; None: no flips, or
            those that a conditional prior has learnt.
        sigma: standard deviation of Gaussian noise, black being 0 and white 1; "auto": to be found; None: no noise.
        hidden: pixels to fill, boolean, in the shape of the pictures; None for none.

    >>> import torch
    >>> channel = Damage(0.1, hidden=np.array([[False, False, True]])).channel(grey=False)
    >>> [round(value, 4) for value in channel.evidence(torch.tensor([[0.0, 1.0, 1.0]])).linear.flatten().tolist()]
    [-2.1972, 2.1972, 0.0]
    """

    p: Level = None
    sigma: Level = None
    hidden: np.ndarray | None = None

    @classmethod
    def of(cls, p: Any = None, sigma: Any = None, **others: Any) -> Damage:
        """Check the noise levels that a caller gives, each a name in `LEVELS`; numbers may be texts, in per cent too.

        Raises:
            UsageError: if one is out of range, or if several are "auto".

        >>> Damage.of("10%").p, Damage.of(sigma="auto").unknown
        (0.1, 'sigma')
        """
        levels = {name: _checked(name, level) for name, level in {"p": p, "sigma": sigma, **others}.items()}
        unknown = [option(name) for name, level in levels.items() if isinstance(level, str) and level == "auto"]
        require(len(unknown) <= 1, f"{' and '.join(unknown)} cannot both be auto; give a number for one of them")
        return cls(**levels)

    @property
    def unknown(self) -> str | None:
        """The name of the level to estimate, if any."""
        levels = {name: getattr(self, name) for name in LEVELS}
        return next((name for name, level in levels.items() if isinstance(level, str) and level == "auto"), None)

    @property
    def scanned(self) -> bool:
        """True if the grey level of each pixel expresses its certainty."""
        return isinstance(self.p, str) and self.p == "scan"

    @property
    def touched(self) -> bool:
        """True if visible pixels are damaged too."""
        return any(getattr(self, name) is not None for name in LEVELS)

    def at(self, level: Any) -> Damage:
        """The same damage with a value for the unknown level."""
        return replace(self, **{self.unknown: level}) if self.unknown else self

    def mapped(self, change: Callable[[Any], Any]) -> Damage:
        """The same damage after a change of all its arrays."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return Damage(**{name: change(value) if np.ndim(value) else value for name, value in values.items()})

    @classmethod
    def stacked(cls, parts: Sequence[Damage], shape: tuple[int, ...]) -> Damage:
        """The damage of a batch of pictures of one shape; a number that all of them share stays a number."""

        def together(levels: Sequence[Any], outside: float | bool = 0.0) -> Any:
            if all(level is None for level in levels):
                return None
            known = [outside if level is None else level for level in levels]
            if not any(isinstance(level, np.ndarray) for level in known):
                return known[0] if len(set(known)) == 1 else np.array(known, np.float64)[:, None, None]
            return np.stack([np.broadcast_to(level, shape) for level in known])

        levels = {name: together([getattr(part, name) for part in parts]) for name in LEVELS}
        return cls(**levels, hidden=together([part.hidden for part in parts], outside=False))

    def known(self, name: str) -> Any:
        """A level that is known: one number, or one per pixel; 0 for no such noise."""
        level: Level = getattr(self, name)
        assert not isinstance(level, str)
        return 0.0 if level is None else level

    def channel(self, grey: bool) -> Channel:
        """The channel of binary or grey images (N, D) with this damage.

        Grey ones go through Gaussian noise, then salt and pepper, and then pixels are hidden.

        Raises:
            UsageError: if binary images have flips and Gaussian noise.
        """
        p, sigma = _flat(self.known("p")), _flat(self.known("sigma"))
        if grey:
            # Also without impulses: a black pixel seen exactly is then known to be 0, and not only close to it.
            noise: Channel = SaltAndPepper(p, GaussianNoise(sigma))
        elif self.sigma is None:
            noise = BitFlip(p)
        elif self.p is None:
            noise = GaussianNoise(sigma)
        else:
            raise UsageError("black and white images have flips (p) or Gaussian noise (sigma), not both; give one")
        return noise if self.hidden is None else Occlusion(_flat(self.hidden), noise)

    @property
    def shown(self) -> Channel:
        """The channel that shows grey levels as they are, and hides pixels."""
        levels = GaussianNoise(1.0)
        return levels if self.hidden is None else Occlusion(_flat(self.hidden), levels)

    def log_odds(self, white: np.ndarray) -> np.ndarray:
        """The evidence for white of every pixel of black and white pictures (N, H, W) of 0 and 1, float32."""
        p = np.asarray(self.known("p"), np.float64)
        with np.errstate(divide="ignore"):
            strength = (np.log1p(-p) - np.log(p)).clip(-CERTAIN_FIELD, CERTAIN_FIELD)
        evidence = (2 * white - 1) * strength
        return (evidence if self.hidden is None else np.where(self.hidden, 0, evidence)).astype(np.float32)

    def log_predictive(self, y: np.ndarray, means: np.ndarray, variances: np.ndarray, *, grey: bool) -> np.ndarray:
        """log p of every visible pixel of pictures, given its predicted mean and variance before they were damaged."""
        p = self.known("p")
        if grey:
            return SaltAndPepper(p, GaussianNoise(self.known("sigma"))).log_predictive(y, means, variances)
        return BitFlip(p).log_predictive(y, means)

    def scale(self, *, grey: bool) -> Scale:
        """The levels to compare, of the unknown one or of p."""
        return NOISE if self.unknown == "sigma" else IMPULSES if grey else FLIPS


class Pixels(Protocol):
    """Values (H, W) or (H, W, 3): an array, or an object that gives a part of one on indexing."""

    @property
    def shape(self) -> tuple[int, ...]: ...

    def __getitem__(self, where: tuple[slice, slice], /) -> np.ndarray: ...


@dataclass(frozen=True, eq=False)
class Observed:
    """A damaged picture.

    Attributes:
        pixels: grey values (H, W), or colours (H, W, 3), in [0, 1] except with Gaussian noise; an array, or what gives
            parts of one on indexing.
        damage: what is known of its damage.
        colours: the colours, (H, W, 3), of which `pixels` are the luminance, in any unit; None if there are none.

    >>> picture = Observed(np.zeros((3, 4)), Damage(hidden=np.eye(3, 4) > 0))
    >>> picture.filled_only, picture.part(slice(0, 2), slice(1, 4)).visible.tolist()
    (True, [[True, True, True], [False, True, True]])
    """

    pixels: Pixels
    damage: Damage
    colours: np.ndarray | None = None

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
        colours = None if self.colours is None else self.colours[where]
        return Observed(np.asarray(self.pixels[where]), self.damage.mapped(lambda values: values[where]), colours)

    def values(self) -> np.ndarray:
        """All its pixels, in memory."""
        return np.asarray(self.pixels[:, :])


def _flat(values: Any) -> Any:
    """What broadcasts with pictures (N, H, W), or is a tensor, in a shape that broadcasts with (N, D)."""
    if np.isscalar(values) or isinstance(values, np.ndarray):
        values = np.array(values, ndmin=3, copy=None)
    return values.reshape(len(values), -1) if values.ndim == 3 else values


def _number(text: str) -> float:
    return float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)


def _refused(name: str, level: Any) -> UsageError:
    counted = name == "sigma" and isinstance(level, float) and 1 < level < 255
    remedy = f"; if it counts grey levels of 255, give {level / 255:.2g}" if counted else ""
    return UsageError(f"{option(name)} is {LEVELS[name].words}, not {shown(str(level)) or 'nothing'}{remedy}")


def _checked(name: str, level: Any) -> Any:
    """A level as a word or a number, which may be a text such as 0.1 or 10%, or p as an array; else UsageError."""
    if level is None or (isinstance(level, str) and level in LEVELS[name].metavar.split("|")):
        return level
    try:
        values = np.asarray(_number(level) if isinstance(level, str) else level, np.float64)
    except (TypeError, ValueError, OverflowError, RuntimeError) as fault:  # torch raises the last one
        raise _refused(name, level) from fault
    # Written so that NaN fails too. Pixels may be seen exactly, but noise that is none is not given.
    wrong = values[~((values >= 0 if name == "p" else values > 0) & (values <= _LARGEST[name]))]
    if wrong.size or np.asarray(level).dtype == bool or (values.ndim and name != "p"):
        words = f"an array of {np.asarray(level).dtype}" if values.ndim else level
        raise _refused(name, wrong[0] if wrong.size else words)
    if values.ndim:
        return values
    value = values.item()
    if name == "p" and 0.5 < value < 1:
        doubt = f"p = {value:g} says that most pixels are inverted, so the result will be the negative of the picture"
        warnings.warn(doubt, RestoreWarning, stacklevel=5)
    return value
