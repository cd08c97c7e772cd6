"""The description of a prior in the header of its weights file, readable without loading any weights."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from restore.channels import parse_task
from restore.errors import ModelError, UsageError, option, reason, shown
from restore.registry import FAMILIES, PIXELS, SOLVERS, UNITS, misfit
from restore.zoo import limits
from restore.zoo.inference import Inference
from restore.zoo.tiling import Tiling

if TYPE_CHECKING:
    import numpy as np

# The newest format of weights files. Format 1 lacks grey pixels, several hidden layers, and hidden units that are not
# binary.
FORMAT = 2


@dataclass(frozen=True)
class Description:
    """The facts about a prior that decide how it is used.

    Attributes:
        name: published or chosen name.
        image_shape: height and width of the images it knows, in pixels.
        hidden: number of hidden units; for a deep machine, of the layer next to the image; 0 if fully visible; of each
            component for a mixture; of features, at every place, for a convolutional machine.
        deeper: numbers of hidden units of further layers; empty except for deep machines.
        threshold: a pixel is 1 when its grey level, 0 to 255, is above this.
        data: what it was trained on.
        method: the learner that trained it.
        recipe: SHA-256 of the recipe.
        inference: its solver.
        family, visible, hidden_type: kind of machine, and of its units, as in `FAMILIES` and `UNITS`.
        task: the damage that a conditional prior undoes, such as "flip:0.1"; empty for all others, which must be told
            the damage.
        licence: the licence of its weights.
        unfinished: how far its training has come, in words; empty when it has ended.
        run: the folder of the run that continues an unfinished prior.
        tiling: how it restores images of another size.
        components: number of Gaussians of a mixture; 0 for all others.
        kernel: side of the square that a feature of a convolutional machine sees; 0 for all others.
    """

    name: str
    image_shape: tuple[int, int]
    hidden: int
    threshold: int
    data: str
    method: str
    recipe: str = ""
    inference: Inference = field(default_factory=Inference)
    family: str = "rbm"
    visible: str = "bernoulli"
    hidden_type: str = "bernoulli"
    licence: str = "Apache-2.0"
    task: str = ""
    deeper: tuple[int, ...] = ()
    unfinished: str = ""
    run: str = ""
    tiling: Tiling = field(default_factory=Tiling)
    components: int = 0
    kernel: int = 0

    @property
    def pixels(self) -> int:
        return self.image_shape[0] * self.image_shape[1]

    @property
    def layers(self) -> int:
        """Number of layers of units, including the image."""
        return len(self.sizes)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of units of every layer, the image first."""
        if self.fully_visible or self.mixture:
            return (self.pixels,)
        height, width = self.image_shape
        places = (height + self.kernel - 1) * (width + self.kernel - 1) if self.convolutional else 1
        return self.pixels, places * self.hidden, *self.deeper

    @property
    def unit_kinds(self) -> tuple[str, ...]:
        """Unit type of every layer."""
        return (self.visible, *[self.hidden_type] * (self.layers - 1))

    @property
    def grey(self) -> bool:
        """Whether pixels are grey levels from 0 to 1 instead of black or white."""
        return UNITS[self.visible].grey or self.mixture

    @property
    def plain(self) -> bool:
        """Whether all units are binary and in at most two layers, as in format 1 of weights files."""
        return all(UNITS[kind].bits for kind in self.unit_kinds) and not self.deeper

    @property
    def fully_visible(self) -> bool:
        """Whether the pixels are coupled with each other, without hidden units."""
        return FAMILIES[self.family].fully_visible

    @property
    def mixture(self) -> bool:
        """Whether it is a mixture of Gaussians, to which black and white are alike."""
        return FAMILIES[self.family].mixture

    @property
    def convolutional(self) -> bool:
        """Whether hidden units are features, which are the same at every place."""
        return FAMILIES[self.family].convolutional

    @property
    def whole(self) -> bool:
        """Whether it restores an image of any size as a whole, and not in windows."""
        return self.convolutional or self.tiling.neighbours > 0

    @property
    def anywhere(self) -> bool:
        """True if it restores a picture of any size, in tiles that overlap or as a whole."""
        return self.whole or self.tiling.overlap > 1

    @property
    def exchanges(self) -> bool:
        """True if overlapping tiles send each other messages."""
        return not (self.grey or self.conditional or self.whole)

    @property
    def conditional(self) -> bool:
        """Whether the prior restores from the damaged image alone, without being told a channel."""
        return FAMILIES[self.family].conditional

    @property
    def tries_again(self) -> bool:
        """Whether images that have not converged are solved again with more damping.

        Not if the prior has learnt what its solver makes of an image in so many iterations.
        """
        return self.inference.starts > 0 and not (self.conditional or self.convolutional)

    @property
    def comparable(self) -> bool:
        """Whether its evidence says how well it explains an image, and not only which level of noise is likeliest.

        A convolutional machine learns what restores; the free energy of its solver is no log-probability.
        """
        return not (self.conditional or self.convolutional) and SOLVERS[self.inference.solver].evidence

    @property
    def solvers(self) -> tuple[str, ...]:
        """The solvers that fit this prior; a conditional one keeps the solver it was trained with."""
        if self.conditional:
            return (self.inference.solver,)
        fits = {"fully_visible": self.fully_visible, "mixture": self.mixture, "plain": self.plain}
        return tuple(name for name in SOLVERS if not misfit(name, **fits))

    def as_known(self, grey: np.ndarray) -> np.ndarray:
        """Grey values as the prior knows them, unchanged or as 0 and 1; the same shape, float32."""
        return (grey if self.grey else grey > self.threshold / 255).astype("float32")

    def with_solver(self, name: str) -> Description:
        """The same prior with another solver; other settings stay, except that belief propagation has no starts.

        Raises:
            UsageError: if there is no such solver or it does not fit the prior; names the choices.
        """
        if name == self.inference.solver:
            return self
        if name not in self.solvers:
            left_out = f"it was trained with that; leave {option('solver')} out"
            remedy = left_out if self.conditional else "give one of these"
            raise UsageError(
                f"{shown(self.name)} restores with {', '.join(self.solvers)}, not with {shown(name)}; {remedy}"
            )
        alone: dict[str, Any] = {} if SOLVERS[name].starts else {"modes": 0, "starts": 0, "damping": 0.0}
        return replace(self, inference=replace(self.inference, solver=name, **alone))

    def of_size(self, shape: tuple[int, int]) -> Description:
        """The same convolutional prior for images of another size, of which it has no modes."""
        alone = replace(self.inference, modes=0, starts=min(1, self.inference.starts))
        return replace(self, image_shape=shape, inference=alone)

    def quickly(self) -> Description:
        """The same prior with settings good enough to compare predictions with those of other priors."""
        return self if self.inference.starts < 2 else replace(self, inference=self.inference.quickly())

    def check_told(self, p: bool, sigma: bool, mask: bool) -> None:
        """Check that the damage is given by p, sigma or a mask if this kind of prior needs it, and only then.

        Raises:
            UsageError: if damage is given to a conditional prior, or none to another one; if Gaussian noise is given to
                a prior of binary images.
        """
        told = p or sigma or mask
        if sigma and not self.grey:
            raise UsageError(
                f"{shown(self.name)} knows black and white images; {option('sigma')} is for priors of grey ones, "
                "which `restore models` marks: choose one of them, or give p"
            )
        if self.conditional and told:
            raise UsageError(
                f"{shown(self.name)} has learnt to undo {shown(self.task)} from the damaged image alone: "
                "leave the level and the mask out; for other damage choose another model"
            )
        if self.grey and not told:
            raise UsageError(
                "sigma is missing; give the standard deviation of the noise, where black is 0 and white is 1, such as "
                f"{option('sigma', 0.1)}"
            )
        if not self.conditional and not told:
            raise UsageError(f"p is missing; give the probability of flips, such as {option('p', 0.1)}")

    def check_unconditional(self, what: str) -> None:
        """Refuse what only an unconditional prior has, such as a likelihood of images.

        Raises:
            ModelError: if this prior is conditional.
        """
        if self.conditional:
            raise ModelError(
                f"{shown(self.name)} is conditional: it restores damaged images, and has no {what} of images alone; "
                "choose a prior that is not conditional"
            )

    def check_plain(self, what: str) -> None:
        """Refuse what is only implemented for binary machines in one or two layers.

        Raises:
            ModelError: if the prior is not such a machine.
        """
        if not self.plain:
            raise ModelError(
                f"{shown(self.name)} has grey pixels, or hidden units that are not binary or in several layers: no "
                f"{what} of such a prior is computed here; choose a binary one"
            )

    def check_features(self) -> None:
        """Refuse to compute features without one layer of hidden units.

        Raises:
            ModelError: if there is no such layer, or the prior is conditional.
        """
        self.check_unconditional("features")
        if self.deeper:
            raise ModelError(
                f"{shown(self.name)} has several layers of hidden units, and no features of its own; choose a prior "
                "with one layer"
            )
        if self.fully_visible or self.mixture:
            raise ModelError(
                f"{shown(self.name)} has no layer of hidden units, and so no features; choose a prior that has some"
            )

    def to_header(self) -> dict[str, str]:
        """The metadata of a safetensors header; all values are texts."""
        facts = dataclasses.asdict(self) | {"format_version": 1 if self.plain else FORMAT}
        if self.plain:
            # Format 1 does not know this key.
            del facts["deeper"]
        if not self.unfinished:
            del facts["unfinished"], facts["run"]
        if self.tiling == Tiling():
            del facts["tiling"]
        for name in ("components", "kernel"):
            if not facts[name]:
                del facts[name]
        return {key: value if isinstance(value, str) else json.dumps(value) for key, value in facts.items()}

    @classmethod
    def from_header(cls, header: Mapping[str, str] | None, where: str) -> Description:
        """Read the metadata of a weights file.

        Raises:
            ModelError: if it is not a prior of ours, incomplete, or of a newer format; `where` names the file.
        """
        if not header or "format_version" not in header:
            raise ModelError(f"{where}: holds no prior of this package; train one with `restore train`")
        try:
            version = int(header["format_version"])
            if version > FORMAT:
                raise ModelError(
                    f"{where}: written in format {version}, this version reads {FORMAT}; update the package"
                )
            if version < 1 or max(map(len, header.values())) > limits.TEXT:
                raise ValueError(f"format {version}, or a text of more than {limits.TEXT} characters")
            texts = {entry.name for entry in dataclasses.fields(cls) if entry.type == "str"}
            facts: dict[str, Any] = {key: value if key in texts else json.loads(value) for key, value in header.items()}
            del facts["format_version"]
            facts.pop("log_partition", None)
            shape = facts.pop("image_shape")
            inference, deeper, tiling = facts.pop("inference"), facts.pop("deeper", []), facts.pop("tiling", {})
            about = cls(
                image_shape=(int(shape[0]), int(shape[1])),
                inference=Inference(**limits.of_declared_types(Inference, inference)),
                deeper=tuple(int(size) for size in deeper),
                tiling=Tiling(**limits.of_declared_types(Tiling, tiling)),
                **limits.of_declared_types(cls, facts),
            )
            known = about.family in FAMILIES and about.hidden_type in UNITS
            known = known and (about.visible in PIXELS or (about.mixture and about.visible == "gaussian"))
            if not known or not (about.plain or FAMILIES[about.family].any_units):
                raise ValueError(f"no such machine here: {about.family}, {about.visible}, {about.hidden_type}")
            units = about.hidden == 0 if about.fully_visible else about.hidden >= 1
            if list(about.image_shape) != shape or min(shape) < 1 or not units or not 0 <= about.threshold < 255:
                raise ValueError(f"{about.hidden} hidden units, images of shape {shape}, threshold {about.threshold}")
            if list(about.deeper) != deeper or bool(deeper) != FAMILIES[about.family].deep or min(about.sizes) < 1:
                raise ValueError(f"a {about.family} with layers of {about.sizes} units")
            if about.layers > limits.LAYERS or max(about.sizes) > limits.UNITS:
                raise ValueError(f"at most {limits.LAYERS} layers of {limits.UNITS} units are known here")
            starts = min(about.inference.starts, about.inference.modes + 1)
            if 4 * starts**2 * about.pixels > limits.DISTANCES:
                raise ValueError(f"{starts} starts of {about.pixels} pixels take too much memory")
            if (about.components > 0) != about.mixture or about.components * about.hidden > limits.UNITS:
                raise ValueError(f"a {about.family} of {about.components} components")
            if (about.kernel > 1) != about.convolutional or not 0 <= about.kernel <= min(about.image_shape):
                raise ValueError(f"a {about.family} with a kernel of {about.kernel}")
            wrong = misfit(
                about.inference.solver, fully_visible=about.fully_visible, mixture=about.mixture, plain=about.plain
            )
            if wrong:
                raise ValueError(wrong)
            if about.grey and about.inference.modes:
                raise ValueError("modes of a prior of grey images")
            if about.task:
                parse_task(about.task)
            if bool(about.task) != about.conditional:
                raise ValueError(f"a {about.family} with the task {about.task!r}")
            if about.conditional and about.inference.starts:
                raise ValueError(f"a {about.family} with {about.inference.starts} starts")
            return about
        except (ValueError, TypeError, KeyError, IndexError, AttributeError, ArithmeticError, RecursionError) as fault:
            raise ModelError(f"{where}: its description is damaged ({reason(fault)}); get the file again") from fault
