"""Restoring pictures: from grey values of any size to a prior's and back, in batches, with any engine.

Shared by the Python interface and the command line, which differ only in how images come in and go out.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, Protocol

import numpy as np

from restore.description import Description
from restore.errors import ModelError, UsageError, shown
from restore.evidence import FLIPS, IMPULSES, NOISE, choose_level, log_likelihood_of_black
from restore.explained import Observed, shortfall, unexplained
from restore.images import enlarge, shrink
from restore.marginals import Marginals, NoiseLevel, Status, voided
from restore.sizes import lost_detail, near, said, without_resizing

# Engines are told of noise in single precision: what that cannot hold is the nearest that it can.
SMALLEST, LARGEST = float(np.finfo(np.float32).tiny), float(np.finfo(np.float32).max)

# A level of noise that is to be chosen by its evidence: the only text that `check_levels` lets pass.
Auto = Literal["auto"]

# An image whose pixels are this much more likely after inversion (in nats per pixel) has its polarity wrong.
INVERTED = 0.05


class PictureEngine(Protocol):
    """A loaded prior with its solver, as far as pictures are concerned."""

    @property
    def name(self) -> str:
        """What computes: "torch" or "onnx"."""

    @property
    def description(self) -> Description:
        """The facts about the prior."""

    @property
    def light_ground(self) -> bool:
        """Whether the prior expects dark strokes on light."""

    @property
    def log_partition(self) -> float:
        """log Z of the prior alone, in nats; NaN of a conditional one, and where the solver does not converge."""

    def with_solver(self, solver: str) -> PictureEngine:
        """The same prior restoring with another solver; see `Description.with_solver`.

        Raises:
            UsageError: if it does not fit, or if the engine holds one solver only.
        """

    def for_evidence(self) -> PictureEngine:
        """The same prior, solved as closely as log Z needs that is compared between levels of noise or priors."""

    def marginals(
        self,
        grey: np.ndarray,
        p: float | np.ndarray | None,
        hidden: np.ndarray | None,
        sigma: float | np.ndarray | None = None,
    ) -> tuple[Marginals, np.ndarray]:
        """Posterior marginals of damaged images.

        Args:
            grey: grey values at the prior's size, (N, H, W), N >= 1, in [0, 1] but for Gaussian noise. Of a binary
                prior those above `description.threshold` of 255 count as white.
            p: flip probability in [0, 1] of the visible pixels, one for all, per pixel (H, W) or per image (N, 1, 1),
                or of a prior of grey images that of salt or pepper; None if there is no such damage, or if the prior
                has learnt what is.
            sigma: standard deviation of Gaussian noise, of priors of grey images, of such shapes too; None if there is
                none.
            hidden: True for pixels to fill, boolean (N, H, W); None if there are none.

        Returns:
            The marginals; and by how many nats per visible pixel each image is likelier after inversion, (N,).
        """

    def features(self, grey: np.ndarray) -> np.ndarray:
        """E[h | v], the expected hidden units given whole images; shape (N, H), float32, in [0, 1].

        Args:
            grey: as in `marginals`.

        Raises:
            ModelError: if the prior is a conditional one, whose hidden units see a damaged image too, or has none.
        """


@dataclass(frozen=True)
class ChosenLevel:
    """A level of noise that was chosen for a picture.

    Attributes:
        name: "p" or "sigma".
        value: the one with the highest evidence.
        largest: whether no larger one was tried.
    """

    name: str
    value: float
    largest: bool

    @classmethod
    def of(cls, name: str, noise: NoiseLevel, index: int) -> ChosenLevel:
        """That of one picture of many."""
        return cls(name, float(noise.chosen[index]), bool(noise.chosen[index] >= noise.tried[-1]))

    @property
    def sentence(self) -> str:
        end = " (the largest that was tried)" if self.largest else ""
        return f"{self.name} = {self.value:.3g} has the highest evidence{end}"


@dataclass(frozen=True, eq=False)
class Restored:
    """One restored picture, at the size it came in.

    Attributes:
        estimate: the restored image, (H, W), 0 or 1; the means where those are grey values.
        means: posterior probability of white, or mean of the grey value, (H, W).
        deviations: posterior standard deviation, (H, W) in [0, 0.5].
        replaced: boolean (H, W): the pixels the estimate is for; None where it is for all of them.
        iterations, residual, status: see `restore.marginals.Marginals`.
        notes: what the user should know, one sentence each.
        inverted: whether it looks inverted.
        shortfall: as in `Marginals`.
        level: the level of noise that was chosen for it; None where it was told.
    """

    estimate: np.ndarray
    means: np.ndarray
    deviations: np.ndarray
    replaced: np.ndarray | None
    iterations: int
    residual: float
    status: Status
    notes: tuple[str, ...]
    inverted: bool
    shortfall: float
    level: ChosenLevel | None


def restore_pictures(
    engine: PictureEngine,
    pixels: Sequence[np.ndarray],
    *,
    p: float | np.ndarray | Auto | None = None,
    hidden: Sequence[np.ndarray] | None = None,
    invert: bool = False,
    sigma: float | Auto | None = None,
) -> tuple[list[Restored], Marginals]:
    """Restore pictures with known noise, a known mask, or both; or with a prior that has learnt which.

    Those of another size than the prior's are resized, and their results back; see `restore.sizes` for which may be.

    Args:
        engine: the prior.
        pixels: grey values, each (H, W), in [0, 1] but for Gaussian noise.
        p: flip probability in [0, 1], for all pixels or per pixel (H, W), or that of salt or pepper in grey images;
            "auto" for the level of each picture that has the highest evidence; None if there is no such damage.
        hidden: per picture the pixels to fill, boolean (H, W); None if there are none.
        invert: black on white pictures for a prior of white on black ones, or the other way round.
        sigma: standard deviation of Gaussian noise, for priors of grey images; "auto" likewise; None if there is none.

    Returns:
        The restored pictures, and the marginals of all of them at the prior's size.

    Raises:
        UsageError: if p is no probability, or is given per pixel for another size than the prior's; if sigma is no
            finite positive number; if both are to be chosen; if a conditional prior is told of damage, or another prior
            is not, or a binary one of Gaussian noise.
    """
    about = engine.description
    about.check_told(p is not None, sigma is not None, hidden is not None)
    shape = about.image_shape
    check_levels(p, sigma)
    p = p if p is None or isinstance(p, str) else _checked(p, shape)
    sigma = sigma if sigma is None or isinstance(sigma, str) else min(max(float(sigma), SMALLEST), LARGEST)
    small = []
    for index, values in enumerate(pixels):
        mask = None if hidden is None else hidden[index]
        small.append(shrink(1 - values if invert else values, mask, shape))
    grey = np.stack([shrunk for shrunk, _ in small])
    covered = None if hidden is None else np.stack([mask for _, mask in small])
    noise = (
        _chosen(engine.for_evidence(), grey, covered, p, sigma)
        if isinstance(p, str) or isinstance(sigma, str)
        else None
    )
    seen = Observed(grey, covered, *_told(p, sigma, None if noise is None else noise.chosen))
    found, gain = _solved(engine, seen)
    closely = engine.for_evidence()
    lack = shortfall(about, lambda: engine.log_partition, lambda some: _solved(closely, some)[0], seen, found, noise)
    found = replace(found, noise=noise, model=about.name, shortfall=lack)
    restored = []
    for index, values in enumerate(pixels):
        means, variances = (part[0][index].reshape(shape).astype(np.float64) for part in (found.means, found.variances))
        deviations = np.sqrt(variances.clip(0))
        if invert:
            means = 1 - means
        if values.shape != shape:
            # Cut to black and white after enlarging, so that contours are smooth.
            means, deviations = enlarge(means, values.shape), enlarge(deviations, values.shape)
        status = Status(int(found.status[index]))
        notes: tuple[str, ...] = () if status is Status.CONVERGED else (outcome(status, about),)
        if hidden is None and not about.grey and not np.isin(values, (0, 1)).all():
            notes += (f"has grey levels, which were cut to black and white: white is above {about.threshold} of 255",)
        inverted = bool(gain[index] > INVERTED)
        if not near(values.shape, shape):
            notes += (lost_detail(shape),)
        if lack[index]:
            notes += (unexplained(about.name, lack[index]),)
        if inverted:
            expected = "dark on light" if engine.light_ground else "light strokes on dark"
            remedy = "leave the inversion away" if invert else "try --invert"
            notes += (f"looks inverted: {about.name} expects {expected}; {remedy}",)
        level = None
        if noise is not None:
            level = ChosenLevel.of("p" if isinstance(p, str) else "sigma", noise, index)
            lost = np.isnan(noise.evidence[index]).sum()
            if lost:
                notes += (f"the solver diverged at {lost} of {len(noise.tried)} levels of noise, which were left out",)
        replaced = hidden[index] if hidden is not None and p is None and sigma is None else None
        restored.append(
            Restored(
                means if about.grey else (means > 0.5).astype(np.float64),
                means,
                deviations,
                replaced,
                int(found.iterations[index]),
                float(found.residual[index]),
                status,
                notes,
                inverted,
                float(lack[index]),
                level,
            )
        )
    return restored, found


def _solved(engine: PictureEngine, seen: Observed) -> tuple[Marginals, np.ndarray]:
    """As `PictureEngine.marginals`, with the evidence of priors that have not learnt the damage."""
    found, gain = engine.marginals(seen.grey, seen.p, seen.hidden, seen.sigma)
    found = voided(found)
    if engine.description.conditional:
        return found, gain
    black = log_likelihood_of_black(engine.description, seen.grey, seen.hidden, seen.p, seen.sigma)
    return replace(found, evidence=found.log_partition + black), gain


def _chosen(
    engine: PictureEngine,
    grey: np.ndarray,
    hidden: np.ndarray | None,
    p: float | np.ndarray | Auto | None,
    sigma: float | Auto | None,
) -> NoiseLevel:
    """The level of each picture in place of the one that is "auto"."""

    def evidence(rows: np.ndarray, levels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        covered = None if hidden is None else hidden[rows]
        found, _ = _solved(engine, Observed(grey[rows], covered, *_told(p, sigma, levels)))
        assert found.evidence is not None  # conditional priors take no levels
        return found.evidence, found.status == Status.CONVERGED

    flips = IMPULSES if engine.description.grey else FLIPS
    return choose_level(evidence, len(grey), flips if isinstance(p, str) else NOISE)


def _told(
    p: float | np.ndarray | Auto | None, sigma: float | Auto | None, chosen: np.ndarray | None
) -> tuple[float | np.ndarray | None, float | np.ndarray | None]:
    """What an engine is told of p and sigma, with the levels (N,) that were chosen for images in place of "auto"."""
    levels = None if chosen is None else chosen[:, None, None]
    return levels if isinstance(p, str) else p, levels if isinstance(sigma, str) else sigma


def whole(pixels: Sequence[np.ndarray], about: Description) -> np.ndarray:
    """Pictures of the prior's size as one array (N, H, W).

    Raises:
        ModelError: if one has another size.
    """
    for values in pixels:
        if values.shape != about.image_shape:
            resized = "resize it first" if near(values.shape, about.image_shape) else None
            remedy = resized or without_resizing(values.shape, about.image_shape)
            raise ModelError(
                f"the image has {said(values.shape)} pixels and {about.name} knows {said(about.image_shape)}; {remedy}"
            )
    return np.stack(pixels)


def stopped_as_trained(status: Status, about: Description) -> bool:
    """Whether the solver of a conditional prior stopped where it did in training, as it is meant to."""
    return about.conditional and status is Status.MAX_ITER


def outcome(status: Status, about: Description) -> str:
    """The sentence for how the solver of an image ended."""
    if stopped_as_trained(status, about):
        return f"stopped after the {about.inference.max_iter} iterations that {about.name} was trained with"
    return status.sentence


def check_levels(p: float | np.ndarray | Auto | None, sigma: float | Auto | None) -> None:
    """Refuse texts other than "auto", two levels to choose at once, and a standard deviation that is none.

    Raises:
        UsageError: saying which.
    """
    if isinstance(p, str) and p != "auto":
        raise UsageError(f"p is a flip probability in [0, 1], or auto, not {shown(p)}")
    if isinstance(p, str) and isinstance(sigma, str) and p == sigma:
        raise UsageError("p and sigma cannot both be auto; give a number for one of them, or leave it away")
    if sigma is None or (isinstance(sigma, str) and sigma == "auto"):
        return
    # Numpy's numbers are as good as Python's own, but compare with the largest of their own kind.
    number = sigma.item() if isinstance(sigma, np.floating | np.integer) else sigma
    if isinstance(number, bool) or not isinstance(number, int | float) or not 0 < number <= sys.float_info.max:
        raise UsageError(f"sigma is the standard deviation of noise, a finite number above 0, not {shown(str(sigma))}")


def _checked(p: float | np.ndarray, shape: tuple[int, int]) -> float | np.ndarray:
    """Flip probabilities as one number, or as an array of the prior's shape; raises UsageError if they are none."""
    try:
        values = np.asarray(p, dtype=np.float64)
    except (TypeError, ValueError) as fault:
        raise UsageError(f"p is a flip probability in [0, 1], or one per pixel, not {shown(str(p))}") from fault
    if values.ndim and values.shape != shape:
        raise UsageError(f"p has shape {values.shape}; give one number, or one per pixel of the prior: {shape}")
    # Written so that NaN fails too.
    wrong = values[~((values >= 0) & (values <= 1))]
    if wrong.size:
        raise UsageError(f"p is a flip probability and must lie in [0, 1], not {wrong[0]}")
    single = values.astype(np.float32)
    values = np.where(single < SMALLEST, 0.0, np.where(single == 1, 1.0, values))
    return values if values.ndim else values.item()
