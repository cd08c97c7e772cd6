"""Recipes: a whole training run as one TOML file, read into plain dataclasses.

Unknown keys, wrong types and values out of range are usage errors that name the key and what it may be.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import math
import re
import tomllib
import types
import typing
from collections.abc import Mapping
from dataclasses import MISSING, asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Literal, TypeVar

from restore.description import Inference
from restore.errors import UsageError, shown
from restore.learning.bslm import BSLM, GradientAscent, QuasiNewton
from restore.learning.conditional_divergence import ConditionalDivergence
from restore.learning.conditional_likelihood import BeliefPropagationLikelihood, MeanFieldLikelihood
from restore.learning.contrastive import ContrastiveDivergence
from restore.learning.frank_wolfe import FrankWolfe
from restore.learning.logistic import LogisticRegression
from restore.learning.max_margin import LatentMaxMargin, MarginalMaxMargin
from restore.learning.perceptron import PerceptronLoss
from restore.learning.principal import Principal
from restore.learning.spectral import SpectralDescent
from restore.learning.tables import Data, Optimizer, Pretraining, PriorShape, Training, require
from restore.learning.tap_likelihood import TAPLikelihood
from restore.registry import SOLVERS, solvers_for
from restore.tasks import parse_task

# By the kind of prior they train.
LEARNERS: dict[str, dict[str, type]] = {
    "rbm": {
        "tap": TAPLikelihood,
        "contrastive": ContrastiveDivergence,
        "spectral": SpectralDescent,
        "frank_wolfe": FrankWolfe,
        "principal": Principal,
    },
    "deep": {"tap": TAPLikelihood},
    "crbm": {
        "belief_propagation": BeliefPropagationLikelihood,
        "mean_field": MeanFieldLikelihood,
        "contrastive": ConditionalDivergence,
        "perceptron": PerceptronLoss,
        "marginal_max_margin": MarginalMaxMargin,
        "latent_max_margin": LatentMaxMargin,
        "logistic": LogisticRegression,
    },
    "fvbm": {"bslm": BSLM, "gradient_ascent": GradientAscent, "quasi_newton": QuasiNewton},
}

# How fully visible machines restore unless a recipe says otherwise. TAP with the common damping oscillates on couplings
# learnt from images, mean field does not; and Gibbs chains that lead to modes take a step per pixel.
FULLY_VISIBLE_INFERENCE = {"solver": "mean_field", "damping": 0.5, "modes": 0, "starts": 1}

# The same for principal components, whose couplings are too strong for TAP. Mean field has the means of Gaussian units
# right, at any strength.
PRINCIPAL_INFERENCE = {"solver": "mean_field", "max_iter": 5000, "tol": 1e-3, "damping": 0.0}

# What [prior] says of units that are binary and in two layers. Machines of others restore from one start unless a
# recipe asks for modes.
PLAIN = {"visible": "bernoulli", "hidden_type": "bernoulli", "deeper": []}

# Those that change the prior themselves, in rounds over all images.
IN_ROUNDS = ("frank_wolfe", "principal", *LEARNERS["fvbm"])

Made = TypeVar("Made")


def check_name(name: str) -> None:
    """Raises UsageError for what cannot be the name of a prior."""
    require(
        bool(re.fullmatch(r"\w[\w.+-]{0,59}", name)),
        f"name becomes a folder: at most 60 letters, digits and . _ + -, the first no sign, not {name!r}",
    )


@dataclass(frozen=True)
class Recipe:
    """A training run: see the classes of its tables; [inference] is `restore.description.Inference`.

    [growth] says how hidden units are added where [prior] hidden = "auto"; the learner then goes on from there.
    Likewise [pretraining] for the layers of a deep machine.

    `storage` is the precision in which the weights are kept, in the file and from then on.
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
        scale = self.prior.weight_scale
        if isinstance(self.learner, LogisticRegression):
            require(scale == 0, f"[prior] weight_scale must be 0 for logistic regression, not {scale}")
        else:
            require(0 < scale < math.inf, f"[prior] weight_scale must be positive, not {scale}")
        if self.conditional:
            require(bool(self.data.task), '[data] task is missing; a crbm undoes a damage, such as "flip:0.1"')
        else:
            require(not self.data.task, '[data] task belongs to [prior] family = "crbm"; leave it away')
        require(
            not self.prior.grey or self.data.binarisation == "threshold",
            "[data] binarisation is for black and white pixels, and these are grey; leave it away",
        )
        if self.auto:
            require(
                not isinstance(self.learner, LogisticRegression),
                '[prior] hidden = "auto" has no meaning for logistic regression, which uses no hidden unit; give 1',
            )
            require(self.data.holds_out, '[data] validation is missing; hidden = "auto" needs images held out')
            require(
                self.prior.binary or isinstance(self.learner, Principal),
                '[prior] hidden = "auto" grows binary units, or counts components of principal; give a number',
            )
        require(
            not (self.prior.filled and self.in_rounds),
            f"[prior] filled is for a learner that goes on from there, and {self.method} does not; leave it away",
        )
        if self.prior.family == "fvbm":
            solver, fitting = self.inference.solver, solvers_for(fully_visible=True, plain=True)
            require(
                solver in fitting,
                f"[inference] solver of a fully visible machine is {', '.join(fitting)}, not {solver}",
            )
        if isinstance(self.learner, Principal):
            require(
                (self.prior.visible, self.prior.hidden_type) == ("truncated-gaussian", "gaussian"),
                '[learner] principal is for [prior] visible = "truncated-gaussian" and hidden_type = "gaussian"; '
                "give them",
            )
        if not self.prior.plain:
            require(
                isinstance(self.learner, TAPLikelihood | ContrastiveDivergence | Principal),
                f"[learner] {self.method} trains binary units only; take tap",
            )
            solver = self.inference.solver
            require(SOLVERS[solver].any_units, f"[inference] {solver} is for binary units in two layers; take tap")
            require(
                self.prior.binary or not self.inference.modes, "[inference] modes are for binary units; set it to 0"
            )
        if self.pretraining.epochs:
            require(self.prior.family == "deep", '[pretraining] is for [prior] family = "deep"; leave it away')
            require(self.prior.hidden_type == "bernoulli", "[pretraining] is for binary hidden units; leave it away")
        if isinstance(self.learner, TAPLikelihood):
            grey, unit = self.prior.grey, self.learner.grey_unit
            require(grey or unit == 1, "[learner] grey_unit is for grey pixels; leave it away")
            require(
                self.prior.plain or self.learner.fixed_point == "tap",
                '[learner] fixed_point = "adaptive_tap" is for binary units in two layers; leave it away',
            )
            require(not grey or self.learner.starts != "noisy", '[learner] starts = "noisy" flips pixels; take redrawn')
        if self.in_rounds:
            require(
                self.growth == FrankWolfe(),
                f"[growth] has no meaning for {self.method}, all whose settings are in [learner]; leave it away",
            )
            require(not self.training.epochs, f"[training] epochs has no meaning for {self.method}; leave it away")
            require(not self.training.watch, f"[training] watch has no meaning for {self.method}; leave it away")
            require(
                self.optimizer == Optimizer(),
                f"[optimizer] has no meaning for {self.method}, which takes its own steps; leave it away",
            )
        else:
            require(self.training.epochs > 0 or self.training.minutes > 0, "[training] epochs is missing; add it")
        if self.training.watch:
            require(not self.conditional, "[training] watch is what a crbm has in [data] task; leave it away")
            require(self.data.holds_out, "[data] validation is missing; [training] watch needs images held out")
            parse_task(self.training.watch, grey=self.prior.grey)
        require(
            ((self.conditional or bool(self.training.watch)) and self.data.holds_out) or not self.training.patience,
            '[training] patience needs [data] validation, and an error to watch: [prior] family = "crbm", or '
            "[training] watch",
        )

    @property
    def auto(self) -> bool:
        """Whether the number of hidden units is found by growing them."""
        return self.prior.hidden == "auto"

    @property
    def in_rounds(self) -> bool:
        """Whether the learner changes the prior itself, in rounds over all images."""
        return self.method in IN_ROUNDS

    @property
    def limit(self) -> int:
        """Epochs, or rounds at most."""
        if isinstance(self.learner, FrankWolfe):
            return self.learner.units if self.prior.hidden == "auto" else self.prior.hidden
        return self.learner.rounds if self.in_rounds else self.training.epochs

    @property
    def conditional(self) -> bool:
        """Whether the prior answers to a damaged image alone; its learner then knows how it restores."""
        return self.prior.family == "crbm"

    @property
    def manner(self) -> Literal["threshold", "sampled", "grey"]:
        """How images become pixels to learn from, as in `restore.data.as_pixels`."""
        return "grey" if self.prior.grey else self.data.binarisation

    def as_dict(self) -> dict[str, Any]:
        """Everything the recipe says, in values that JSON has."""
        return json.loads(json.dumps(asdict(self)))

    @property
    def training_facts(self) -> dict[str, Any]:
        """What decides the trained weights; how they are used and stored later does not."""
        return {key: value for key, value in self.as_dict().items() if key not in ("name", "inference", "storage")}

    @property
    def growth_facts(self) -> dict[str, Any]:
        """What decides how hidden units grow, before a learner goes on from there."""
        settings = self.learner if self.in_rounds else self.growth
        minutes = {"minutes": self.training.minutes} if self.training.minutes else {}
        return minutes | {
            "data": self.as_dict()["data"],
            "growth": asdict(settings),
            "hidden": self.prior.hidden,
            "seed": self.seed,
        }

    @property
    def digest(self) -> str:
        """SHA-256 of all settings, whatever the layout of the file; defaults count as if they were written out.

        So a recipe that would train differently has another digest, even if only a default has changed. A new setting
        changes every digest: `training/restamp.py` then brings the published priors up to date.
        """
        return hashlib.sha256(json.dumps(self.as_dict(), sort_keys=True).encode()).hexdigest()


