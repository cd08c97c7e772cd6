"""The one way from damaged pictures to restored ones, for the command, Python, evaluation and the local page alike.

A picture is read in black and white, or as it is for priors of grey pictures; prior, polarity and noise level are
chosen where they are not given (`restore.inference.choose`); the prior's posterior is found, from one tile or from many
(`restore.inference.tiles`); and the answer is believed or not (`restore.inference.trust`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from restore.errors import Foreign, ModelError, UsageError, option
from restore.images import enlarge, shrink
from restore.inference import trust
from restore.inference.choose import Choice, choose
from restore.inference.damage import Damage, Observed
from restore.inference.engine import PictureEngine
from restore.inference.open import Engines
from restore.inference.options import Options
from restore.inference.restored import Restored, outcome
from restore.inference.scans.reading import Reading, read
from restore.inference.score import Candidate
from restore.inference.squares import Squares, squares_in
from restore.inference.tiles.blend import Posterior, Prior, Watch
from restore.marginals import Status
from restore.sizes import check_near, lost_detail, near
from restore.zoo.description import Description

# A picture whose pixels are this much likelier after inversion, in nats per pixel, looks inverted.
INVERTED = 0.05

# Said of a picture with pixels that no tile sees anything around.
BLIND = "has masked areas around which nothing is visible: the prior alone fills them"

# Pictures of at most so many pixels are restored together, and how many at a time.
SMALL = 64 * 64
TOGETHER = 256

# The share of white in the images of a prior of both polarities is that near to a half.
EVEN = 0.05

# Axes of colour in which photographs are restored plane by plane: light, red against blue, green against both. They are
# orthonormal, so noise has the same sigma in each (Ruderman, Cronin & Chiao, J. Opt. Soc. Am. A 15, 1998).
AXES = np.array([[1, 1, 1], [1, 0, -1], [1, -2, 1]]) / np.sqrt([[3], [2], [6]])
MIDDLE = 0.5


@dataclass(frozen=True, eq=False)
class _Job:
    """One picture on its way.

    Attributes:
        index: its number among all.
        original: as it came.
        reading: as priors see it.
        engines: the priors to choose among.
        header: the first one's description.
        named: True if prior and level were both given.
        rival: the prior that a single one, whose level is unknown, is compared with; else None.
    """

    index: int
    original: Observed
    reading: Reading
    engines: tuple[PictureEngine, ...]
    header: Description
    named: bool
    rival: PictureEngine | None = None


def restore(
    pictures: Sequence[Observed], options: Options, engines: Engines | None = None, watch: Watch = lambda share: None
) -> list[Restored]:
    """Restore pictures; small ones of one shape together.

    Args:
        pictures: the damaged pictures.
        options: how.
        engines: opens priors; None to open those that `options` names.
        watch: receives the share that is done of a picture restored in blocks.

    Returns:
        The answers, in order. A picture that is refused comes back as it came, and its status says why.

    Raises:
        UsageError: if the damage does not fit the prior.
        ModelError: if a prior cannot be opened, or a picture cannot be resized.
    """
    opened = engines or Engines(options)
    answers: dict[int, Restored] = {}
    groups: dict[Any, list[_Job]] = {}
    for index, picture in enumerate(pictures):
        try:
            task = _task(index, picture, options, opened)
        except Foreign:
            answers[index] = _untouched(picture, Status.NOT_INK)
            continue
        damage, shape = task.reading.picture.damage, task.reading.picture.shape
        kind = (task.engines, task.named, damage.unknown, type(damage.p), damage.hidden is None, shape)
        small = len(shape) == 2 and shape[0] * shape[1] <= SMALL
        groups.setdefault(kind if small else index, []).append(task)
    for tasks in groups.values():
        for first in range(0, len(tasks), TOGETHER):
            part = tasks[first : first + TOGETHER]
            for task, answer in zip(part, _answers(part, options, watch), strict=True):
                answers[task.index] = answer
    return [answers[index] for index in range(len(pictures))]


def _task(index: int, picture: Observed, options: Options, engines: Engines) -> _Job:
    """A picture as its priors see it, with what is to be found."""
    opened = engines.for_picture(picture)
    header = opened[0].description
    damage = picture.damage
    assumed = not (damage.touched or damage.hidden is not None or header.task)
    if assumed:
        damage = replace(damage, sigma="auto") if header.grey else replace(damage, p="auto")
    damage.check_for(header)
    named = engines.named and damage.unknown is None
    small = replace(picture, damage=damage)
    if options.fit == "resize":
        if not options.force:
            check_near(picture.shape[:2], header.image_shape)
        small = _shrunk(small, header.image_shape)
    if isinstance(damage.p, np.ndarray) and damage.p.shape != small.shape[:2]:
        raise UsageError(f"p has shape {damage.p.shape}; give one number, or one per pixel: {small.shape[:2]}")
    if header.grey:
        reading = Reading(small)
    else:
        threshold = header.threshold / 255 if engines.named else None
        told = damage.touched and damage.unknown is None
        careful = not (told or named or header.task or options.force)
        reading = read(small, threshold, careful=careful)
    # Pictures of a prior's own size are too small to tell.
    larger = small.shape != header.image_shape and not header.grey
    compared = engines.named and damage.unknown == "p" and larger
    return _Job(index, picture, reading, opened, header, named, engines.rival() if compared else None)


def _shrunk(picture: Observed, shape: tuple[int, int]) -> Observed:
    hidden = picture.damage.hidden
    values, mask = shrink(np.asarray(picture.pixels[:, :]), hidden, shape)
    return Observed(values, replace(picture.damage, hidden=None if hidden is None else mask))


def _answers(tasks: Sequence[_Job], options: Options, watch: Watch) -> list[Restored]:
    """The answers about pictures that are restored alike: one of any size, or several of their prior's own."""
    if len(tasks[0].reading.picture.shape) > 2:
        return [_in_colour(tasks[0], options, watch)]
    choices = _choices(tasks, options)
    found: dict[int, Restored] = {}
    for candidate in dict.fromkeys(choice.candidate for choice in choices):
        rows = [row for row, choice in enumerate(choices) if choice.candidate is candidate]
        if len(tasks) > 1:
            seen = np.stack([tasks[row].reading.picture.pixels[:, :] for row in rows])
            damage = Damage.stacked([choices[row].damage for row in rows], seen.shape[1:])
            whole = candidate.solve(seen, damage, [(0, 0)] * len(rows))
        else:
            whole = candidate.posterior(replace(tasks[0].reading.picture, damage=choices[0].damage), watch)
        for place, row in enumerate(rows):
            found[row] = _answer(tasks[row], choices[row], whole, place, options)
    return [found[row] for row in range(len(tasks))]


