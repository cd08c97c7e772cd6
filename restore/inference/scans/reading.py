"""Read a grey picture in black and white: two levels, a clear cut, or a scan whose levels say how certain they are."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np

from restore.channels.damage import Damage, Observed
from restore.channels.flips import CERTAIN_FIELD
from restore.channels.values import log_odds_of, probability_of
from restore.components import components
from restore.images.tones import FAINTEST, mostly_even, stretched
from restore.inference.candidates import Prior
from restore.inference.decision.facts import Facts
from restore.inference.decision.rules import CROWDED, objection
from restore.inference.engine import PictureEngine, Posterior
from restore.inference.marks.borders import border
from restore.inference.scans.coloured import coloured_parts
from restore.inference.scans.outline import beside_sheet
from restore.inference.scans.parts import CORE_SHARE, other_parts
from restore.inference.scans.sample import Sample
from restore.inference.scans.sheet import MISLEADING, REACH, Sheet, grown, unmixed_levels
from restore.inference.tiles.blend import Watch
from restore.status import Status

# The least side of a page, in pixels: smaller pictures show no paper around their ink, nor ground around marks.
LEAST_PAGE = 64


@dataclass(frozen=True, eq=False)
class Reading:
    """A picture in black and white.

    Attributes:
        picture: its pixels are 0 and 1, and its damage says how certain they are.
        tones: the grey levels of black and of white in it, numbers or (H, W); None for 0 and 1.
        cut: the threshold where it has other levels too, in [0, 1]; else None.
        drawn: True if these are soft edges, and no grain.
        page, sheet: of a grey page its ink and paper, as a prior reads them, and their levels.
        notes: what the user should know, one sentence each.
        inverted: True for a page of light ink on dark paper.
        parts: where a page is no ink on paper, or has a colour of its own, boolean (H, W); None if nowhere.
        other: the pixels of these parts that stay as they are, boolean (H, W); None for none.
        facts: what tells whether it is ink on paper; not measured where the caller says so.
    """

    picture: Observed
    tones: tuple[Any, Any] | None = None
    cut: float | None = None
    drawn: bool = False
    notes: tuple[str, ...] = ()
    page: Posterior | None = None
    sheet: Sheet | None = None
    inverted: bool = False
    parts: np.ndarray | None = None
    other: np.ndarray | None = None
    facts: Facts = field(default_factory=Facts)


class Readers(Protocol):
    """The priors of grey pages."""

    @property
    def reader(self) -> PictureEngine:
        """Tells ink from paper."""

    @property
    def parts(self) -> PictureEngine:
        """Tells which parts are a page."""


@dataclass(frozen=True)
class _Look:
    """How a page is looked at: by which priors, for light or dark ink, and who receives the share that is done."""

    readers: Readers
    inverted: bool
    watch: Watch


def read(
    picture: Observed,
    threshold: float | None,
    readers: Readers,
    inverted: bool | None,
    watch: Watch,
    *,
    careful: bool,
) -> Reading:
    """Read a grey picture in black and white: two levels, a page of ink on paper, or a drawing.

    Args:
        picture: grey values (H, W), and its damage; p is "scan" if the caller says that it is one.
        threshold: where to cut it, in [0, 1]; None for Otsu's threshold.
        readers: open the priors that read grey pages.
        inverted: True if ink is light; None to find it in what the caller calls a page.
        watch: receives the share that is done of a page.
        careful: measure whether grey levels say more than black and white, and read a scan as a page.
    """
    sample, damage = Sample.of(picture), picture.damage
    if damage.scanned:
        # Whoever calls it a page means all of it.
        reader = Prior(readers.reader, sample.light_ink if inverted is None else inverted)
        values = _with_holes_filled(picture)
        return _of_ink(picture, values, None, _seen_by(reader, values, damage.hidden, watch), inverted=reader.invert)
    if careful and getattr(picture.pixels, "classes", False):
        return Reading(picture, facts=Facts(classes=1.0))
    low, high = float(sample.visible.min()), float(sample.visible.max())
    if bool(((sample.visible == low) | (sample.visible == high)).all()):
        tones = None if low == high or (low, high) == (0, 1) else (low, high)
        return Reading(sample.cut(picture, (low + high) / 2 if low < high else 0.5), tones)
    return _grey(picture, sample, threshold, _Look(readers, bool(inverted), watch), careful=careful)


def _grey(picture: Observed, sample: Sample, threshold: float | None, look: _Look, *, careful: bool) -> Reading:
    """A picture in more than two levels, which nobody calls a page: a page, or a drawing."""
    drawn = sample.tones.drawn
    known = picture.damage.touched and picture.damage.unknown is None
    if careful and not (known or drawn) and min(picture.shape) >= LEAST_PAGE:
        # Light lines on dark may as well be a photograph's: nobody said that this is a page.
        beside = None if look.inverted else _beside(picture)
        drawn = _even(picture, beside)
        if not drawn:
            return _photographed(picture, beside, look)
    return replace(_drawing(picture, sample, threshold, careful=careful), drawn=drawn)


def _drawing(picture: Observed, sample: Sample, threshold: float | None, *, careful: bool) -> Reading:
    """A picture cut at a threshold; None for Otsu's."""
    tones, visible = sample.tones, sample.visible
    cut = (tones.threshold + 0.5) / 255 if threshold is None else threshold
    parts = (visible[visible <= cut], 0.0), (visible[visible > cut], 1.0)
    black, white = (float(np.median(part)) if part.size else end for part, end in parts)
    facts = Facts(two_tones=tones.explained) if careful else Facts()
    return Reading(sample.cut(picture, cut), (black, white), cut, facts=facts)