def read_recipe(path: Path) -> Recipe:
    """Read and check a recipe.

    Raises:
        UsageError: if the file is missing or is no TOML, and for unknown keys, wrong types and values out of range.
    """
    try:
        text = path.read_bytes().decode()
        table = tomllib.loads(text)
    except OSError as fault:
        raise UsageError(f"{shown(path)}: cannot be read ({fault.strerror}); give the path of a recipe") from fault
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as fault:
        raise UsageError(f"{shown(path)}: not a TOML file ({fault}); see training/ for examples") from fault
    try:
        return parse(table)
    except UsageError as fault:
        raise UsageError(f"{shown(path)}: {fault}") from fault


def parse(table: dict[str, Any]) -> Recipe:
    """A recipe from the tables of its TOML file."""
    table = dict(table)
    if "learner" not in table:
        raise UsageError("[learner] is missing; add it")
    if "method" in table:
        raise UsageError("method is not a known key here; it belongs into [learner]")
    learner_table = dict(_expect(table.pop("learner"), dict, "[learner]"))
    method = learner_table.pop("method", None)
    prior = table.get("prior")
    family = prior.get("family", "rbm") if isinstance(prior, dict) else "rbm"
    known = LEARNERS.get(family, {}) if isinstance(family, str) else {}
    if known and (not isinstance(method, str) or method not in known):
        others = [other for other, methods in LEARNERS.items() if isinstance(method, str) and method in methods]
        hint = f'; that one is for [prior] family = "{others[0]}"' if others else ""
        raise UsageError(
            f"[learner] method for family {family} must be one of {', '.join(known)}, not {method!r}{hint}"
        )
    if family != "fvbm" and isinstance(prior, dict) and "hidden" not in prior:
        raise UsageError("[prior] hidden is missing; add it")
    if family == "crbm" and "inference" in table:
        raise UsageError("[inference] follows from the learner of a crbm; leave it away")
    if family == "fvbm":
        table["inference"] = FULLY_VISIBLE_INFERENCE | dict(_expect(table.get("inference", {}), dict, "[inference]"))
    if method == "principal":
        table["inference"] = PRINCIPAL_INFERENCE | dict(_expect(table.get("inference", {}), dict, "[inference]"))
    if any(isinstance(prior, dict) and prior.get(key, plain) != plain for key, plain in PLAIN.items()):
        table["inference"] = {"modes": 0, "starts": 1} | dict(_expect(table.get("inference", {}), dict, "[inference]"))
    learner = _make(known[method], learner_table, "[learner] ") if known else None
    return _make(Recipe, table | {"method": method, "learner": learner}, "")


