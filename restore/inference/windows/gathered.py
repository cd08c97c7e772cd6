"""The marginals of several images that were restored one by one, as those of a batch."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from restore.inference.choice import Tried
from restore.inference.pictures import Restored
from restore.inference.windows.choosing.survey import Choice
from restore.marginals import Marginals, NoiseLevel


def marginals_of(each: Sequence[tuple[Choice | Tried, Restored]]) -> Marginals:
    """The marginals of the images' pixels, at their own size.

    Means and variances are (N, H·W), or where sizes differ N arrays. log Z is not known; evidence and levels of images
    restored in windows are those of their samples.

    Args:
        each: by what every image was restored, and what came of it.
    """
    choices, parts = [choice for choice, _ in each], [part for _, part in each]
    evidence = [choice.marginals.evidence for choice in choices if choice.marginals.evidence is not None]
    return Marginals(
        (_stacked([part.means for part in parts]),),
        (_stacked([part.deviations**2 for part in parts]),),
        np.full(len(parts), np.nan),
        np.array([part.iterations for part in parts]),
        np.array([part.residual for part in parts]),
        np.array([int(part.status) for part in parts]),
        np.concatenate(evidence) if len(evidence) == len(parts) else None,
        _levels([choice.marginals.noise for choice in choices]),
        ", ".join(dict.fromkeys(name for choice in choices for name in choice.names)),
        np.array([part.shortfall for part in parts]),
    )


def _stacked(images: Sequence[np.ndarray]) -> np.ndarray:
    flat = [image.astype(np.float32).ravel() for image in images]
    if len({image.shape for image in images}) == 1:
        return np.stack(flat)
    apart = np.empty(len(flat), object)
    apart[:] = flat
    return apart


def _levels(each: Sequence[NoiseLevel | None]) -> NoiseLevel | None:
    known = [level for level in each if level is not None]
    rates = [level.rates for level in known if level.rates is not None]
    # One for each image, or none: some may be scans.
    if not known or len(known) < len(each):
        return None
    return NoiseLevel(
        np.concatenate([level.chosen for level in known]),
        known[0].tried,
        np.concatenate([level.evidence for level in known]),
        np.concatenate([level.converged for level in known]),
        np.concatenate(rates) if len(rates) == len(known) else None,
    )
