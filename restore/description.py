"""What a prior says about itself in the header of its weights file: readable without loading a single weight."""

from __future__ import annotations

import dataclasses
import json
import typing
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from restore.errors import ModelError, UsageError, shown
from restore.tasks import parse_task

FORMAT = 1

# Kinds of machine: an RBM, and one whose fields follow from an observed image.
FAMILIES = ("rbm", "crbm")


@dataclass(frozen=True)
class Inference:
    """How a prior restores: its solver, and how many starts it gives the solver.

    Attributes:
        solver: the fixed point.
        max_iter: iteration limit per start.
        tol: a start has converged when no mean moves by more than this in one iteration.
        damping: share of the old value kept at each update, in [0, 1).
        modes: how many of its own modes the prior carries as possible starts.
        starts: starts per image: the pointwise estimate, and the modes nearest to the evidence. 0 leaves the start to
            the solver; belief propagation has no other way.
        trust: mean strength of the evidence, in log-odds per pixel, from which on log Z decides in full between
            solutions. Under weaker evidence their weight is exp(log Z) to a power in proportion: what tells solutions
            apart then is mostly the prior's own log Z, whose error is of the order of the differences.
    """

    solver: Literal["tap", "mean_field", "sum_product", "max_product", "mixed_product"] = "tap"
    max_iter: int = 1000
    tol: float = 1e-2
    damping: float = 0.3
    modes: int = 2000
    starts: int = 11
    trust: float = 1.5

    def __post_init__(self) -> None:
        if not 1 <= self.max_iter < 2**31:
            raise UsageError(f"max_iter must be at least 1, and fit into 32 bits, not {self.max_iter}")
        if self.starts < 0 or (self.starts == 0 and self.modes):
            raise UsageError(f"starts must not be negative, and 0 only without modes, not {self.starts}")
        if self.solver.endswith("_product") and self.starts:
            raise UsageError(f"{self.solver} starts by itself: set modes and starts to 0")
        if not self.trust > 0:
            raise UsageError(f"trust must be positive, not {self.trust}")
        if self.modes < 0:
            raise UsageError(f"modes must not be negative, not {self.modes}")
        if not self.tol >= 0 or not 0 <= self.damping < 1:
            raise UsageError(f"tol must be >= 0 and damping in [0, 1), not {self.tol} and {self.damping}")


@dataclass(frozen=True)
class Description:
    """The facts about a prior that decide how it is used.

    Attributes:
        name: published or chosen name.
        image_shape: height and width of the images it knows, in pixels.
        hidden: number of hidden units.
        threshold: a pixel is 1 when its grey level, 0 to 255, is above this.
        data: what it was trained on.
        method: the learner that trained it.
        recipe: SHA-256 of the recipe.
        inference: its solver.
        family, visible, hidden_type: kind of machine and of its units.
        task: the damage that a conditional prior undoes, such as "flip:0.1"; empty for all others, which are told how
            an image was damaged.
        licence: under which its weights are given.
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

    @property
    def pixels(self) -> int:
        return self.image_shape[0] * self.image_shape[1]

    @property
    def layers(self) -> int:
        """Number of layers of units, the image among them."""
        return 2

    @property
    def conditional(self) -> bool:
        """Whether the prior answers to a damaged image alone, without being told of a channel."""
        return self.family == "crbm"

    def check_told(self, told: bool) -> None:
        """Refuse to be told of the damage by a flip probability or a mask, or not to be, as the kind of prior is.

        Raises:
            UsageError: if a conditional prior is told, or another one is not.
        """
        if self.conditional and told:
            raise UsageError(
                f"{shown(self.name)} has learnt to undo {shown(self.task)} from the damaged image alone: "
                "`restore denoise` without --p and without a mask; for other damage choose another model"
            )
        if not self.conditional and not told:
            raise UsageError("p is missing; give the probability that a pixel is inverted, such as --p 0.1 (or p=0.1)")

    def check_unconditional(self, what: str) -> None:
        """Refuse what only a prior over images has, such as a likelihood.

        Raises:
            ModelError: if this one answers to a damaged image.
        """
        if self.conditional:
            raise ModelError(
                f"{shown(self.name)} answers to a damaged image and has no {what} of images by themselves; "
                "choose a prior that is told of the damage"
            )

    def to_header(self) -> dict[str, str]:
        """Metadata of a safetensors header: texts only."""
        facts = dataclasses.asdict(self) | {"format_version": FORMAT}
        return {key: value if isinstance(value, str) else json.dumps(value) for key, value in facts.items()}

    @classmethod
    def from_header(cls, header: Mapping[str, str] | None, where: str) -> Description:
        """Read the metadata of a weights file.

        Raises:
            ModelError: if it is no prior of ours, incomplete, or of a newer format; `where` names it in the message.
        """
        if not header or "format_version" not in header:
            raise ModelError(f"{where}: holds no prior of this package; train one with `restore train`")
        try:
            version = int(header["format_version"])
            if version > FORMAT:
                raise ModelError(
                    f"{where}: written in format {version}, this version reads {FORMAT}; update the package"
                )
            texts = {entry.name for entry in dataclasses.fields(cls) if entry.type == "str"}
            facts: dict[str, Any] = {key: value if key in texts else json.loads(value) for key, value in header.items()}
            del facts["format_version"]
            shape = facts.pop("image_shape")
            inference = facts.pop("inference")
            about = cls(
                image_shape=(int(shape[0]), int(shape[1])),
                inference=Inference(**_of_declared_types(Inference, inference)),
                **_of_declared_types(cls, facts),
            )
            if list(about.image_shape) != shape or min(*shape, about.hidden) < 1 or not 0 <= about.threshold < 255:
                raise ValueError(f"{about.hidden} hidden units, images of shape {shape}, threshold {about.threshold}")
            if about.family not in FAMILIES or (about.visible, about.hidden_type) != ("bernoulli", "bernoulli"):
                raise ValueError(f"no such machine here: {about.family}, {about.visible}, {about.hidden_type}")
            if about.task:
                parse_task(about.task)
            if bool(about.task) != about.conditional:
                raise ValueError(f"a {about.family} with the task {about.task!r}")
            if about.conditional and about.inference.starts:
                raise ValueError(f"a {about.family} with {about.inference.starts} starts")
            return about
        except (ValueError, TypeError, KeyError, IndexError, AttributeError, ArithmeticError, RecursionError) as fault:
            raise ModelError(f"{where}: its description is damaged ({fault}); get the file again") from fault


def _of_declared_types(kind: type, facts: Mapping[str, Any]) -> Mapping[str, Any]:
    """The facts as they are, if each has the type that its field declares; raises TypeError otherwise."""
    hints = typing.get_type_hints(kind)
    for name, value in facts.items():
        hint = hints.get(name)
        choices = typing.get_args(hint)
        fits = value in choices if choices else type(value) in ((float, int) if hint is float else (hint,))
        if not fits:
            raise TypeError(f"{name} is {value!r}")
    return facts