def _choices(tasks: Sequence[_Job], options: Options) -> list[Choice]:
    """Prior, polarity and level of each picture."""
    first, pictures = tasks[0], [task.reading.picture for task in tasks]
    if first.named and pictures[0].shape == first.header.image_shape:
        prior = Prior(first.engines[0], options.invert)
        return [Choice(prior, picture.damage) for picture in pictures]
    candidates: list[Candidate] = [
        Prior(engine, invert) for engine in first.engines for invert in _polarities(engine, options.invert)
    ]
    if len(candidates) == 1 and pictures[0].damage.unknown is None:
        return [Choice(candidates[0], picture.damage) for picture in pictures]
    own_size = any(engine.description.image_shape == pictures[0].shape for engine in first.engines)
    if len(first.engines) > 1 and not (own_size or first.header.grey) and pictures[0].damage.touched:
        candidates += squares_in(pictures[0])
    choices = choose(pictures, candidates, grey=first.header.grey)
    if first.rival is not None:
        for place, rival in enumerate(choose(pictures, [Prior(first.rival)], grey=False)):
            lead = trust.lead(choices[place], rival)
            if lead < 0:
                choices[place] = replace(choices[place], ahead=lead)
    return [_with_prior(choice, picture, candidates) for choice, picture in zip(choices, pictures, strict=True)]


def _with_prior(choice: Choice, picture: Observed, candidates: Sequence[Candidate]) -> Choice:
    """A choice of squares with the prior that predicts them best, if one is ahead of independent squares."""
    squares = choice.candidate
    if not isinstance(squares, Squares):
        return choice
    priors = [each for each in candidates if isinstance(each, Prior)]
    (inner,) = choose([squares.original(replace(picture, damage=choice.damage))], priors, grey=False)
    return replace(choice, candidate=replace(squares, modules=inner.candidate)) if trust.recognised(inner) else choice


def _polarities(engine: PictureEngine, invert: bool) -> tuple[bool, ...]:
    """The polarities to choose between; one where it is given, or none differs."""
    header = engine.description
    if invert:
        return (True,)
    if header.task or header.grey:
        return (False,)
    even = header.whole and abs(float(engine.pixel_means().mean()) - 0.5) < EVEN
    return (False,) if even else (False, True)


