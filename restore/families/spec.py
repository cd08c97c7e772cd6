"""The description of a machine: the same keys in a recipe's [prior] and in the header of a trained prior."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Literal, NamedTuple

from restore.channels import Task, parse_task
from restore.errors import UsageError, require
from restore.families.family import Family
from restore.families.machines import FAMILIES
from restore.registry import SOLVERS, UNITS


class Features(NamedTuple):
    """A layer of features, as [16, 3, 1, "rectified"] in a recipe.

    Attributes:
        number: features at every position.
        side: of the square window in the layer below, an odd multiple of the stride.
        stride: the step between positions, in units of the layer below.
        units: their type, a key of `UNITS`.
    """

    number: int
    side: int
    stride: int
    units: str


@dataclass(frozen=True, kw_only=True)
class Spec:
    """The machine of a prior: the same keys in a recipe's [prior] and in a header.

    Attributes:
        family: a key of `FAMILIES`.
        hidden: number of hidden units; of the layer next to the image for a deep machine, of each component for a
            mixture, 0 without hidden units and for machines of layers. A recipe may leave it to growth, "auto".
        visible, hidden_type: unit types, keys of `UNITS`.
        deeper: numbers of units of further hidden layers.
        components: number of Gaussians of a mixture.
        layers: the layers of a convolutional machine, that next to the image first.

    >>> spec = Spec(hidden=100)
    >>> spec.check()
    >>> spec.kind.words, spec.grey, spec.misfit("exact") == ""
    ('restricted Boltzmann machine', False, False)
    """

    hidden: int | Literal["auto"] = 0
    family: str = "rbm"
    visible: str = "bernoulli"
    hidden_type: str = "bernoulli"
    deeper: tuple[int, ...] = ()
    components: int = 0
    layers: tuple[Features, ...] = ()

    @property
    def kind(self) -> Family:
        """The family of the machine."""
        return FAMILIES[self.family]

    @property
    def alone(self) -> Spec:
        """The machine without the further keys of a recipe or a header."""
        return Spec(**{entry.name: getattr(self, entry.name) for entry in fields(Spec)})

    @property
    def grey(self) -> bool:
        """True if pixels are grey levels from 0 to 1 instead of black or white."""
        return not UNITS[self.visible].bits

    @property
    def binary(self) -> bool:
        """True if all units are 0 or 1."""
        types = {layer.units for layer in self.layers} or {self.hidden_type}
        return all(UNITS[name].bits for name in (self.visible, *types))

    @property
    def plain(self) -> bool:
        """True if all units are 0 or 1, in at most two layers."""
        return self.binary and not self.deeper

    @property
    def hidden_counts(self) -> tuple[int, ...]:
        """The numbers of hidden units, from the layer next to the image up."""
        assert self.hidden != "auto"
        return tuple(layer.number for layer in self.layers) or (self.hidden, *self.deeper)

    @property
    def step(self) -> int:
        """The pixels between neighbours of the coarsest layer."""
        return math.prod(layer.stride for layer in self.layers)

    @property
    def solvers(self) -> tuple[str, ...]:
        """The solvers that fit the machine."""
        return tuple(name for name in SOLVERS if not self.misfit(name))

    def misfit(self, solver: str) -> str:
        """The reason why a solver does not fit the machine; empty if it does."""
        known = SOLVERS[solver]
        structure = self.kind.structure
        if structure not in known.structures:
            others = ", ".join(other for other in SOLVERS if structure in SOLVERS[other].structures)
            return f"{solver} does not solve a {structure} machine; take {others}"
        if known.coarser > 1 and not self.kind.pages:
            return f"{solver} reads pages, and this is a {self.kind.words}; take up_and_down"
        return "" if known.any_units or self.plain else f"{solver} is for binary units in two layers; take tap"

    def task_of(self, text: str, mask: str | None = None) -> Task:
        """The damage that a text such as "flip:0.1" names, for images of this kind; see `parse_task`."""
        if self.kind.pages:
            raise UsageError(f"a {self.kind.words} reads grey pages with their own damage, not {text!r}; leave it out")
        return parse_task(text, mask, grey=self.grey)

    def check(self, image_shape: tuple[int, int] | None = None) -> None:
        """Raise UsageError for an impossible machine, for images (H, W) if these are known."""
        require(self.family in FAMILIES, f"family must be one of {', '.join(FAMILIES)}, not {self.family!r}")
        self.kind.check(self, image_shape)
