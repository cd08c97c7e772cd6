"""Restore pictures: from grey values of any size to a prior's and back, in batches, with any engine.

The Python interface and the command line share this; they differ only in how images come in and go out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from restore.errors import ModelError
from restore.images import enlarge, shrink
from restore.inference.damage import Damage, Rates
from restore.inference.explained import INDEPENDENT, Observed, shortfall, unexplained
from restore.inference.noise.held_out import FOLDS, rates_by_held_out
from restore.inference.noise.levels import BLOCK, choose_level
from restore.inference.noise.rates import ENOUGH
from restore.marginals import Marginals, NoiseLevel, Status, voided
from restore.sizes import lost_detail, near, said, without_resizing
from restore.zoo.description import Description

# An image whose pixels are this much more likely after inversion (in nats per pixel) is probably inverted.
INVERTED = 0.05

# Nats per pixel of evidence that rates found by held-out pixels may cost; where specks are taken for print it is more.
DOUBTED = 0.004


class PictureSolver(Protocol):
    """A prior with its solver, as far as restoring pictures of its size needs it."""

    @property
    def description(self) -> Description:
        """The facts about the prior."""

    @property
    def light_ground(self) -> bool:
        """Whether the prior expects dark strokes on light."""

    @property
    def log_partition(self) -> float:
        """log Z of the prior alone, in nats; NaN if it is conditional or the solver does not converge."""

    def for_evidence(self) -> PictureSolver:
        """The same prior, solved closely enough to compare log Z between levels of noise or between priors."""

    def marginals(self, grey: np.ndarray, damage: Damage) -> tuple[Marginals, np.ndarray]:
        """Posterior marginals of damaged images.

        Args:
            grey: grey values at the prior's size, (N, H, W), N >= 1, in [0, 1] except with Gaussian noise. For a binary
                prior, values above `description.threshold` of 255 count as white.
            damage: what is known of it: no level to choose, and all hidden pixels as (N, H, W).

        Returns:
            The marginals; and by how many nats per visible pixel each image is likelier after inversion, (N,).
        """


class PictureEngine(PictureSolver, Protocol):
    """A prior loaded into an engine."""

    @property
    def name(self) -> str:
        """What computes: "torch" or "onnx"."""

    @property
    def max_memory(self) -> int | None:
        """Bytes that restoring may take, as far as that can be limited; None for no limit of the caller's."""

    def with_solver(self, solver: str) -> PictureEngine:
        """The same prior restoring with another solver; see `Description.with_solver`.

        Raises:
            UsageError: if it does not fit, or if the engine holds one solver only.
        """

    def of_size(self, shape: tuple[int, int]) -> PictureEngine:
        """The same prior for images (H, W) of any size; only of a convolutional prior, to which all places are alike.

        Raises:
            UsageError: if the engine holds one size only.
        """

    def pixel_means(self) -> np.ndarray:
        """Mean of each pixel over the images that the prior was trained on, (H, W)."""

    def features(self, grey: np.ndarray) -> np.ndarray:
        """E[h | v], the expected hidden units given whole images; shape (N, H), float32, in [0, 1].

        Args:
            grey: as in `marginals`.

        Raises:
            ModelError: if the prior has no hidden units, or is conditional: its hidden units see a damaged image too.
        """


@dataclass(frozen=True)
class ChosenLevel:
    """A level of noise that was chosen for a picture.

    Attributes:
        name: "p" or "sigma".
        value: the level that was found.
        largest: whether it is the largest that was tried.
        rates: flip probabilities of white and of black pixels, if they differ.
    """

    name: str
    value: float
    largest: bool
    rates: Rates | None = None

    @classmethod
    def of(cls, name: str, noise: NoiseLevel, index: int) -> ChosenLevel:
        """The level of one picture of many."""
        p = None if noise.rates is None else Rates.each(noise.rates[index])
        largest = bool(noise.chosen[index] >= noise.tried[-1])
        return cls(name, float(noise.chosen[index]), largest, p if isinstance(p, Rates) else None)

    @property
    def values(self) -> tuple[tuple[str, float], ...]:
        """Each level by its name: of two rates, that of white and that of black pixels."""
        if self.rates is None:
            return ((self.name, self.value),)
        return tuple((f"{self.name} of {colour}", rate) for colour, rate in self.rates._asdict().items())

    @property
    def sentence(self) -> str:
        if self.rates is not None:
            white, black = (f"{rate:.2g}" for rate in self.rates)
            return f"{self.name} = {white},{black}: white pixels turned black at the first rate, black ones white"
        end = " (the largest that was tried)" if self.largest else ""
        return f"{self.name} = {self.value:.3g} was found{end}"

    def objection(self, about: Description) -> str:
        """Why an image whose damage nobody described is not restored at this level; empty if it may be."""
        if not self.largest:
            return ""
        return (
            f"{about.name} finds nothing but noise in it ({self.name} = {self.value:.3g} is the largest level that is "
            f"tried); name another prior with --model, or give --{self.name} if it is meant"
        )


