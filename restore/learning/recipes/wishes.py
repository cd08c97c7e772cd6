"""The input of a plan: facts about images, what a user asks for, and the known methods."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from restore.learning.recipes.tables import require

# With fewer images a prior is held back in proportion, at most by this factor: it knows less about such images.
PLENTY = 5000
MOST_HELD_BACK = 20.0

# Learners of unconditional priors; and of conditional ones, with rate and scale of weights.
PLAIN: dict[str, dict[str, Any]] = {
    "convolutional": {"method": "matched"},
    "tap": {"method": "tap", "starts": "redrawn"},
    "pcd": {"method": "contrastive", "starts": "persistent"},
    "cd": {"method": "contrastive", "steps": 10},
    "fw": {"method": "frank_wolfe"},
    "fvbm": {"method": "quasi_newton", "precision": "float32", "steps": 60, "rounds": 2},
    "principal": {"method": "principal"},
}
CONDITIONAL: dict[str, tuple[str, float, float]] = {
    "crbm-bp": ("belief_propagation", 0.03, 0.05),
    "crbm-mf": ("mean_field", 0.03, 0.05),
    "crbm-cd": ("contrastive", 0.02, 0.01),
    "crbm-percloss": ("perceptron", 0.02, 0.01),
    "crbm-mssvm": ("marginal_max_margin", 0.01, 0.05),
    "crbm-lssvm": ("latent_max_margin", 0.01, 0.05),
    "crbm-lr": ("logistic", 0.02, 0.0),
}
METHODS = (*PLAIN, *CONDITIONAL)
OF_GREY = ("tap", "principal")


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
        conditional = self.method in CONDITIONAL
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
