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

from restore.channels import Specks
from restore.channels.damage import Damage, Observed
from restore.errors import ModelError, UsageError, option, require
from restore.images import enlarge, shrink
from restore.inference import specks, trust
from restore.inference.candidates import Candidate, Neighbours, Planes, Prior, Squares, squares_in
from restore.inference.choose import Choice, choose
from restore.inference.engine import PictureEngine, Posterior
from restore.inference.open import Engines, assumed
from restore.inference.options import Options
from restore.inference.restored import Level, Restored, of_one_level, share_changed, unsolved
from restore.inference.scans.reading import Reading, read
from restore.inference.tiles.blend import Watch
from restore.sizes import check_near, near, said
from restore.status import Status
from restore.zoo import leave_out
from restore.zoo.description import Description

# A picture whose pixels are this much likelier after inversion, in nats per pixel, looks inverted.
INVERTED = 0.05

# Said of a picture with pixels that no tile sees anything around.
BLIND = "has masked areas around which nothing is visible: the prior alone fills them"

# The most pixels of pictures that are restored together, and the most of such pictures at a time.
SMALL_PICTURE = 64 * 64
PICTURES_AT_ONCE = 256

# It is said if the posterior expects more than this share of the filled pixels to be wrong.
UNSURE = 0.05


@dataclass(frozen=True, eq=False)
class _Job:
    """One picture on its way.

    Attributes:
        index: its number among all.
        original: as it came.
        reading: as priors see it.
        engines: the priors to choose among.
        named: True if the prior was named.
        certain: True if its level was given, too, or it is called a page: it is restored anyway, and doubts are notes.
        compared: True if its prior has to be ahead of the field of neighbours, as a named one whose level is unknown.
    """

    index: int
    original: Observed
    reading: Reading
    engines: tuple[PictureEngine, ...]
    named: bool
    certain: bool
    compared: bool = False

    @property
    def picture(self) -> Observed:
        return self.reading.picture

    @property
    def header(self) -> Description:
        """The header of the first prior."""
        return self.engines[0].header

    @property
    def own_size(self) -> bool:
        """True for a picture of the size of a prior, too small to tell what it is not."""
        return any(engine.header.image_shape == self.picture.shape[:2] for engine in self.engines)

    @property
    def squares(self) -> bool:
        """True if squares may restore it: no prior is named, or of its size."""
        return len(self.engines) > 1 and not (self.own_size or self.header.grey)

    @property
    def read_alone(self) -> bool:
        """True for a grey page of which the prior that reads it says all, as no other was named."""
        return self.reading.page is not None and self.header.kind.pages

    @property
    def alike(self) -> Any:
        """What small pictures share that are restored together; of larger ones each is alone."""
        damage, shape = self.picture.damage, self.picture.shape
        # Squares of one picture are not those of another.
        alone = self.reading.page is not None or self.original.damage.specks is not None or self.squares
        if len(shape) > 2 or shape[0] * shape[1] > SMALL_PICTURE or alone:
            return self.index
        return *map(id, self.engines), self.certain, damage.unknown, type(damage.p), damage.hidden is None, shape


def restore(
    pictures: Sequence[Observed], options: Options, engines: Engines | None = None, watch: Watch = lambda share: None
) -> list[Restored]:
    """Restore pictures; small ones of one shape together.

    Args:
        pictures: the damaged pictures.
        options: how.
        engines: opens priors; None to open those that `options` names.
        watch: receives the number of pictures that are done; of one restored in blocks, the share that is done counts.

    Returns:
        The answers, in order. A picture that is refused comes back as it came, and its status says why.

    Raises:
        UsageError: if the damage does not fit the prior.
        ModelError: if a prior cannot be opened, or a picture cannot be resized.
    """
    opened = engines or Engines(options)
    answers: dict[int, Restored] = {}
    groups: dict[Any, list[_Job]] = {}
    done = 0.0

    def pass_on(share: float) -> None:
        nonlocal done
        done = max(done, len(answers) + share)  # a page is read, and may then be restored by another prior
        watch(done)

    def add(jobs: Sequence[_Job]) -> None:
        for job, answer in zip(jobs, _answers(jobs, options, pass_on), strict=True):
            answers[job.index] = answer
        pass_on(0)

    for index, picture in enumerate(pictures):
        job = _read(index, picture, options, opened, pass_on)
        if isinstance(job, Restored):
            answers[index] = job
            pass_on(0)
        elif job.read_alone:  # its reading was the work
            add([job])
        else:
            groups.setdefault(job.alike, []).append(job)
    for jobs in groups.values():
        for first in range(0, len(jobs), PICTURES_AT_ONCE):
            add(jobs[first : first + PICTURES_AT_ONCE])
    return [answers[index] for index in range(len(pictures))]