@dataclass(frozen=True, eq=False)
class Restored:
    """One restored picture, at the size it came in.

    Attributes:
        estimate: the restored image, (H, W), 0 or 1; the means where those are grey values.
        means: posterior probability of white, or mean of the grey value, (H, W).
        deviations: posterior standard deviation, (H, W) in [0, 0.5].
        replaced: boolean (H, W): the pixels that the estimate replaces; None if all.
        iterations, residual, status: see `restore.marginals.Marginals`.
        notes: what the user should know, one sentence each.
        inverted: whether it looks inverted.
        shortfall: as in `Marginals`.
        rival: what explains it as well as the prior, where there is a shortfall.
        level: the level of noise chosen for it; None if it was given.
        tones: grey values of black and of white in the picture, where only its holes are filled; numbers or (H, W).
            None for 0 and 1.
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
    rival: str = INDEPENDENT
    tones: tuple[Any, Any] | None = None

    @property
    def painted(self) -> np.ndarray:
        """The estimate in the picture's own black and white, if it is in black and white."""
        return self.estimate if self.tones is None else np.where(self.estimate > 0.5, *self.tones[::-1])


def restore_pictures(
    engine: PictureSolver, pixels: Sequence[np.ndarray], damage: Damage, *, invert: bool = False
) -> tuple[list[Restored], Marginals]:
    """Restore pictures whose damage is known, or of the kind that the prior has learnt to undo.

    Pictures of another size than the prior's are resized and their results resized back; see `restore.sizes`.

    Args:
        engine: the prior.
        pixels: grey values, each (H, W), in [0, 1] except with Gaussian noise.
        damage: what is known of it; an unknown level is chosen for each picture by the highest evidence.
        invert: whether to invert the pictures first, for a prior of light strokes on dark and pictures of the opposite.

    Returns:
        The restored pictures, and the marginals of all of them at the prior's size.

    Raises:
        UsageError: see `Damage.check_for`.
    """
    about = engine.description
    damage.check_for(about)
    damage = damage.inverted() if invert else damage
    shape, hidden = about.image_shape, damage.hidden
    small = []
    for index, values in enumerate(pixels):
        mask = None if hidden is None else hidden[index]
        small.append(shrink(1 - values if invert else values, mask, shape))
    grey = np.stack([shrunk for shrunk, _ in small])
    told = damage.covering(None if hidden is None else np.stack([mask for _, mask in small]))
    noise = None if told.unknown is None else _chosen(engine.for_evidence(), grey, told)
    seen = Observed(grey, told if noise is None else told.chosen(noise))
    found, gain = solved(engine, seen)
    closely = engine.for_evidence()
    tried = [] if noise is None else [told.at(level) for level in noise.tried.tolist()]
    lack = shortfall(about, lambda: engine.log_partition, lambda some: solved(closely, some)[0], seen, found, tried)
    if noise is not None and invert:
        noise = noise.inverted()
    found = replace(found, noise=noise, model=about.name, shortfall=lack)
    restored = []
    for index, values in enumerate(pixels):
        means, variances = (part[0][index].reshape(shape).astype(np.float64) for part in (found.means, found.variances))
        deviations = np.sqrt(variances.clip(0))
        if invert:
            means = 1 - means
        if values.shape != shape:
            # The estimate is thresholded after enlarging, so that contours are smooth.
            means, deviations = enlarge(means, values.shape), enlarge(deviations, values.shape)
        status = Status(int(found.status[index]))
        notes: tuple[str, ...] = () if status is Status.CONVERGED else (outcome(status, about),)
        if hidden is None and not about.grey and not np.isin(values, (0, 1)).all():
            notes += (cut_to_ink(about),)
        inverted = bool(gain[index] > INVERTED) and not about.mixture
        if not near(values.shape, shape):
            notes += (lost_detail(shape),)
        if lack[index]:
            notes += (unexplained(about.name, INDEPENDENT),)
        if inverted:
            remedy = "leave the inversion out" if invert else "try --invert"
            notes += (f"looks inverted: {about.name} expects {expected_by(engine)}; {remedy}",)
        level = None
        if noise is not None and damage.unknown is not None:
            level = ChosenLevel.of(damage.unknown, noise, index)
            lost = np.isnan(noise.evidence[index]).sum()
            if lost:
                notes += (f"the solver diverged at {lost} of {len(noise.tried)} levels of noise, which were left out",)
        replaced = hidden[index] if hidden is not None and not damage.touched else None
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


