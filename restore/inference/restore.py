"""The one way from damaged pictures to restored ones, for the command, Python, evaluation and the local page alike.

A picture is read for its priors (`restore.inference.case`); prior, polarity and noise level are chosen where they are
not given (`restore.inference.choose`); the posterior is found, from one tile or from many (`restore.inference.tiles`),
unless a first look says that nothing would change; the facts that were measured decide (`restore.inference.decision`);
and the answer is painted into the picture.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from restore.channels.damage import Damage, Observed
from restore.errors import ModelError
from restore.inference.candidates import Candidate, Prior, Squares
from restore.inference.case import Case
from restore.inference.choose import Choice, choose
from restore.inference.decision.facts import Facts
from restore.inference.decision.looking import found_clean, found_hopeless
from restore.inference.decision.measured import facts_of_choice, facts_of_draft, patterned
from restore.inference.decision.notes import notes_of
from restore.inference.decision.remedies import remedy
from restore.inference.decision.rules import Ask, objection
from restore.inference.engine import Posterior
from restore.inference.open import Engines
from restore.inference.options import Options
from restore.inference.painting import Draft, at_lowest, chosen, painted, spotless
from restore.inference.restored import Restored, blank, not_sure
from restore.inference.scans.reading import LEAST_PAGE
from restore.inference.tiles.blend import Watch
from restore.status import Outcome, Status
from restore.zoo import leave_out
from restore.zoo.description import Description

if TYPE_CHECKING:
    from restore.inference.marks.scene import Mark  # the room is opened only for pictures that may have marks

# The most small pictures that are restored at a time.
PICTURES_AT_ONCE = 256


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
        The answers, in order. A picture of which no restoration can be trusted comes back as it came.

    Raises:
        UsageError: if the damage does not fit the prior.
        ModelError: if a prior cannot be opened, or a picture cannot be resized.
    """
    return _Run(engines or Engines(options), watch).all(pictures, options)


def marks_in(picture: Observed, options: Options, engines: Engines) -> list[Mark]:
    """The marks of a picture of the kinds that options name, or that are found quickly; kinds without any are left out.

    Raises:
        UsageError: if the picture is not in black and white.
    """
    from restore.inference.marks import removal

    case = Case.of(0, picture, options, engines, lambda share: None)
    if case.blank is not None:
        return []
    page = case.reading.page if case.answers_whole_page else None
    seen = case if page is None else removal.as_read(case, page.means[0])
    return removal.marks_of(seen, _priors(case, engines))