def _with_holes_filled(picture: Observed) -> np.ndarray:
    """The grey levels of a picture, and in its holes the median of what is seen."""
    hidden, values = picture.damage.hidden, picture.values().astype(np.float32)
    if hidden is None:
        return values
    return np.where(hidden, 0.0 if hidden.all() else np.median(values[~hidden]), values)


def _beside(picture: Observed) -> np.ndarray | None:
    """What a photograph shows beside a sheet of paper, boolean (H, W); None if that is no sheet, or nearly all."""
    beside = beside_sheet(picture.values() if picture.colours is None else picture.colours.min(-1))
    # What is beside a sheet that fills nearly all is the black edge of a scan, a mark like others.
    if beside is None or not LEAST_PAGE**2 <= (~beside).sum() <= CORE_SHARE * beside.size:
        return None
    return beside


def _even(picture: Observed, beside: np.ndarray | None) -> bool:
    """True if what lies on a sheet, or all where there is none, has no grain."""
    levels = picture.pixels if picture.colours is None else picture.colours
    return mostly_even(levels, picture.damage.hidden if beside is None else _either(beside, picture.damage.hidden))


def _photographed(picture: Observed, beside: np.ndarray | None, look: _Look) -> Reading:
    """A grey page as ink and paper, without what a photograph shows beside it; unread if it is none."""
    other = other_parts(_turned(_with_holes_filled(picture), look.inverted), look.readers.parts, beside)
    if beside is None:
        return _page(picture, other, look)
    hidden = _either(beside, picture.damage.hidden)
    inside = replace(picture, damage=replace(picture.damage, hidden=hidden))
    page = _page(inside, other, look, sheet=True)
    return replace(page, parts=_either(beside, page.parts), other=_either(beside, page.other))


def _page(picture: Observed, other: np.ndarray, look: _Look, *, sheet: bool = False) -> Reading:
    """A grey page as ink and paper, but for parts that a prior takes for others; unread if it is none, nor a sheet."""
    inverted = look.inverted
    values = _with_holes_filled(picture)
    hidden = picture.damage.hidden
    coloured, tinted = _coloured(picture)
    facts = _share(other | coloured, picture)
    if objection(facts) is not None:
        tones = Sample.of(picture).tones
        other = other & (objection(Facts(two_tones=tones.explained)) is not None)  # shapes of two tones are ink
        facts = _share(other | coloured, picture)
    if objection(facts) is not None and not sheet:
        return Reading(picture, facts=facts)
    reader = Prior(look.readers.reader, inverted)
    seen = _seen_by(reader, values, hidden, look.watch)
    if other.any():
        paper = _turned(seen.means[0], inverted)
        other = _no_page(_turned(values, inverted), paper, other & ~coloured, hidden)
        facts = _share(other | coloured, picture)
    if other.any():  # the prior does not see what is neither ink nor paper
        seen = _seen_by(reader, values, _either(other, hidden), look.watch)
    parts = other | coloured
    page = _of_ink(picture, values, parts if parts.any() else None, seen, inverted=inverted)
    stays = other | coloured & (tinted | ~_plain(page, seen, values))
    return replace(page, other=stays if stays.any() else None, facts=facts | page.facts)


def _share(parts: np.ndarray, picture: Observed) -> Facts:
    """The share of what is visible of a picture that is a page."""
    visible = picture.visible
    return Facts(page=1 - float((parts & visible).sum()) / max(int(visible.sum()), 1))


def _plain(page: Reading, seen: Posterior, values: np.ndarray) -> np.ndarray:
    """Where there is paper, as a prior says and as light as paper is, boolean (H, W)."""
    assert page.tones is not None
    lighter = values > sum(page.tones) / 2
    return np.asarray((_turned(seen.means[0], page.inverted) > 0.5) & (lighter ^ page.inverted))


def _coloured(picture: Observed) -> tuple[np.ndarray, np.ndarray]:
    """The visible pixels of parts in a colour of their own, and those in another than paper, boolean (H, W) each."""
    if picture.colours is None:
        return np.zeros(picture.shape, bool), np.zeros(picture.shape, bool)
    visible = picture.visible
    colours = picture.colours
    if visible.any() and not visible.all():
        colours = np.where(visible[..., None], colours, np.median(colours[visible], 0))
    parts, tinted = coloured_parts(colours)
    return parts & visible, tinted & visible