def _read(index: int, original: Observed, options: Options, engines: Engines, watch: Watch) -> _Job | Restored:
    """A picture as its priors see it, with what is to be found; or the answer where they need or can not see it."""
    opened = _for_colours(engines.for_picture(original)) if len(original.shape) > 2 else engines.for_picture(original)
    header = opened[0].header
    picture = replace(original, damage=assumed(original.damage, header))
    header.check_damage(picture.damage)
    if options.fit == "resize":
        require(len(picture.shape) == 2, f"{option('fit', 'resize')} is not for colours; leave it out")
        if not options.force:
            check_near(picture.shape[:2], header.image_shape)
        hidden = picture.damage.hidden
        values, mask = shrink(np.asarray(picture.pixels[:, :]), hidden, header.image_shape)
        picture = Observed(values, replace(picture.damage, hidden=None if hidden is None else mask))
    p = picture.damage.p
    if isinstance(p, np.ndarray) and p.shape != picture.shape[:2]:
        raise UsageError(f"p has shape {p.shape}; give one number, or one per pixel: {picture.shape[:2]}")
    unknown = original.damage.unknown if original.damage.specks is not None else picture.damage.unknown
    named = engines.named
    certain, scanned = named and unknown is None, original.damage.scanned
    if (scanned or not certain) and (answer := of_one_level(original, unknown)):
        return answer
    job = _Job(index, original, Reading(picture), opened, named, certain or scanned)
    if header.grey:
        return job
    reader = opened[0] if header.kind.pages else None
    threshold = header.threshold / 255 if named else None
    careful = not (job.certain or header.task or options.force)
    reading = read(picture, threshold, lambda: Prior(reader or engines.reader, options.invert), watch, careful=careful)
    if reading in (Status.NOT_INK, Status.FAINT) and original.filled_only and not (named or original.coloured):
        return _Job(index, original, Reading(picture), engines.for_picture(original, grey=True), False, False)
    if isinstance(reading, Status):
        return _refused(job, reading, options)
    if reading.sheet is not None and not (named or reading.sheet.for_others):
        job = replace(job, engines=(engines.reader,))
    if reading.sheet is not None and not original.filled_only:
        reading = replace(reading, tones=None)
    return replace(job, reading=reading, compared=named and unknown == "p" and not job.own_size)


def _for_colours(engines: Sequence[PictureEngine]) -> tuple[PictureEngine, ...]:
    """The priors that restore colours; raises ModelError if there are none."""
    of_photographs = tuple(engine for engine in engines if engine.header.kind.photographs)
    if not of_photographs:
        name = engines[0].header.name
        raise ModelError(f"{name} knows no colours; leave the model out, or convert a copy to greyscale")
    return of_photographs


def _answers(jobs: Sequence[_Job], options: Options, watch: Watch) -> list[Restored]:
    """The answers about pictures that are restored alike: one of any size, or several of their prior's own."""
    if jobs[0].original.damage.specks is not None:
        return [_without_specks(jobs[0], options)]
    choices = _choices(jobs, options)
    answers: dict[int, Restored] = {}
    kinds: dict[tuple[Candidate, bool], list[int]] = {}
    for row, (job, choice) in enumerate(zip(jobs, choices, strict=True)):
        if job.certain or options.force or trust.recognised(choice):
            kinds.setdefault((choice.candidate, choice.unchanged), []).append(row)
        else:  # whatever the solver would find
            answers[row] = _refused(job, Status.UNRECOGNISED, options, choice)
    for rows in kinds.values():
        try:
            posterior = _posterior([jobs[row] for row in rows], [choices[row] for row in rows], watch)
        except ModelError as fault:
            failed = _header(jobs[rows[0]], choices[rows[0]]).name
            rest = tuple(engine for engine in jobs[0].engines if engine.header.name != failed)
            if not rest:
                raise
            leave_out(str(fault))
            others = [replace(jobs[row], engines=rest) for row in rows]
            answers |= dict(zip(rows, _answers(others, options, watch), strict=True))
            continue
        for index, row in enumerate(rows):
            answers[row] = _answer(jobs[row], choices[row], posterior, index, options)
    return [answers[row] for row in range(len(jobs))]


