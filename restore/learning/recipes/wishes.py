"""The input of a plan: facts about images, what a user asks for, and the known methods."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from restore.families import FAMILIES
from restore.learning.recipes.tables import require
from restore.registry import Offer

# With fewer images a prior is held back in proportion, at most by this factor: it knows less about such images.
PLENTY = 5000
MOST_HELD_BACK = 20.0


@dataclass(frozen=True)
class Method:
    """What `--method` names: a learner and its settings, and the family of the priors that it trains."""

    family: str
    learner: str
    offer: Offer

    @property
    def learnt(self) -> bool:
        """True if its priors undo the one damage that they have learnt."""
        return FAMILIES[self.family].learnt


METHODS: Mapping[str, Method] = {
    name: Method(family, learner, offer)
    for family, kind in FAMILIES.items()
    for learner, entry in kind.learners.items()
    for name, offer in entry.offers.items()
}


@dataclass(frozen=True)
class Facts:
    """What a plan must know about images.

    Attributes:
        images: number of training images.
        image_shape: height and width.
        levels: "binary" or "grey".
        threshold: grey level, 0 to 254, above which a pixel of binary images is white.
        black: share of the pixels that are exactly black.
    """

    images: int
    image_shape: tuple[int, int]
    levels: Literal["binary", "grey"]
    threshold: int = 127
    black: float = 0.0

    @property
    def pixels(self) -> int:
        return self.image_shape[0] * self.image_shape[1]

    @property
    def grey(self) -> bool:
        return self.levels == "grey"

    @property
    def held_back(self) -> float:
        """The factor for penalties on weights; above 1 if there are few images."""
        return min(MOST_HELD_BACK, max(1.0, PLENTY / self.images))


@dataclass(frozen=True)
class Wishes:
    """What a user asks for; None, "" and "auto" leave it to the plan.

    Attributes:
        method: one of `METHODS`.
        hidden: number of hidden units; "auto" finds it by growing them, or by held-out images.
        epochs: passes over the images.
        minutes: the most time that all may take.
        task: the damage that a conditional prior learns to undo, such as "flip:0.1".
        tables: tables of a recipe; their entries override the plan.

    Raises:
        UsageError: if a value is out of its range, or two do not go together.
    """

    method: str = "auto"
    hidden: int | Literal["auto"] | None = None
    epochs: int | None = None
    minutes: float | None = None
    task: str = ""
    tables: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        known = METHODS.get(self.method)
        conditional = known is not None and known.learnt
        require(
            self.method in ("auto", *METHODS), f"method must be auto or one of {', '.join(METHODS)}, not {self.method}"
        )
        for key, table in self.tables.items():
            require(isinstance(table, Mapping), f"{key} is a table of a recipe, such as {{'penalty': 0.01}}")
        require(self.hidden != 0, "hidden must be at least 1, not 0")
        require(self.epochs is None or self.minutes is None, "epochs and minutes exclude each other; give one of them")
        require(self.epochs is None or self.epochs >= 1, f"epochs must be at least 1, not {self.epochs}")
        require(self.minutes is None or self.minutes > 0, f"minutes must be positive, not {self.minutes}")
        require(
            bool(self.task) or not conditional, f"task is missing; {self.method} undoes one damage, such as flip:0.1"
        )
        require(
            not self.task or conditional or self.method == "auto",
            f"task is for conditional priors, which {self.method} does not train; leave task out, or take crbm-bp",
        )