@dataclass(eq=False)
class _Run:
    """What restoring several pictures shares: open priors, progress, the answers so far, and advice that was tried.

    `advised` is False where advice itself is tried.
    """

    engines: Engines
    watch: Watch
    advised: bool = True
    answers: dict[int, Restored] = field(default_factory=dict)
    remedies: dict[Any, str] = field(default_factory=dict)
    done: float = 0.0

    def all(self, pictures: Sequence[Observed], options: Options) -> list[Restored]:
        """The answers about pictures, in order."""
        groups: dict[Any, list[Case]] = {}
        for index, picture in enumerate(pictures):
            case = Case.of(index, picture, options, self.engines, self.pass_on)
            if case.blank is not None:
                self.add({index: blank(picture, case.blank)})
            elif options.marks and not case.answers_whole_page:
                self.add({index: self._without_marks(case)})
            elif case.objection is not None:
                self.add({index: self.refused(case, case.objection)})
            elif case.answered_by_reader:  # its reading was the work
                self.add({index: self._looked_over(case, self.answers_of([case])[index])})
            else:
                groups.setdefault(case.batch_key, []).append(case)
        for cases in groups.values():
            for first in range(0, len(cases), PICTURES_AT_ONCE):
                part = cases[first : first + PICTURES_AT_ONCE]
                answers = self.answers_of(part)
                self.add({case.index: self._looked_over(case, answers[case.index]) for case in part})
        return [self.answers[index] for index in range(len(pictures))]

    def _looked_over(self, case: Case, answer: Restored) -> Restored:
        """An answer that found no noise, or the least, without the marks that cannot be part of the picture.

        Of a grey page that its reader answers they are named alone.
        """
        noisy = answer.outcome is Outcome.RESTORED and not (case.answered_by_reader or at_lowest(answer.level))
        if noisy or not (self.advised and _may_have_marks(case)):
            return answer
        from restore.inference.marks import removal

        priors = _priors(case, self.engines)
        if case.answered_by_reader:  # where it was named, nothing tells specks from content
            return removal.named(case, answer, priors) if priors else answer
        return removal.looked_over(case, answer, priors, self._attempt)

    def pass_on(self, share: float) -> None:
        """Tell how many pictures are done: a page is read, and may then be restored by another prior."""
        self.done = max(self.done, len(self.answers) + share)
        self.watch(self.done)

    def add(self, answers: dict[int, Restored]) -> None:
        self.answers |= answers
        self.pass_on(0)

    def answers_of(self, cases: Sequence[Case]) -> dict[int, Restored]:
        """The answers about pictures of one batch, by their numbers."""
        answers: dict[int, Restored] = {}
        alike: dict[tuple[Candidate, bool], list[tuple[Case, Choice]]] = {}
        for case, choice in zip(cases, _choices(cases), strict=True):
            found = choice.level is not None  # then a look at a few parts may do
            choice = choice.without_noise if found and found_clean(case, choice) else choice
            why = objection(facts_of_choice(choice)) or (found_hopeless(case, choice) if found else None)
            if case.ask is Ask.FIND and why is not None:  # whatever the solver would find
                answers[case.index] = self.refused(case, why, choice)
            else:
                alike.setdefault((choice.candidate, choice.unchanged), []).append((case, choice))
        for pairs in alike.values():
            answers |= self._solved(pairs)
        return answers

    def _solved(self, pairs: Sequence[tuple[Case, Choice]]) -> dict[int, Restored]:
        """The answers about pictures for which one candidate was chosen; without it if it fails."""
        cases, choices = zip(*pairs, strict=True)
        try:
            posterior = _posterior(cases, choices, self.pass_on)
        except ModelError as fault:
            failed = _header(cases[0], choices[0]).name
            rest = tuple(engine for engine in cases[0].engines if engine.header.name != failed)
            if not rest:
                raise
            leave_out(str(fault))
            return self.answers_of([replace(case, engines=rest) for case in cases])
        answers: dict[int, Restored] = {}
        turned: list[tuple[Case, Choice]] = []
        prior = choices[0].candidate.prior
        one_way = prior is not None and not prior.invert and not prior.engine.header.kind.photographs
        for index, (case, choice) in enumerate(pairs):
            if one_way and case.options.invert is None and posterior.inversion[index] > 0:
                turned.append((case, choice))  # likelier in the other polarity
            else:
                answers[case.index] = self._answer(case, choice, posterior, index)
        if turned and prior is not None:
            other = replace(prior, invert=True)
            answers |= self._solved([(case, replace(choice, candidate=other)) for case, choice in turned])
        return answers

    def _answer(self, case: Case, choice: Choice, whole: Posterior, index: int) -> Restored:
        """The answer about one picture, believed or not."""
        status = _ended(case, choice, Status(whole.status[index]))
        draft = Draft.of(case, choice, whole, index)
        facts = case.reading.facts | facts_of_choice(choice)
        if status is Status.DIVERGED:
            return self.refused(case, status, choice, facts)
        if not case.judged_as_read:
            facts |= facts_of_draft(choice, draft, case.picture.visible, sized=case.named and case.own_size)
        draft, facts, notes = _without_patterns(case, choice, draft, facts)
        draft, marks, said = self._without_marks_as_read(case, draft)
        notes += said
        why = objection(facts)
        find = case.ask is Ask.FIND
        if not draft.grey and spotless(choice, facts, why if find else None):
            choice, draft = choice.without_noise, draft.untouched(case.picture.visible)
            why = None
        if find and why is not None:
            return self.refused(case, why, choice, facts)
        doubt = status if why is None else why
        notes += notes_of(case, choice, whole, index, status)
        notes += [f"the result is doubtful: {why.sentence}"] if why is not None else []
        return painted(
            case,
            choice,
            draft,
            "" if doubt is Status.CONVERGED else doubt.sentence,
            notes=notes,
            marks=marks,
            status=status,
            facts=facts,
            iterations=int(whole.iterations[index]),
            residual=float(whole.residual[index]),
            layers=tuple(layer[index] for layer in whole.layers),
        )

    def _without_marks(self, case: Case) -> Restored:
        """A picture without the marks that are to be removed."""
        from restore.inference.marks import removal

        return removal.without(case, _priors(case, self.engines), self._attempt)

    def _without_marks_as_read(self, case: Case, draft: Draft) -> tuple[Draft, dict[str, np.ndarray], list[str]]:
        """The answer about a grey page without the marks in it that are to be removed, where they are, and a note."""
        if not (case.options.marks and case.answers_whole_page):
            return draft, {}, []
        from restore.inference.marks import removal

        return removal.from_page(case, draft, _priors(case, self.engines), self._attempt)

    def refused(self, case: Case, why: Status, choice: Choice | None = None, facts: Facts | None = None) -> Restored:
        """The answer about a picture that comes back as it was, with advice."""
        key = why, case.batch_key
        if self.advised and key not in self.remedies:
            self.remedies[key] = remedy(case, why, self._attempt)
        known = facts or case.reading.facts | (Facts() if choice is None else facts_of_choice(choice))
        return not_sure(case.original, why, self.remedies.get(key, ""), known, **chosen(choice, case.original))

    def _attempt(self, picture: Observed, options: Options) -> Restored:
        """Restore a part of a picture in another way."""
        engines = self.engines.with_options(options)
        return _Run(engines, lambda share: None, advised=False).all([picture], options)[0]