def _posterior(jobs: Sequence[_Job], choices: Sequence[Choice], watch: Watch) -> Posterior:
    """The posterior of pictures for which one candidate was chosen, all of them unchanged or none."""
    candidate = choices[0].candidate
    if jobs[0].read_alone:
        assert jobs[0].reading.page is not None
        return jobs[0].reading.page
    if len(jobs) == 1 and not choices[0].unchanged:
        return candidate.posterior(replace(jobs[0].picture, damage=choices[0].damage), watch)
    pictures = np.stack([job.picture.values() for job in jobs])
    if choices[0].unchanged:
        return Posterior.of_pixels(pictures, np.zeros(pictures.shape), 0)
    damage = Damage.stacked([choice.damage for choice in choices], pictures.shape[1:])
    return candidate.solve(pictures, damage, [(0, 0)] * len(jobs))


def _choices(jobs: Sequence[_Job], options: Options) -> list[Choice]:
    """Prior, polarity and level of each picture: the only ones there are, or those that predict it best."""
    first, pictures = jobs[0], [job.picture for job in jobs]
    if first.read_alone:
        return [Choice(Prior(first.engines[0], options.invert), first.picture.damage)]
    candidates = _candidates(first, options)
    if len(candidates) == 1 and pictures[0].damage.unknown is None:
        return [Choice(candidates[0], picture.damage) for picture in pictures]
    if len(first.picture.shape) > 2:  # compared by their green, whose noise a file cuts off at black and white
        pictures = [replace(picture, pixels=picture.values()[..., 1]) for picture in pictures]
    choices = choose(pictures, candidates, grey=first.header.grey)
    if first.compared:
        for index, field in enumerate(choose(pictures, [Neighbours()], grey=False)):
            lead = trust.lead(choices[index], field)
            if lead < 0:
                choices[index] = replace(choices[index], ahead=lead)
    return [_with_prior(choice, picture, candidates) for choice, picture in zip(choices, pictures, strict=True)]


def _candidates(job: _Job, options: Options) -> list[Candidate]:
    """The candidates: each prior in each polarity, and squares if no prior is named or of the picture's size."""
    if len(job.picture.shape) > 2:
        return [Planes(engine, options.invert) for engine in job.engines]
    if job.named and job.certain and job.own_size:
        return [Prior(job.engines[0], options.invert)]
    priors = [Prior(engine, invert) for engine in job.engines for invert in _polarities(engine, options.invert)]
    return [*priors, *(squares_in(job.picture) if job.squares else [])]


def _with_prior(choice: Choice, picture: Observed, candidates: Sequence[Candidate]) -> Choice:
    """A choice of squares with the prior that predicts them best, if one is ahead of independent squares.

    The chessboards of `benchmarks/choices/no_harm.py` judge it.
    """
    squares = choice.candidate
    if not isinstance(squares, Squares):
        return choice
    priors = [candidate for candidate in candidates if isinstance(candidate, Prior)]
    (inner,) = choose([squares.original(replace(picture, damage=choice.damage))], priors, grey=False)
    if not trust.recognised(inner):
        return choice
    return replace(choice, candidate=replace(squares, prior=inner.candidate.prior))


def _polarities(engine: PictureEngine, invert: bool) -> tuple[bool, ...]:
    """The polarities to choose between; one where it is given, or none differs."""
    if invert:
        return (True,)
    return (False, True) if engine.header.polarised else (False,)


