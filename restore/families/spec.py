"""The description of a machine: the same keys in a recipe's [prior] and in the header of a trained prior."""

from __future__ import annotations

from dataclasses import dataclass, fields

from restore.channels import Task, parse_task
from restore.errors import UsageError, require
from restore.families.family import Family, Keys
from restore.families.machines import FAMILIES
from restore.registry import SOLVERS


@dataclass(frozen=True, kw_only=True)
class Spec(Keys):
    """The machine of a prior: the same keys in a recipe's [prior] and in a header.

    >>> spec = Spec(hidden=100)
    >>> spec.check()
    >>> spec.kind.words, spec.grey, spec.misfit("exact") == ""
    ('restricted Boltzmann machine', False, False)
    """

    @property
    def kind(self) -> Family:
        """The family of the machine."""
        return FAMILIES[self.family]

    @property
    def alone(self) -> Spec:
        """The machine without the further keys of a recipe or a header."""
        return Spec(**{entry.name: getattr(self, entry.name) for entry in fields(Spec)})

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
