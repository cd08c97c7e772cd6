"""Find pictures that were drawn large, each pixel as a square: codes, pixel art, coarse masks.

All pixels of a square are then one module that is seen many times. The colour changes more often between squares than
inside them, which shows the grid. Its modules, independent or an Ising field, have to explain the picture better than
the Ising field of its pixels does, and this field must nowhere be far ahead: what is drawn more finely would be lost.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from restore.channels import bit_flip
from restore.channels.values import SURE
from restore.inference.damage import Damage, Rates
from restore.inference.explained import ODDS, Observed
from restore.inference.noise.levels import choose_level
from restore.inference.pictures import PictureEngine
from restore.inference.windows.choosing.field import COARSE, FIELD, log_p_of_windows, rival
from restore.marginals import NoiseLevel
from restore.sizes import said

# Sides of squares that are looked for, in pixels. Of larger ones most have a divisor among them, and any prior knows
# areas of their size.
SIDES = range(2, 17)

# Steps in which the flips of either colour are found.
STEPS = 10

# Standard errors by which the colour changes more often between squares than inside them; and the share of this that it
# may change more often in one place inside them than in the others.
DISTINCT, INSIDE = 6.0, 0.2


@dataclass(frozen=True)
class Grid:
    """Squares of `side` pixels, the first of which begin `above` rows and `before` columns outside the picture."""

    side: int
    above: int
    before: int
    shape: tuple[int, int]

    def whole(self, values: np.ndarray) -> np.ndarray:
        """The picture (H, W) with margins of zeros that complete its squares."""
        sizes = zip((self.above, self.before), self.shape, strict=True)
        return np.pad(values, [(lead, -(lead + size) % self.side) for lead, size in sizes])

    def squares(self, values: np.ndarray) -> np.ndarray:
        """The picture's squares, (h, side, w, side)."""
        large = self.whole(values)
        rows, columns = (size // self.side for size in large.shape)
        return large.reshape(rows, self.side, columns, self.side)

    def drawn(self, modules: np.ndarray) -> np.ndarray:
        """The picture (H, W) in which every module (h, w) is a square."""
        large = modules.repeat(self.side, 0).repeat(self.side, 1)
        return large[self.above :, self.before :][: self.shape[0], : self.shape[1]]


@dataclass(frozen=True, eq=False)
class Enlarged:
    """A picture that was drawn large.

    Attributes:
        grid: its squares.
        white: log p(pixels of a square | its module is white), (h, w).
        black: the same of black modules.
        seen: modules of which some pixel is seen, boolean (h, w).
        even: whether no square shows both colours.
        flips: of the picture's pixels.
        noise: how they were chosen, if they were.
    """

    grid: Grid
    white: np.ndarray
    black: np.ndarray
    seen: np.ndarray
    even: bool
    flips: Damage
    noise: NoiseLevel | None

    @property
    def pixels(self) -> np.ndarray:
        """The picture before: 1 where white is more probable, (h, w)."""
        return (self.white > self.black).astype(np.float64)

    @property
    def damage(self) -> Damage:
        """The probability that each of these is wrong, and the modules of which nothing is seen."""
        flips = 1 / (1 + np.exp(np.minimum(np.abs(self.white - self.black), SURE)))
        return Damage(flips, hidden=None if self.seen.all() else [~self.seen])

    @property
    def alone(self) -> float:
        """log p(picture) under independent modules, half of them white."""
        return float(np.logaddexp(self.white, self.black).sum() - np.log(2) * self.white.size)

    @property
    def note(self) -> str:
        """What the user should know."""
        size, times = said(self.white.shape), f"is drawn {self.grid.side} times as large"
        if self.even and self.flips.touched:
            return (
                f"{times}, and no square shows both colours: if it was damaged before, restore a copy of {size} pixels"
            )
        return f"{times}, and was restored as a picture of {size} pixels"


def drawn_large(white: np.ndarray, damage: Damage) -> Enlarged | None:
    """The picture as it was before it was drawn large; None if it was not.

    Args:
        white: the pixels that are white, boolean (H, W).
        damage: what is known of this one picture.

    >>> code = np.kron(np.random.default_rng(0).random((20, 20)) < 0.5, np.ones((4, 4), bool))
    >>> flipped = code ^ (np.random.default_rng(1).random(code.shape) < 0.1)
    >>> found = drawn_large(flipped, Damage("auto"))
    >>> found.grid.side, bool((found.grid.drawn(found.pixels) == code).all())
    (4, True)
    """
    field = rival(FIELD)
    if field is None or isinstance(damage.p, np.ndarray):
        return None
    seen = np.ones(white.shape, bool) if damage.hidden is None else ~np.asarray(damage.hidden[0])
    found = [_read(grid, white & seen, ~white & seen, damage) for grid in _grids(white, seen)]
    best = max(found, key=lambda each: each.alone, default=None)
    return best if best is not None and _alike(best, white, seen) and _explained(best, white, seen, field) else None


def _grids(white: np.ndarray, seen: np.ndarray) -> list[Grid]:
    """The grids of squares between which colours change more often than inside them."""
    rows, columns = _changes(white, seen), _changes(white.T, seen.T)
    leads = [(side, _lead(*rows, side), _lead(*columns, side)) for side in SIDES]
    shape = (white.shape[0], white.shape[1])
    return [
        Grid(side, above, before, shape) for side, above, before in leads if above is not None and before is not None
    ]


def _changes(white: np.ndarray, seen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """How often the colour changes before every row but the first, and how many pairs of pixels are seen there."""
    both = seen[1:] & seen[:-1]
    return ((white[1:] != white[:-1]) & both).sum(1), both.sum(1)


def _lead(changes: np.ndarray, pairs: np.ndarray, side: int) -> int | None:
    """How many rows of the first squares lie outside a picture; None if rows show no squares."""
    place = np.arange(1, len(pairs) + 1) % side
    changed, count = np.bincount(place, changes, side), np.bincount(place, pairs, side)
    if count.min() == 0:
        return None
    first, ahead, distinct = _most_changed(changed, count)
    if not distinct:
        return None
    if side > 2:
        _, second, distinct = _most_changed(np.delete(changed, first), np.delete(count, first))
        if distinct and second > ahead * INSIDE:
            return None
    return -first % side


def _most_changed(changed: np.ndarray, count: np.ndarray) -> tuple[int, float, bool]:
    """The place where the share of changes is highest, by how much it is ahead of the others', and whether for sure."""
    first = int((changed / count).argmax())
    between, inside = count[first], count.sum() - count[first]
    share = changed.sum() / count.sum()
    error = (share * (1 - share) * (1 / between + 1 / inside)) ** 0.5
    ahead = changed[first] / between - (changed.sum() - changed[first]) / inside
    return first, float(ahead), bool(ahead > DISTINCT * error)


def _read(grid: Grid, white: np.ndarray, black: np.ndarray, damage: Damage) -> Enlarged:
    """What the pixels that are seen white and black say of the modules of a grid, at the level of highest evidence."""
    whites, blacks = (grid.squares(values).sum((1, 3)) for values in (white, black))
    seen, even = whites + blacks > 0, not (whites * blacks).any()

    def at(flips: Damage, noise: NoiseLevel | None = None) -> Enlarged:
        kept, lost = _log_rates(flips)
        of_white, of_black = whites * kept[0] + blacks * lost[0], blacks * kept[1] + whites * lost[1]
        return Enlarged(grid, of_white, of_black, seen, even, flips, noise)

    def evidence(rows: np.ndarray, levels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        found = [at(damage.at(level)).alone for level in levels.tolist()]
        return np.array(found) + np.log(2) * seen.size, np.ones(len(rows), bool)

    if damage.unknown is None:
        return at(damage)
    noise = choose_level(evidence, 1, bit_flip.LEVELS)
    found = by_colour = at(damage.chosen(noise, 0), noise)
    for _ in range(STEPS):
        # Expectation and maximisation, with a rate for each colour.
        white = 1 / (1 + np.exp((by_colour.black - by_colour.white).clip(-SURE, SURE)))
        weights = (white, whites, blacks), (1 - white, blacks, whites)
        rates = [(part * lost).sum() / (part * (kept + lost)).sum() for part, kept, lost in weights]
        rates = np.clip(rates, *bit_flip.LEVELS.levels[[0, -1]])
        by_colour = at(Damage(Rates(*rates.tolist())), replace(noise, rates=rates[None]))
    return by_colour if by_colour.alone > found.alone + np.log(ODDS) else found


def _explained(found: Enlarged, white: np.ndarray, seen: np.ndarray, field: PictureEngine) -> bool:
    """Whether the modules explain a picture better than the Ising field of its pixels does, and nowhere far worse."""
    grid, window = found.grid, min(field.description.image_shape)
    damage = found.damage.covering(~found.seen[None]).mapped(lambda level: level[None])
    joined = log_p_of_windows(field, Observed(found.pixels[None], damage))[0]
    rest = np.logaddexp(found.white, found.black)
    ours = np.maximum(joined + _sums(rest, window), _sums(rest - np.log(2), window))
    large, unseen = grid.whole(white), ~grid.whole(seen)
    kept, lost = _log_rates(found.flips)
    module = found.pixels.repeat(grid.side, 0).repeat(grid.side, 1) > 0
    surest = _sums(
        np.where(unseen, 0.0, np.where(large == module, *(np.where(module, *part) for part in (kept, lost)))), window
    )
    most = np.log(ODDS * surest.size)
    # Where squares do not fit, all that they miss is taken for flips, and pixels would explain it with fewer.
    lower = [] if found.noise is None else [level for level in COARSE if level < found.noise.chosen[0]]
    for flips in (found.flips, *map(Damage, lower)):
        pixels = Observed(large[None].astype(np.float64), flips.covering(unseen[None]))
        theirs = log_p_of_windows(field, pixels)[0]
        # As many windows of pixels along a side as a module has pixels are one window of modules.
        ahead = _sums(theirs, grid.side) - ours
        if (theirs > surest + most).any() or (ahead > most).any() or ahead.sum() > -most:
            return False
    return True


def _alike(found: Enlarged, white: np.ndarray, seen: np.ndarray) -> bool:
    """Whether squares hold as many pixels of the other colour as independent flips leave in them.

    Where thin lines run through squares, many are half black and half white, and few a quarter.
    """
    grid, pixels = found.grid, found.grid.side**2
    whole = grid.squares(seen).sum((1, 3)) == pixels
    whites, module = grid.squares(white & seen).sum((1, 3))[whole], (found.pixels > 0)[whole]
    if not 0 < module.sum() < module.size:
        return True
    met, counts = np.unique(whites, return_counts=True)
    several = np.array([math.log(math.comb(pixels, number)) for number in met.tolist()])

    def lead(flips: Damage) -> float:
        """By how many nats a share of their own for every count is ahead."""
        kept, lost = _log_rates(flips)
        of_white, of_black = met * kept[0] + (pixels - met) * lost[0], met * lost[1] + (pixels - met) * kept[1]
        expected = several + np.logaddexp(np.log(module.mean()) + of_white, np.log((~module).mean()) + of_black)
        return float((counts * (np.log(counts / counts.sum()) - expected)).sum())

    # The level may be told wrong, and there may be fewer flips than at the lowest one.
    odd = Rates(1 - whites[module].mean() / pixels, whites[~module].mean() / pixels)
    # A number that is fitted gains so much by itself (Schwarz, 1978).
    by_themselves = len(met) * np.log(counts.sum()) / 2
    return bool(min(map(lead, (found.flips, Damage(odd)))) < by_themselves + np.log(ODDS))


def _log_rates(flips: Damage) -> tuple[np.ndarray, np.ndarray]:
    """log p that a pixel is kept and that it is flipped, each for white and for black ones, (2,)."""
    rates = np.array(flips.rates)
    with np.errstate(divide="ignore"):
        return np.log(1 - rates).clip(-bit_flip.CERTAIN), np.log(rates).clip(-bit_flip.CERTAIN)


def _sums(values: np.ndarray, side: int) -> np.ndarray:
    """Sums over squares of an array; the last ones may be smaller."""
    return Grid(side, 0, 0, (values.shape[0], values.shape[1])).squares(values).sum((1, 3))