def _make(kind: type[Made], table: dict[str, Any], where: str) -> Made:
    """Build a dataclass from a TOML table, checking names and types; the class itself checks ranges."""
    known = {entry.name: entry for entry in fields(kind)}  # type: ignore[arg-type]
    hints = typing.get_type_hints(kind)
    for key in table:
        if key not in known:
            near = difflib.get_close_matches(key, known, 1)
            hint = f"did you mean {near[0]}?" if near else f"known: {', '.join(known)}"
            raise UsageError(f"{where}{shown(key)} is not a known key; {hint}")
    required = {entry.name for entry in known.values() if entry.default is entry.default_factory is MISSING}
    for missing in sorted(required - table.keys()):
        raise UsageError(f"{where}{missing} is missing; add it")
    values = {key: _typed(value, hints[key], f"{where}{key}") for key, value in table.items()}
    try:
        return kind(**values)
    except UsageError as fault:
        raise UsageError(f"{where}{fault}") from fault


def _typed(value: Any, hint: Any, where: str) -> Any:
    if typing.get_origin(hint) is Literal:
        choices = typing.get_args(hint)
        if value not in choices:
            raise UsageError(f"{where} must be one of {', '.join(map(str, choices))}, not {value!r}")
        return value
    if hint is Any:
        return value
    if typing.get_origin(hint) is Mapping:
        return _expect(value, dict, where)
    if hint in (int, float, bool, str):
        return _expect(value, hint, where)
    if typing.get_origin(hint) is tuple:
        kind = typing.get_args(hint)[0]
        return tuple(_expect(entry, kind, f"{where} entries") for entry in _expect(value, list, where))
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        # A number, or a word that stands for one.
        number, words = typing.get_args(hint)
        return value if value in typing.get_args(words) else _expect(value, number, where)
    # A table within a table is called by both names, as TOML does.
    table = f"[{where.removeprefix('[').replace('] ', '.')}]"
    return _make(hint, _expect(value, dict, table), f"{table} ")


def _expect(value: Any, kind: type, where: str) -> Any:
    if kind is float and type(value) is int and abs(value) < 2**63:
        return float(value)
    if type(value) is not kind:
        raise UsageError(f"{where} must be {_NAMES[kind]}, not {value!r}")
    return value


_NAMES: types.MappingProxyType[type, str] = types.MappingProxyType(
    {int: "a whole number", float: "a number", bool: "true or false", str: "a text", dict: "a table", list: "a list"}
)