def _either(one: np.ndarray, other: np.ndarray | None) -> np.ndarray:
    """The union of two masks (H, W), of which None is empty."""
    return one if other is None else one | other


def _no_page(grey: np.ndarray, paper: np.ndarray, parts: np.ndarray, hidden: np.ndarray | None) -> np.ndarray:
    """The parts (H, W) that the rules refuse, too, once all is read as a page: a stain with text on it is one.

    Each is judged by what is further than `REACH` inside, as ink of the page may cross its edge. Screens of dots have
    two levels, but are more crowded than print. What is blank is page if it is as light as the paper around it.

    Args:
        grey: levels of dark ink on light paper, (H, W).
        paper: the probability of paper, (H, W).
        parts: where a prior says that there is no page, (H, W).
        hidden: pixels that do not count, (H, W), or None.
    """
    numbers = components(parts)
    around = Sheet.of(grey, paper, _either(parts, hidden))
    blank = paper > 0.5 if hidden is None else (paper > 0.5) & ~hidden
    stay = np.zeros_like(parts)
    for number in np.unique(numbers[parts]).tolist():
        part = numbers == number
        outside = grown(~part, int(REACH))
        facts = Sheet.of(grey, paper, _either(outside, hidden)).facts
        why = objection(facts)
        plain = why is Status.FAINT and _as_light(grey, around, part & outside & blank)
        stay |= part & (CROWDED.holds(facts) or not (why is None or plain))
    return stay


def _as_light(grey: np.ndarray, sheet: Sheet, where: np.ndarray) -> bool:
    """True if some pixels (H, W) of a page differ from the paper around them by less than the faintest ink does."""
    if not where.any():
        return False
    paper = sheet.white[where]
    return float(np.abs(grey[where] - paper).mean()) < FAINTEST * float(paper.mean())


def _seen_by(reader: Prior, values: np.ndarray, hidden: np.ndarray | None, watch: Watch) -> Posterior:
    """What a prior of pages says of one, whose holes are filled, by what is around each pixel."""
    seen = _turned(stretched(_turned(values, reader.invert), hidden), reader.invert)
    return reader.posterior(Observed(seen, Damage(hidden=hidden)), watch)


def _turned(levels: Any, inverted: bool) -> Any:
    """What is dark on light as it is in the picture, or the other way."""
    return 1 - levels if inverted else levels


def _of_ink(
    picture: Observed, values: np.ndarray, parts: np.ndarray | None, seen: Posterior, *, inverted: bool
) -> Reading:
    """A page, whose holes are filled, as ink and paper, once a prior has seen it, but for parts that are neither."""
    hidden = picture.damage.hidden if parts is None else _either(parts, picture.damage.hidden)
    paper = _turned(seen.means[0], inverted)
    # The black edges of a scan are no ink, and would explain all that varies.
    edges = border(paper < 0.5)
    sheet = Sheet.of(_turned(values, inverted), paper, _either(edges, hidden))
    levels = _turned(values.astype(np.float64), inverted)
    told = sheet.log_odds(levels, MISLEADING)
    # Other priors judge for themselves what is ink.
    odds = sheet.log_odds(levels).clip(-CERTAIN_FIELD, CERTAIN_FIELD)
    white = (odds > 0) ^ inverted
    unsure = replace(picture.damage, p=1 / (1 + np.exp(np.abs(odds))), hidden=hidden)
    read = Observed(white.astype(np.float64), unsure)
    tones = sheet.black, sheet.white
    if picture.filled_only:
        tones = unmixed_levels(_turned(values, inverted), paper, _either(edges, hidden))
    dark, light = reversed(tones) if inverted else tones
    return Reading(
        read,
        (_turned(dark, inverted), _turned(light, inverted)),
        notes=(_note_of(sheet, inverted=inverted),),
        page=_judged_by_levels(seen, -told if inverted else told, hidden),
        sheet=sheet,
        inverted=inverted,
        parts=parts,
        facts=sheet.facts,
    )


def _judged_by_levels(page: Posterior, odds: np.ndarray, hidden: np.ndarray | None) -> Posterior:
    """What a prior says of a page by what is around each pixel, and the log-odds (H, W) of the levels: their sum.

    That is Bayes' law, were both independent: a page like none that the prior knows has levels all the same.
    """
    means = page.means[0]
    told = log_odds_of(means.astype(np.float64)) + (odds if hidden is None else np.where(hidden, 0, odds))
    white = np.where(np.isnan(means), np.nan, probability_of(told)).astype(np.float32)[None]
    return replace(page, means=white, variances=white * (1 - white))


def _note_of(sheet: Sheet, *, inverted: bool) -> str:
    """What the user should know of a page that was read."""
    black, white = (float(np.mean(_turned(level, inverted))) for level in (sheet.black, sheet.white))
    levels = [round(255 * level) for level in (black, white, sheet.noise)]
    ground = "light ink on dark paper" if inverted else "dark ink on light paper"
    return "read as a page of {}: of 255 grey levels ink has {}, paper {}, and noise {}".format(ground, *levels)