def solved(engine: PictureSolver, seen: Observed) -> tuple[Marginals, np.ndarray]:
    """As `PictureSolver.marginals`, with the evidence of each image unless the prior is conditional."""
    found, gain = engine.marginals(seen.grey, seen.damage)
    found = voided(found)
    if engine.description.conditional:
        return found, gain
    black = seen.damage.log_black(engine.description, seen.grey)
    return replace(found, evidence=found.log_partition + black), gain


def _chosen(engine: PictureSolver, grey: np.ndarray, damage: Damage) -> NoiseLevel:
    """Choose the unknown level for each picture."""

    def evidence(rows: np.ndarray, levels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        found, _ = solved(engine, Observed(grey[rows], damage.rows(rows).at(levels)))
        assert found.evidence is not None  # conditional priors take no levels
        return found.evidence, found.status == Status.CONVERGED

    noise = choose_level(evidence, len(grey), damage.scale(engine.description))
    one = engine.description.grey or grey[0].size < ENOUGH
    return noise if one else _with_rates(engine, grey, damage, noise)


def _with_rates(engine: PictureSolver, grey: np.ndarray, damage: Damage, noise: NoiseLevel) -> NoiseLevel:
    """Find whether white and black pixels flip at rates of their own, except where all is noise."""
    rates = np.repeat(noise.chosen[:, None], 2, 1)
    clear = np.flatnonzero(noise.chosen < noise.tried[-1])
    for first in range(0, len(clear), BLOCK // FOLDS):
        rows = clear[first : first + BLOCK // FOLDS]
        rates[rows] = rates_by_held_out(engine, Observed(grey[rows], damage.rows(rows)), noise.chosen[rows])
    moved = np.flatnonzero((rates != noise.chosen[:, None]).any(1))
    if moved.size:
        levels = np.repeat(noise.chosen[moved, None], 2, 1)
        told = [Observed(grey[moved], replace(damage.rows(moved), p=Rates.each(p))) for p in (levels, rates[moved])]
        before, after = (np.asarray(solved(engine, seen)[0].evidence) for seen in told)
        lost = before - after > DOUBTED * told[0].visible.sum((1, 2))
        rates[moved] = np.where(lost[:, None], levels, rates[moved])
    return replace(noise, chosen=np.where(rates[:, 0] == rates[:, 1], rates[:, 0], noise.chosen), rates=rates)


def whole(pixels: Sequence[np.ndarray], about: Description) -> np.ndarray:
    """Stack pictures of the prior's size as one array (N, H, W).

    Raises:
        ModelError: if one has another size.
    """
    for values in pixels:
        if values.shape != about.image_shape:
            close = near(values.shape, about.image_shape)
            remedy = "resize it first" if close else without_resizing(values.shape, about.image_shape)
            raise ModelError(
                f"the image has {said(values.shape)} pixels and {about.name} knows {said(about.image_shape)}; {remedy}"
            )
    return np.stack(pixels)


def cut_to_ink(about: Description) -> str:
    """The sentence for a grey picture that was restored by a prior of binary ones."""
    return f"has grey levels, which were cut to black and white: white is above {about.threshold} of 255"


def expected_by(engine: PictureSolver) -> str:
    """The polarity that a prior expects, in words."""
    return "dark on light" if engine.light_ground else "light strokes on dark"


def stopped_as_trained(status: Status, about: Description) -> bool:
    """Whether the solver of a conditional prior stopped after as many iterations as in training, as it should."""
    return about.conditional and status is Status.MAX_ITER


def outcome(status: Status, about: Description) -> str:
    """The sentence that says how the solver of an image ended."""
    if stopped_as_trained(status, about):
        return f"stopped after the {about.inference.max_iter} iterations that {about.name} was trained with"
    return status.sentence