def _judged(
    job: _Job,
    choice: Choice,
    ended: tuple[Status, float],
    shown: tuple[np.ndarray, np.ndarray, np.ndarray],
    force: bool,
) -> tuple[Status | None, str]:
    """The reason to refuse a picture, None to believe the answer; and what makes the answer doubtful, or nothing.

    `ended` is how the solver ended and the residual, `shown` the picture before and after, and the means.
    """
    status, residual = ended
    if status is Status.DIVERGED:
        return status, ""
    # What the caller calls a page is read in any case.
    sheet = job.reading.sheet
    doubt = "" if sheet is None or sheet.refusal is None else sheet.refusal.sentence
    # A page was judged when it was read, and the damage of a prior with a task is the one that it has learnt.
    if job.read_alone or job.header.task:
        return None, doubt
    refusal = trust.refusal(choice, *shown, status, residual)
    if refusal is None:
        return None, status.sentence if status is Status.MAX_ITER else doubt
    # A prior that knows pictures of this very size may change few pixels, with little to gain.
    harmless = refusal is Status.NO_GAIN and job.named and job.own_size
    return (None, refusal.sentence) if job.certain or force or harmless else (refusal, "")


def _header(job: _Job, choice: Choice) -> Description:
    """The header of the prior that restores a picture."""
    prior = choice.candidate.prior
    return prior.engine.header if prior else job.header


def _answer(job: _Job, choice: Choice, whole: Posterior, index: int, options: Options) -> Restored:
    """The answer about one picture, believed or not."""
    grey, original, header = job.header.grey, job.original, _header(job, choice)
    means, deviations = whole.means[index], np.sqrt(whole.variances[index].clip(0))
    status, residual = Status(whole.status[index]), float(whole.residual[index])
    if status is Status.MAX_ITER and header.stops_as_learnt:
        status = Status.CONVERGED
    pixels = job.picture.values()
    if original.filled_only and not grey:
        means = np.where(_alone(means > 0.5, job.picture.damage.hidden), 1 - means, means)
    before, after = (values if grey else values > 0.5 for values in (pixels, means))
    refusal, doubt = _judged(job, choice, (status, residual), (before, after, means), options.force)
    if refusal is not None:
        return _refused(job, refusal, options, choice, residual)
    visible = job.picture.visible
    if not grey and trust.spotless(choice, float(np.mean((before != after)[visible]))):
        choice = replace(choice, level=Level("p", 0.0))
        means, deviations = np.where(visible, before, means), np.where(visible, 0, deviations)
        after = means > 0.5
    notes = [*job.reading.notes, *_notes(job, choice, whole, index, status, options)]
    notes += [f"the result is doubtful: {doubt}"] if doubt not in ("", status.sentence) else []
    sheet = job.reading.sheet if job.read_alone and options.soft and means.shape == original.shape else None
    replaced = ~original.visible if original.filled_only or choice.noiseless else None
    tones, cut = job.reading.tones, job.reading.cut
    if cut is not None and replaced is None:
        if job.certain or options.force or not job.reading.drawn or before.shape != original.shape:
            notes.append(f"has grey levels, which were cut to black and white at {round(255 * cut)} of 255")
            tones = None
        else:
            replaced = before != after
    if means.shape != original.shape:
        # Thresholded after enlarging, so that contours are smooth.
        size = (original.shape[0], original.shape[1])
        means, deviations = enlarge(means, size), enlarge(deviations, size)
        after = means if grey else means > 0.5
    flipped = None
    if not grey and before.shape == after.shape:
        differs = before != after
        flipped = float(np.mean(differs if replaced is None else differs & replaced))
    estimate = np.where(after, tones[1], tones[0]) if tones is not None and not grey else after
    return Restored(
        **_chosen(choice, original),
        estimate=estimate,
        means=means,
        deviations=deviations,
        status=status,
        iterations=int(whole.iterations[index]),
        residual=residual,
        changed=None if grey or job.read_alone else share_changed(original, estimate, replaced),
        flipped=flipped,
        notes=tuple(notes),
        doubt=doubt,
        replaced=replaced,
        lightened=None if sheet is None else sheet.lightened(original.values(), means, inverted=options.invert),
        layers=tuple(layer[index] for layer in whole.layers),
    )


def _alone(white: np.ndarray, hidden: np.ndarray | None) -> np.ndarray:
    """Hidden pixels of a black and white picture (H, W) that differ from all eight around them, boolean (H, W)."""
    padded = np.pad(white, 1, mode="edge")
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3)).sum((2, 3), dtype=np.int8)
    alone = windows == np.where(white, 1, 8)
    return alone if hidden is None else alone & hidden


