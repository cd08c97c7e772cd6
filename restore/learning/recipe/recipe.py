"""Recipes: a whole training run as one TOML file, read into plain dataclasses.

Unknown keys, wrong types and values out of range are usage errors that name the key and what it may be.
"""

from __future__ import annotations

import hashlib
import json
import tomllib
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from restore.errors import UsageError, reason, require, shown
from restore.families import FAMILIES
from restore.learning.learners import LEARNERS
from restore.learning.recipe.spec import Data, Optimizer, Pretraining, PriorShape, Training
from restore.learning.rules.frank_wolfe import FrankWolfe
from restore.zoo.inference import Inference
from restore.zoo.search import check_name
from restore.zoo.structure import expect, short, structure

# Entries of [prior] for binary units in two layers. Other machines restore from one start unless a recipe asks for
# modes.
PLAIN = {"visible": "bernoulli", "hidden_type": "bernoulli", "deeper": [], "layers": []}

# The most bytes of a file that may be a recipe.
MAX_BYTES = 1 << 20


@dataclass(frozen=True)
class Recipe:
    """A training run; its tables are documented in their classes, [inference] in `restore.zoo.inference.Inference`.

    With [prior] hidden = "auto", hidden units are first added as [growth] says; with [pretraining], the layers of a
    deep machine are first trained one by one. The learner continues from there.

    `storage` is the precision in which the weights are stored, and then used.
    """

    name: str
    data: Data
    prior: PriorShape
    method: str
    learner: Any
    training: Training = field(default_factory=Training)
    optimizer: Optimizer = field(default_factory=Optimizer)
    inference: Inference = field(default_factory=Inference)
    growth: FrankWolfe = field(default_factory=FrankWolfe)
    seed: int = 0
    storage: Literal["float16", "float32"] = "float16"
    pretraining: Pretraining = field(default_factory=Pretraining)

    def __post_init__(self) -> None:
        check_name(self.name)
        require(0 <= self.seed < 2**63, f"seed must lie in 0 ... 2^63 - 1, not {self.seed}")
        self.data.check(self.prior)
        self.learner.check(self.prior)
        require(
            self.prior.plain or self.learner.any_units, f"[learner] {self.method} trains binary units only; take tap"
        )
        require(
            not (self.prior.filled and self.in_rounds),
            f"[prior] filled is for a learner that goes on from there, and {self.method} does not; leave it out",
        )
        require(
            not (self.prior.start and (self.pretraining.epochs or (self.in_rounds and not self.learner.grows))),
            f"[prior] start has no meaning for {self.method}, or with [pretraining]; leave it out",
        )
        wrong = self.prior.misfit(self.inference.solver)
        require(not wrong, f"[inference] {wrong}")
        require(self.prior.binary or not self.inference.modes, "[inference] modes are for binary units; set it to 0")
        self.pretraining.check(self.prior)
        if self.in_rounds:
            require(
                self.growth == FrankWolfe(),
                f"[growth] has no meaning for {self.method}, all whose settings are in [learner]; leave it out",
            )
            require(
                self.optimizer == Optimizer(),
                f"[optimizer] has no meaning for {self.method}, which takes its own steps; leave it out",
            )
        self.training.check(self.prior, self.data, by=self.method, in_rounds=self.in_rounds)

    @property
    def in_rounds(self) -> bool:
        return bool(self.learner.in_rounds)

    def inference_after(self, epoch: int) -> Inference:
        """How the prior of an epoch, from 0, restores: as its learner says if it has learnt to undo a damage."""
        return self.learner.inference(epoch) if self.data.task else self.inference

    def as_dict(self) -> dict[str, Any]:
        return json.loads(json.dumps(asdict(self)))

    @property
    def training_facts(self) -> dict[str, Any]:
        """The settings that decide the trained weights; their later use and storage do not."""
        return {key: value for key, value in self.as_dict().items() if key not in ("name", "inference", "storage")}

    @property
    def growth_facts(self) -> dict[str, Any]:
        """The settings that decide how hidden units grow, before another learner continues."""
        settings = self.learner if self.in_rounds else self.growth
        given = {"minutes": self.training.minutes, "start": self.prior.start if self.in_rounds else ""}
        return {name: value for name, value in given.items() if value} | {
            "data": self.as_dict()["data"],
            "growth": asdict(settings),
            "hidden": self.prior.hidden,
            "seed": self.seed,
        }

    @property
    def digest(self) -> str:
        """SHA-256 of all settings, whatever the layout of the file; defaults count as if written out.

        A new setting changes every digest: `training/restamp.py` then brings the published priors up to date.
        """
        return hashlib.sha256(json.dumps(self.as_dict(), sort_keys=True).encode()).hexdigest()


def read_recipe(path: Path) -> Recipe:
    """Read and check a recipe; a UsageError if it is none, or for unknown keys, wrong types and values out of range."""
    try:
        with path.open("rb") as stream:
            content = stream.read(MAX_BYTES + 1)
        require(len(content) <= MAX_BYTES, f"{shown(path)}: has more than {MAX_BYTES} bytes; give the path of a recipe")
        return parse(tomllib.loads(content.decode()))
    except OSError as fault:
        raise UsageError(f"cannot be read ({fault.strerror}); give the path of a recipe", path) from fault
    except UsageError as fault:
        raise UsageError(str(fault), path) from fault
    except (ValueError, RecursionError) as fault:  # a number of thousands of digits is a ValueError, too
        raise UsageError(f"not a TOML file ({reason(fault)}); see training/recipes/", path) from fault


def parse(table: dict[str, Any]) -> Recipe:
    """Make a recipe from the tables of its TOML file; raises as `read_recipe`."""
    require("method" not in table, "method is not a known key here; it belongs into [learner]")
    require("learner" in table, "[learner] is missing; add it")
    table = dict(table)
    learner_table = dict(expect(table.pop("learner"), dict, "[learner]"))
    method = learner_table.pop("method", None)
    prior = dict(expect(table.get("prior", {}), dict, "[prior]"))
    family = prior.get("family", "rbm")
    if not isinstance(family, str) or family not in FAMILIES:
        structure(PriorShape, {"hidden": 1} | prior, "[prior] ")  # says what it may be
    kind = FAMILIES[family]
    known = LEARNERS[family]
    if not isinstance(method, str) or method not in known:
        others = [name for name, learners in LEARNERS.items() if isinstance(method, str) and method in learners]
        hint = f'; that one is for [prior] family = "{others[0]}"' if others else ""
        choices = ", ".join(known)
        raise UsageError(f"[learner] method for family {family} must be one of {choices}, not {short(method)}{hint}")
    require("hidden" in prior or "prior" not in table or not kind.numbered, "[prior] hidden is missing; add it")
    require(
        not (kind.learnt and "inference" in table),
        f"[inference] follows from the learner of a {kind.words}; leave it out",
    )
    learner = structure(known[method].load(), learner_table, "[learner] ")
    usual: dict[str, Any] = {}
    if any(prior.get(key, plain) != plain for key, plain in PLAIN.items()):
        usual = {"modes": 0, "starts": 1}
    usual |= learner.restores_with
    if usual:
        table["inference"] = usual | dict(expect(table.get("inference", {}), dict, "[inference]"))
    return structure(Recipe, table | {"method": method, "learner": learner})