def _answer(task: _Job, choice: Choice, whole: Posterior, place: int, options: Options) -> Restored:
    """The answer about one picture, believed or not."""
    header, original = task.header, task.original
    grey = header.grey
    means, deviations = whole.means[place], np.sqrt(whole.variances[place].clip(0))
    status = whole.status(place)
    seen = task.reading.picture.values()
    before = seen if grey else seen > 0.5
    after = means if grey else means > 0.5
    notes = [*task.reading.notes, *_notes(task, choice, whole, place, status, options)]
    if status is Status.DIVERGED:
        return _untouched(original, status, choice=choice, residual=whole.residual[place])
    doubt = status.sentence if status is Status.MAX_ITER and not header.task else ""
    if not (header.task and status is Status.MAX_ITER):
        refusal = trust.refusal(choice, before, after, means, status, float(whole.residual[place]))
        if refusal is not None:
            if not (task.named or options.force):
                return _untouched(original, refusal, choice=choice, residual=whole.residual[place])
            doubt = refusal.sentence
            notes.append(f"the result is doubtful: {doubt}")
    replaced = original.damage.hidden if not task.reading.picture.damage.touched else None
    if means.shape != original.shape:
        # Thresholded after enlarging, so that contours are smooth.
        size = (original.shape[0], original.shape[1])
        means, deviations = enlarge(means, size), enlarge(deviations, size)
        after = means if grey else means > 0.5
    changed = None
    if not grey and before.shape == after.shape:
        differs = before != after
        changed = float(np.mean(differs if replaced is None else differs & replaced))
    estimate = after
    if task.reading.tones is not None and not grey:
        black, white = task.reading.tones
        estimate = np.where(after, white, black)
    return Restored(
        estimate,
        means,
        deviations,
        status,
        int(whole.iterations[place]),
        float(whole.residual[place]),
        *choice.candidate.names,
        choice.found,
        changed,
        choice.bits,
        tuple(notes),
        doubt,
        replaced,
        tuple(layer[place] for layer in whole.layers),
    )


def _notes(task: _Job, choice: Choice, whole: Posterior, place: int, status: Status, options: Options) -> list[str]:
    """What the user should know of how a picture was restored."""
    candidate, notes = choice.candidate, []
    if choice.found is not None:
        notes.append(choice.found.sentence)
    if isinstance(candidate, Squares):
        return [*notes, f"was restored as a picture drawn {candidate.side} times as large"]
    assert isinstance(candidate, Prior)
    header = candidate.engine.description
    height, width = header.image_shape
    if status is not Status.CONVERGED:
        notes.append(outcome(status, header))
    elif whole.unsettled[place]:
        notes.append(f"the solver did not converge in {whole.unsettled[place]} of {whole.tiles[place]} tiles")
    if whole.tiles[place] > 1 and not header.whole:
        notes.append(f"restored in tiles of {width}x{height} pixels")
    if candidate.invert and not options.invert:
        notes.append(
            f"{header.name} expects {expected_by(candidate.engine)}, so the picture was inverted for it, and back"
        )
    if whole.blind[place]:
        notes.append(BLIND)
    if options.fit == "resize" and not near(task.original.shape, header.image_shape):
        notes.append(lost_detail(header.image_shape))
    if whole.inversion[place] > INVERTED and not header.kind.photographs:
        remedy = "leave the inversion out" if options.invert else f"try {option('invert')}"
        notes.append(f"looks inverted: {header.name} expects {expected_by(candidate.engine)}; {remedy}")
    return notes


def expected_by(engine: PictureEngine) -> str:
    """The polarity that a prior expects, in words."""
    return "dark on light" if engine.light_ground else "light strokes on dark"


def _untouched(picture: Observed, status: Status, *, choice: Choice | None = None, residual: float = 0.0) -> Restored:
    """The answer for a picture that is refused."""
    pixels = np.asarray(picture.pixels[:, :])
    return Restored(
        pixels,
        pixels,
        np.zeros(pixels.shape),
        status,
        0,
        float(residual),
        *(("", "") if choice is None else choice.candidate.names),
        None if choice is None else choice.found,
        0.0,
        None if choice is None else choice.bits,
        (status.sentence,),
        "",
        np.zeros(pixels.shape[:2], bool),
    )


def _in_colour(task: _Job, options: Options, watch: Watch) -> Restored:
    """A photograph (H, W, 3), plane by plane; prior and level are chosen by its light."""
    engines = [engine for engine in task.engines if engine.description.kind.photographs]
    if not engines:
        raise ModelError(f"{task.header.name} knows no colours; leave the model out, or convert a copy to greyscale")
    pixels = np.asarray(task.reading.picture.pixels[:, :])
    planes = MIDDLE + (pixels - MIDDLE) @ AXES.T
    found: list[Restored] = []
    light: Choice | None = None
    for number in range(3):
        picture = Observed(planes[..., number], task.reading.picture.damage if light is None else light.damage)
        part = replace(
            task, original=picture, reading=Reading(picture), engines=tuple(engines), header=engines[0].description
        )
        choice = _choices([part], options)[0] if light is None else replace(light, ahead=None)
        light = light or choice

        def seen(share: float, before: int = number) -> None:
            watch((before + share) / 3)

        whole = choice.candidate.posterior(replace(picture, damage=choice.damage), seen)
        found.append(_answer(part, choice, whole, 0, options))
        if found[-1].refused:
            return _untouched(task.original, Status(found[-1].status))
    means = MIDDLE + (np.stack([plane.means for plane in found], -1) - MIDDLE) @ AXES
    deviations = np.sqrt(np.stack([plane.deviations**2 for plane in found], -1) @ AXES**2)
    worst = max(Status(plane.status) for plane in found)
    return replace(found[0], estimate=means, means=means, deviations=deviations, status=worst)
