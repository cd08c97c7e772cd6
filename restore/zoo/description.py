"""The header of a prior's weights file, readable without loading weights."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from restore.channels import Channel, Damage, parse_task
from restore.errors import REASON, ModelError, UsageError, option, reason, remedy, shown
from restore.families import OBSERVED, Spec
from restore.registry import SOLVERS
from restore.zoo import limits
from restore.zoo.inference import QUICK_ITERATIONS, QUICK_TOL, Effort, Inference
from restore.zoo.structure import check_ranges, structure

if TYPE_CHECKING:
    import numpy as np

# Share of pixels in doubt where only holes are filled. Nearly all pixels are known then, and by their average change
# solvers would stop at once.
HOLES = 0.01

# The newest format of weights files.
NEWEST = 2

# Values that headers leave out.
UNTOLD = {"deeper": (), "components": 0, "layers": (), "unfinished": "", "run": "", "auto": 0}
UNTOLD |= {"temperature": 1, "overlap": 1, "white": 0}

# How near to a half the share of white is in the images of a prior of both polarities.
EVEN = 0.05


@dataclass(frozen=True)
class Description(Spec):
    """The header of a prior: its machine, and how it is used.

    Attributes:
        name: published or chosen name.
        image_shape: height and width of the images it knows, in pixels.
        threshold: a pixel is 1 when its grey level, 0 to 255, is above this.
        data: what it was trained on.
        method: the learner that trained it.
        recipe: SHA-256 of the recipe.
        inference: its solver.
        task: the damage that a conditional prior undoes, such as "flip:0.1"; empty for all others.
        licence: the licence of its weights.
        unfinished: the progress of its training, in words; empty once it has ended.
        run: the folder of the run that continues an unfinished prior.
        overlap: tiles of a larger image have a stride of side / overlap. Whole objects are
            restored best in tiles side by side: one between two objects looks like neither.
        auto: rank among the priors that `auto` tries, from 1; 0 to leave it out.
        temperature: divides the log-odds of its pixels, to correct a solver that is too sure of them;
            see `restore.learning.finish`.
        white: share of white in its images, if it is black and white and takes any size; else 0.
    """

    name: str
    image_shape: tuple[int, int]
    threshold: int
    data: str
    method: str
    recipe: str = ""
    inference: Inference = field(default_factory=Inference)
    licence: str = "Apache-2.0"
    task: str = ""
    unfinished: str = ""
    run: str = ""
    overlap: int = 1
    auto: int = 0
    temperature: float = 1.0
    white: float = 0.0
    # Trained machines have a number.
    hidden: int = field(kw_only=True)

    @property
    def pixels(self) -> int:
        return self.image_shape[0] * self.image_shape[1]

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of units of every layer, the image first."""
        return self.kind.sizes(self, self.image_shape)

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shapes of the machine's tensors, by name."""
        return self.kind.shapes(self, self.image_shape)

    @property
    def inputs(self) -> tuple[str, ...]:
        """Names of the graph's inputs for the observation."""
        return OBSERVED[self.kind.observation(self)]

    @property
    def whole(self) -> bool:
        """True if it restores images of any size whole, not in tiles."""
        return self.kind.any_size

    @property
    def anywhere(self) -> bool:
        """True if it restores images of any size, in overlapping tiles or whole."""
        return self.whole or self.overlap > 1

    @property
    def inverts(self) -> bool:
        """True if it may restore the inverse of a picture."""
        return not (self.task or self.grey or self.kind.pages)

    @property
    def polarised(self) -> bool:
        """True if it tells a picture from its inverse."""
        return self.inverts and abs(self.white - 0.5) >= EVEN

    @property
    def weighs(self) -> bool:
        """True if log Z weighs solutions from several starts; with one start graphs leave it out."""
        return self.inference.starts != 1

    @property
    def stops_as_learnt(self) -> bool:
        """True if it was trained for this number of iterations of its solver; more make it worse."""
        return bool(self.task) or (self.method == "matched" and self.inference.starts == 1)

    @property
    def tries_again(self) -> bool:
        """True if images that did not converge are solved again with more damping."""
        return self.inference.starts > 0 and not self.stops_as_learnt

    def as_known(self, grey: np.ndarray) -> np.ndarray:
        """Grey values as the prior knows them, unchanged or as 0 and 1; the same shape, float32."""
        return (grey if self.grey else grey > self.threshold / 255).astype("float32")

    def channel(self, damage: Damage) -> Channel:
        """The channel of images with this damage; a machine of pages is shown the levels themselves."""
        return damage.shown if self.kind.pages else damage.channel(self.grey)

    def with_solver(self, name: str) -> Description:
        """The same prior with another solver, without starts if it takes none; raises UsageError if it does not fit."""
        if name == self.inference.solver:
            return self
        if name not in self.solvers:
            known = ", ".join(self.solvers)
            raise UsageError(f"restores with {known}, not with {shown(name)}; give one of these", self.name)
        others: dict[str, Any] = {} if SOLVERS[name].starts else {"modes": 0, "starts": 0, "damping": 0.0}
        # The temperature corrects its own solver only.
        return replace(self, inference=replace(self.inference, solver=name, **others), temperature=1.0)

    def of_size(self, shape: tuple[int, int], doubtful: float = 1.0) -> Description:
        """Return the prior for images of another size, without its modes.

        `doubtful` is the share of pixels in doubt: `tol` limits the average change of all, where few may change.
        """
        tol = self.inference.tol * doubtful
        starts = min(1, self.inference.starts)
        inference = replace(self.inference, tol=tol, modes=0, starts=starts)
        return replace(self, image_shape=shape, inference=inference)

    def at(self, effort: Effort, shape: tuple[int, ...], *, touched: bool) -> Description:
        """Return the prior with its settings for a size and an effort; not `touched` if only holes are filled.

        The share in doubt is one number for all, so that an image gets the same answer alone and in a batch.
        """
        settings = self
        inference = self.inference
        if effort == "quick" and inference.starts > 1:  # from one start alone nothing is gained
            tol = max(inference.tol, QUICK_TOL)
            quick = replace(inference, tol=tol, max_iter=min(inference.max_iter, QUICK_ITERATIONS))
            settings = replace(self, inference=quick)
        height, width = shape
        return settings if shape == self.image_shape else settings.of_size((height, width), 1.0 if touched else HOLES)

    def check_told(self, p: bool, sigma: bool, mask: bool) -> None:
        """Refuse damage that this kind of prior does not take, and a lack of damage that it needs.

        Raises:
            UsageError: if damage is given to a conditional prior, or none to another one; if Gaussian noise is given to
                a prior of binary images.
        """
        anything = p or sigma or mask
        if sigma and not self.grey:
            instead = f"choose a prior of grey images, or give {option('p')}"
            raise UsageError(f"knows no grey images, which {option('sigma')} is for; {instead}", self.name)
        if self.task and anything:
            learnt = f"has learnt to undo {shown(self.task)} from the damaged image alone"
            raise UsageError(f"{learnt}; denoise without a level or a mask, or choose another model", self.name)
        if self.grey and not anything:
            noise = "the standard deviation of the noise, where black is 0 and white is 1"
            raise UsageError(f"sigma is missing; give {noise}, such as {option('sigma', 0.1)}")
        if not self.task and not anything:
            raise UsageError(f"p is missing; give the probability of flips, such as {option('p', 0.1)}")

    def check_damage(self, damage: Damage) -> None:
        """Refuse damage that the prior does not take.

        Raises:
            UsageError: if damage is given to a conditional prior, or none to another one; Gaussian noise or a scan to
                one of the wrong kind.
        """
        self.check_told(damage.p is not None, damage.sigma is not None, damage.hidden is not None)
        name = shown(self.name)
        if self.kind.pages and damage.touched and not damage.scanned:
            raise UsageError(f"{name} reads grey pages, whatever their damage; leave its levels out")
        if not self.grey:
            return
        if damage.scanned:
            scan = option("p", "scan")
            raise UsageError(f"{name} restores grey images, and {scan} is for black and white ones; give a number")
        if damage.p is not None and "p" not in self.inputs:
            instead = f"give {option('sigma')} in place of {option('p')}"
            raise UsageError(f"{name} knows Gaussian noise and holes, no salt or pepper; {instead}")

    def to_header(self) -> dict[str, str]:
        """The metadata of a safetensors header; all values are texts."""
        facts = dataclasses.asdict(self) | {"format_version": NEWEST}
        kept = {key: value for key, value in facts.items() if key not in UNTOLD or value != UNTOLD[key]}
        return {key: value if isinstance(value, str) else json.dumps(value) for key, value in kept.items()}

    @classmethod
    def from_header(cls, header: Mapping[str, str] | None, where: str | Path) -> Description:
        """Read the metadata of a weights file.

        Raises:
            ModelError: if it is not a prior of ours, incomplete, or of a newer format; `where` names the file.
        """
        if not header or "format_version" not in header:
            train = remedy("`restore train`", "restore.train")
            raise ModelError(f"holds no prior of this package; train one with {train}", where)
        try:
            version = int(header["format_version"])
            if version > NEWEST:
                raise ModelError(f"written in format {version}, this version reads {NEWEST}; update the package", where)
            if version < 1 or max(map(len, header.values())) > limits.TEXT:
                raise ValueError(f"format {version}, or a text of more than {limits.TEXT} characters")
            texts = {entry.name for entry in dataclasses.fields(cls) if entry.type == "str"}
            facts: dict[str, Any] = {key: value if key in texts else json.loads(value) for key, value in header.items()}
            del facts["format_version"]
            new = sorted(
                (facts.keys() - {entry.name for entry in dataclasses.fields(cls)})
                | (facts["inference"].keys() - {entry.name for entry in dataclasses.fields(Inference)})
            )
            if new:
                setting = new[0][:REASON]
                raise ModelError(f"has the setting {setting!r}, unknown to this version; update the package", where)
            description = structure(cls, facts)
            description._check()
            return description
        except (ValueError, TypeError, KeyError, IndexError, AttributeError, ArithmeticError, RecursionError) as fault:
            raise ModelError(f"its description is damaged ({reason(fault)}); get the file again", where) from fault

    def _check(self) -> None:
        """Refuse, with ValueError, a header that contradicts itself or is beyond the limits."""
        self.check(self.image_shape)
        check_ranges(self, temperature=(limits.COLDEST, limits.HOTTEST), overlap=(1, limits.OVERLAP), white=(0, 1))
        if min(self.image_shape) < 1 or self.auto < 0 or not 0 <= self.threshold < 255:
            raise ValueError(f"images of shape {self.image_shape}, threshold {self.threshold}, place {self.auto}")
        inference = self.inference
        largest = max(size for sizes in (self.sizes, *self.shapes.values()) for size in sizes)
        large = len(self.sizes) > limits.LAYERS or largest > limits.WIDEST
        starts = min(inference.starts, inference.modes + 1)
        too_many = 4 * starts**2 * self.pixels > limits.DISTANCES
        warm = self.temperature != 1 and (self.grey or not SOLVERS[inference.solver].smooth)
        fits = bool(self.task) == self.kind.learnt and not (self.task and inference.starts)
        for wrong, fault in (
            (large, f"at most {limits.LAYERS} layers of {limits.WIDEST} units are known here"),
            (too_many, f"{starts} starts of {self.pixels} pixels take too much memory"),
            (misfit := self.misfit(inference.solver), misfit),
            (self.grey and inference.modes, "modes of a prior of grey images"),
            (warm, f"a temperature of {self.temperature} of a prior of grey images, or without log-odds"),
            (not fits, f"a {self.kind.words} with the task {self.task!r} and {inference.starts} starts"),
        ):
            if wrong:
                raise ValueError(fault)
        if self.task:
            parse_task(self.task)