def _posterior(cases: Sequence[Case], choices: Sequence[Choice], watch: Watch) -> Posterior:
    """The posterior of pictures for which one candidate was chosen, all of them unchanged or none."""
    candidate = choices[0].candidate
    page = cases[0].reading.page
    if cases[0].answered_by_reader and page is not None:
        return page
    if len(cases) == 1 and not choices[0].unchanged:
        return candidate.posterior(replace(cases[0].picture, damage=choices[0].damage), watch)
    values = [case.picture.values() for case in cases]
    pictures = values[0][None] if len(cases) == 1 else np.stack(values)  # large ones come alone: no copy
    if choices[0].unchanged:
        return Posterior.of_pixels(pictures, np.broadcast_to(np.float32(0), pictures.shape), 0)
    damage = Damage.stacked([choice.damage for choice in choices], pictures.shape[1:])
    return candidate.solve(pictures, damage, [(0, 0)] * len(cases))


def _choices(cases: Sequence[Case]) -> list[Choice]:
    """Prior, polarity and level of each picture: the only ones there are, or those that predict it best."""
    first = cases[0]
    pictures = [case.picture for case in cases]
    candidates = first.candidates
    if len(candidates) == 1 and (first.answered_by_reader or pictures[0].damage.unknown is None):
        return [Choice(candidates[0], picture.damage) for picture in pictures]
    if len(first.picture.shape) > 2:  # compared by their green, whose noise a file cuts off at black and white
        pictures = [replace(picture, pixels=picture.values()[..., 1]) for picture in pictures]
    choices = choose(pictures, candidates, grey=first.header.grey)
    pairs = zip(choices, pictures, strict=True)
    if first.named:  # who names a prior has said that it knows such pictures
        return [_as_named(choice, picture, candidates) for choice, picture in pairs]
    return [_with_prior(choice.cautious(picture), picture, candidates) for choice, picture in pairs]


def _may_have_marks(case: Case) -> bool:
    """True if marks are looked for in a picture of which nothing is said: a large one in black and white."""
    damage = case.original.damage
    options = case.options
    asked = bool(options.marks) or options.remove is not None or options.force
    described = asked or damage.touched or damage.hidden is not None
    ink = len(case.original.shape) == 2 and not (case.header.grey or case.header.task)
    return ink and not described and min(case.original.shape) >= LEAST_PAGE


def _priors(case: Case, engines: Engines) -> list[Prior]:
    """The priors of black and white among the candidates; of a page that its reader answers, those of others."""
    opened = engines.for_picture(case.original) if case.answered_by_reader else case.engines
    able = tuple(engine for engine in opened if not engine.header.kind.pages)
    candidates = replace(case, engines=able).candidates if able else []
    return [candidate for candidate in candidates if isinstance(candidate, Prior)]


def _as_named(choice: Choice, picture: Observed, candidates: Sequence[Candidate]) -> Choice:
    """A choice of the prior that was named, where a rival is ahead of it, too."""
    if choice.candidate.prior is not None:
        return choice
    (named,) = choose([picture], [one for one in candidates if one.prior is not None], grey=False)
    return replace(named, ahead_of_it=choice.candidate.names[0])


def _with_prior(choice: Choice, picture: Observed, candidates: Sequence[Candidate]) -> Choice:
    """A choice of squares with the prior that predicts them best, if one is ahead of independent squares.

    The chessboards of `benchmarks/choices/no_harm.py` judge it. Squares without edges only helped to find the level.
    """
    squares = choice.candidate
    if not isinstance(squares, Squares):
        return choice
    if not squares.edges:
        (other,) = choose([picture], [one for one in candidates if not isinstance(one, Squares)], grey=False)
        return other
    priors = [candidate for candidate in candidates if isinstance(candidate, Prior)]
    (inner,) = choose([squares.original(replace(picture, damage=choice.damage))], priors, grey=False)
    if objection(facts_of_choice(inner)) is not None:
        return choice
    return replace(choice, candidate=replace(squares, prior=inner.candidate.prior))


def _without_patterns(case: Case, choice: Choice, draft: Draft, facts: Facts) -> tuple[Draft, Facts, list[str]]:
    """An answer that leaves parts of a picture as they were, if the rest may be trusted; its facts, and a note."""
    if case.ask is not Ask.FIND or objection(facts) is not Status.NOT_NOISE:
        return draft, facts, []
    visible = case.picture.visible
    stays = patterned(draft, visible)
    rest = draft.untouched(stays & visible)
    known = facts | facts_of_draft(choice, rest, visible & ~stays, sized=case.named and case.own_size)
    # A picture of which most would stay is another matter as a whole.
    if stays.mean() >= 0.5 or objection(known) is not None or spotless(choice, known):
        return draft, facts, []
    return rest, known, [f"{stays.mean():.0%} of it stays as it was: {Status.NOT_NOISE.sentence}"]


def _ended(case: Case, choice: Choice, status: Status) -> Status:
    """How the solver ended; one that stops as it has learnt has converged."""
    early = status is Status.MAX_ITER and _header(case, choice).stops_as_learnt
    return Status.CONVERGED if early else status


def _header(case: Case, choice: Choice) -> Description:
    """The header of the prior that restores a picture."""
    prior = choice.candidate.prior
    return prior.engine.header if prior else case.header
