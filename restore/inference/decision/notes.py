"""What the user should know of how a picture was restored, one sentence each."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from restore.components import components
from restore.errors import option
from restore.inference.candidates import Prior, Squares
from restore.inference.case import Case
from restore.inference.choose import Choice
from restore.inference.engine import PictureEngine, Posterior
from restore.inference.marks.ground import HIGH_ENOUGH, letters
from restore.inference.options import polarity
from restore.inference.rivals.diffusion import Diffusion
from restore.sizes import near, size_text
from restore.status import Status

# Said of a picture with pixels that no tile sees anything around.
BLIND = "parts of the mask lie far from any visible pixel and were filled from the prior alone"

# Smaller shares would be written as 0.0%.
LEAST_WRITTEN = 0.001


def notes_of(case: Case, choice: Choice, whole: Posterior, index: int, status: Status) -> Iterator[str]:
    """Sentences about picture `index` of a posterior; `status` is how the solver ended."""
    yield from case.reading.notes
    yield from _of_small_letters(case, whole.means[index])
    if choice.level is not None:
        yield choice.level.sentence
    holes = case.holes
    if holes is not None and holes.any() and not case.header.grey:
        expected = float(np.minimum(whole.means[index], 1 - whole.means[index])[holes].mean())
        wrong = min(choice.surprise * expected, 0.5)
        share = f"about {wrong:.1%}" if wrong >= LEAST_WRITTEN else f"less than {LEAST_WRITTEN:.1%}"
        yield f"of the filled pixels {share} are expected to be wrong"
    candidate = choice.candidate
    if choice.ahead_of_it:
        yield f"{choice.ahead_of_it} predicts such holes better; leave {option('model')} out to take what does best"
    if isinstance(candidate, Squares):
        yield f"was restored as a picture drawn {candidate.side} times as large"
    elif isinstance(candidate, Diffusion):
        yield f"no prior predicts such holes better than diffusion, which filled them; {option('model')} names a prior"
    elif isinstance(candidate, Prior):
        yield from _of_prior(case, candidate, whole, index, status)


def _of_small_letters(case: Case, means: np.ndarray) -> Iterator[str]:
    """Said of a grey page that becomes black and white, whose letters are too small for that."""
    if not case.answered_by_reader or case.options.soft:
        return
    ink = (means > 0.5) == case.reading.inverted
    height, _, print_ = letters(ink, components(ink))
    if print_ and height < HIGH_ENOUGH:
        yield f"its letters, some {height} pixels high, are too small for black and white; {option('soft')} keeps greys"


def _of_prior(case: Case, prior: Prior, whole: Posterior, index: int, status: Status) -> Iterator[str]:
    header = prior.engine.header
    options = case.options
    if status is not Status.CONVERGED:
        yield status.sentence
    elif whole.unsettled[index] and not header.stops_as_learnt:
        yield f"the solver did not converge in {whole.unsettled[index]} of {whole.tiles[index]} tiles"
    if whole.tiles[index] > 1 and not header.whole:
        yield f"restored in tiles of {size_text(header.image_shape)} pixels"
    if whole.blind[index] and case.original.damage.hidden is not None:
        yield BLIND
    if options.fit == "resize" and not near(case.original.shape[:2], header.image_shape):
        yield f"was resized to {size_text(header.image_shape)} pixels and back, so little detail is left"
    if whole.inversion[index] > 0 and options.invert is not None and not header.kind.photographs:
        expected = expected_by(prior.engine)
        yield f"looks inverted: {header.name} expects {expected}; leave {polarity(options.invert)} out"


def expected_by(engine: PictureEngine) -> str:
    """The polarity that a prior expects, in words."""
    return "dark on light" if engine.light_ground else "light strokes on dark"