def _without_specks(job: _Job, options: Options) -> Restored:
    """A picture without specks, under the prior and in the polarity that predict its pixels best."""
    priors = [candidate for candidate in _candidates(job, options) if isinstance(candidate, Prior)]
    (choice,) = choose([job.picture], priors, grey=False)
    doubtful = not trust.recognised(choice)
    if doubtful and not (job.certain or options.force):
        return _refused(job, Status.UNRECOGNISED, options, choice)
    prior, damage, pixels = choice.candidate.prior, job.original.damage, job.picture.values()
    assert prior is not None
    done = specks.cleaned(pixels, prior, None if damage.unknown else Specks(damage.known("specks")))
    choice = replace(choice, level=Level("specks", done.specks.share) if damage.unknown else None)
    found = (*job.reading.notes, *([choice.level.sentence] if choice.level else []))
    after, tones = done.white > 0.5, job.reading.tones
    removed = after != (pixels > 0.5)
    estimate = np.where(after, tones[1], tones[0]) if tones is not None else after
    return Restored(
        **_chosen(choice, job.original),
        estimate=estimate,
        means=done.white,
        deviations=np.sqrt(done.white * (1 - done.white)),
        status=Status.CONVERGED,
        changed=share_changed(job.original, estimate, removed),
        flipped=float(np.mean(removed)),
        notes=(*found, f"{done.count} specks were removed"),
        replaced=removed,
        doubt=Status.UNRECOGNISED.sentence if doubtful else "",
    )


def _notes(job: _Job, choice: Choice, whole: Posterior, index: int, status: Status, options: Options) -> list[str]:
    """What the user should know of how a picture was restored."""
    candidate, notes = choice.candidate, []
    if choice.level is not None:
        notes.append(choice.level.sentence)
    hidden = job.picture.damage.hidden
    if hidden is not None and hidden.any() and not job.header.grey:
        doubt = float(np.minimum(whole.means[index], 1 - whole.means[index])[hidden].mean())
        if doubt > UNSURE:
            notes.append(f"of the filled pixels about {doubt:.0%} are expected to be wrong")
    if isinstance(candidate, Squares):
        return [*notes, f"was restored as a picture drawn {candidate.side} times as large"]
    assert isinstance(candidate, Prior)
    header = candidate.engine.header
    if status is not Status.CONVERGED:
        notes.append(status.sentence)
    elif whole.unsettled[index] and not header.stops_as_learnt:
        notes.append(f"the solver did not converge in {whole.unsettled[index]} of {whole.tiles[index]} tiles")
    if whole.tiles[index] > 1 and not header.whole:
        notes.append(f"restored in tiles of {said(header.image_shape)} pixels")
    if candidate.invert and not options.invert:
        expected = expected_by(candidate.engine)
        notes.append(f"{header.name} expects {expected}, so the picture was inverted for it, and back")
    if whole.blind[index]:
        notes.append(BLIND)
    if options.fit == "resize" and not near(job.original.shape[:2], header.image_shape):
        notes.append(f"was resized to {said(header.image_shape)} pixels and back, so little detail is left")
    if whole.inversion[index] > INVERTED and not header.kind.photographs:
        remedy = "leave the inversion out" if options.invert else f"try {option('invert')}"
        notes.append(f"looks inverted: {header.name} expects {expected_by(candidate.engine)}; {remedy}")
    return notes


def expected_by(engine: PictureEngine) -> str:
    """The polarity that a prior expects, in words."""
    return "dark on light" if engine.light_ground else "light strokes on dark"


def _chosen(choice: Choice | None, picture: Observed) -> dict[str, Any]:
    """The fields of an answer about the chosen prior and level, if any were chosen."""
    given = Level.given(picture.damage)
    if choice is None:
        return {"model": "", "engine": "", "level": given, "observed": picture}
    model, backend = choice.candidate.names
    named = {"model": model, "engine": backend, "observed": picture}
    return named | {"level": choice.level or given, "bits": choice.bits}


def _refused(job: _Job, why: Status, options: Options, choice: Choice | None = None, residual: float = 0.0) -> Restored:
    """The answer for a picture that is refused."""
    picture, cut = job.original, job.reading.cut is not None
    facts: dict[str, Any] = {"replaced": np.zeros(picture.shape[:2], bool), "residual": residual}
    known = {"named": job.named, "inverted": options.invert, "cut": cut, "grey": job.header.grey}
    facts["remedy"] = trust.remedy(why, picture, **known)
    return unsolved(picture.values(), why, why.sentence, **facts, **_chosen(choice, picture))
