"""How to train: the options that the command and Python share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from restore.errors import UsageError, option, require
from restore.learning.learners import METHODS
from restore.sizes import DEFAULT_MAX_PIXELS

if TYPE_CHECKING:
    from restore.data.gathering import Gathering
    from restore.data.stock import Limits

Table = Mapping[str, Any]


def _option(default: Any, help: str, shown: str = "") -> Any:
    """A field with what `--help` and Python's documentation say of it, and what the command says of its default."""
    return field(default=default, metadata={"help": help, "default": shown})


# What may be given with a recipe, and overrides it.
WITH_RECIPE = {"name", "hidden", "epochs", "minutes", "data"}


@dataclass(frozen=True)
class TrainOptions:
    """How to train; each field says in its metadata what it is for, and None leaves it to the images or the recipe.

    `tables` are tables of a recipe, which override everything else.
    """

    name: str | None = _option(None, "What to call the prior.", "that of the images, or the recipe's")
    method: str | None = _option(None, f"How to learn: {', '.join(METHODS)}.", "by the images")
    hidden: int | Literal["auto"] | None = _option(
        None,
        "Number of hidden units, or of features; auto adds units as long as they explain held-out images better.",
        "by the images",
    )
    epochs: int | None = _option(None, "Passes over the images.", "by their number")
    minutes: float | None = _option(None, "Time limit for all but the graph; training ends with the best prior so far.")
    task: str | None = _option(None, "Learn to undo one kind of damage, such as flip:0.1.")
    shape: tuple[int, int] | None = _option(
        None,
        "Size of images to learn, in Python (height, width); others are resized.",
        "their own, or windows of large ones",
    )
    patches: int | None = _option(None, "Learn from this many random patches of larger images.")
    levels: Literal["auto", "binary", "grey"] | None = _option(
        None, "Learn black and white (binary), or grey levels.", "auto"
    )
    threshold: int | None = _option(None, "Grey level, 0 to 254, above which a pixel is white.", "Otsu's")
    held_out: float | None = _option(None, "Share of the files to judge the prior by.", "0.1")
    seed: int | None = _option(None, "Seed of all randomness.", "0")
    data: Path | None = _option(  # noqa: RUF009
        None, "Folder of named data sets; with a recipe, also other images: a folder, an idx file or .npy."
    )
    run: Path | None = _option(  # noqa: RUF009
        None, "Folder for checkpoints, log.jsonl, the report, and the best prior so far.", "runs/NAME"
    )
    resume: bool = _option(False, "Continue from the checkpoint; the time limit may change, and the number of threads.")
    every: int = _option(0, "Also keep the prior every N epochs, in epochs/ of the run.")
    overwrite: bool = _option(False, "Replace the run and the prior of this name, if there are any.")
    device: str = _option("auto", "auto, cpu or cuda[:N].")
    max_bad: int = _option(0, "Unreadable images of a folder to skip before giving up.")
    max_pixels: int = _option(
        DEFAULT_MAX_PIXELS, "Refuse larger images, and sets of more than twenty times as many pixels."
    )
    tables: Mapping[str, Table] = field(default_factory=dict)

    def __post_init__(self) -> None:
        known = METHODS.get(self.method or "")
        conditional = known is not None and known.learnt
        require(
            known is not None or self.method in (None, "auto"),
            f"method must be auto or one of {', '.join(METHODS)}, not {self.method}",
        )
        for key, table in self.tables.items():
            require(isinstance(table, Mapping), f"{key} is a table of a recipe, such as {{'penalty': 0.01}}")
        require(self.hidden != 0, "hidden must be at least 1, not 0")
        require(
            bool(self.task) or not conditional, f"task is missing; {self.method} undoes one damage, such as flip:0.1"
        )
        require(
            not self.task or conditional or known is None,
            f"task is for conditional priors, which {self.method} does not train; leave task out, or take crbm-bp",
        )

    def check_length(self) -> None:
        """Refuse a length of training that no plan can have; a recipe may have both a number of epochs and a limit."""
        require(self.epochs is None or self.minutes is None, "epochs and minutes exclude each other; give one of them")
        require(self.epochs is None or self.epochs >= 1, f"epochs must be at least 1, not {self.epochs}")
        require(self.minutes is None or self.minutes > 0, f"minutes must be positive, not {self.minutes}")

    @property
    def given(self) -> dict[str, Any]:
        """The settings of the prior that the caller gave, by name."""
        values = {one.name: getattr(self, one.name) for one in fields(self) if one.default is None}
        return {name: value for name, value in values.items() if value is not None and name != "run"}

    def check_recipe(self, name: str) -> None:
        """Refuse, with a UsageError, what cannot be given with a recipe, called by a name."""
        settled = ", ".join(option(given) for given in self.given if given not in WITH_RECIPE)
        if settled:
            raise UsageError(f"is a recipe, which settles that; change it there and leave {settled} out", name)

    @property
    def gathering(self) -> Gathering:
        """How images are gathered."""
        from restore.data.gathering import Gathering

        names = ("shape", "patches", "levels", "held_out")
        given = {name: self.given[name] for name in names if name in self.given}
        if self.tables.get("prior", {}).get("visible", "bernoulli") != "bernoulli":
            given["levels"] = "grey"
        return Gathering(**given)

    @property
    def limits(self) -> Limits:
        """What may be read of the images."""
        from restore.data.stock import Limits

        return Limits(self.data, self.max_bad, self.max_pixels)
