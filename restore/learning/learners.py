"""The learners by family and by their names in recipes, and what `restore train --method` offers.

A new learner is a file in `restore/learning/rules/` that fulfils `contract.py` there, and an entry of `LEARNERS` for
each family that it trains. Nothing here loads torch.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from restore.families import FAMILIES
from restore.registry import Entry

RULES_PACKAGE = "restore.learning.rules"
TAP = Entry(f"{RULES_PACKAGE}.tap_likelihood:TAPLikelihood")
MATCHED = Entry(f"{RULES_PACKAGE}.matched:MatchedMarginals")

LEARNERS: Mapping[str, Mapping[str, Entry]] = {
    "rbm": {
        "tap": TAP,
        "matched": MATCHED,
        "contrastive": Entry(f"{RULES_PACKAGE}.contrastive:ContrastiveDivergence"),
        "spectral": Entry(f"{RULES_PACKAGE}.spectral:SpectralDescent"),
        "frank_wolfe": Entry(f"{RULES_PACKAGE}.frank_wolfe:FrankWolfe"),
        "frank_wolfe_linear": Entry(f"{RULES_PACKAGE}.frank_wolfe:LinearFrankWolfe"),
        "principal": Entry(f"{RULES_PACKAGE}.principal:Principal"),
    },
    "crbm": {
        "belief_propagation": Entry(f"{RULES_PACKAGE}.conditional.likelihood:BeliefPropagationLikelihood"),
        "mean_field": Entry(f"{RULES_PACKAGE}.conditional.likelihood:MeanFieldLikelihood"),
        "contrastive": Entry(f"{RULES_PACKAGE}.conditional.divergence:ConditionalDivergence"),
        "perceptron": Entry(f"{RULES_PACKAGE}.conditional.divergence:PerceptronLoss"),
        "marginal_max_margin": Entry(f"{RULES_PACKAGE}.conditional.max_margin:MarginalMaxMargin"),
        "latent_max_margin": Entry(f"{RULES_PACKAGE}.conditional.max_margin:LatentMaxMargin"),
        "logistic": Entry(f"{RULES_PACKAGE}.conditional.likelihood:LogisticRegression"),
    },
    "fvbm": {
        "bslm": Entry(f"{RULES_PACKAGE}.bslm:BSLM"),
        "gradient_ascent": Entry(f"{RULES_PACKAGE}.bslm:GradientAscent"),
        "quasi_newton": Entry(f"{RULES_PACKAGE}.bslm:QuasiNewton"),
    },
    "deep": {"tap": TAP, "matched": MATCHED},
    "deep_convolutional": {"matched": MATCHED},
    "informed_convolutional": {"matched": MATCHED},
    "conditional_convolutional": {"matched": MATCHED},
    "mixture": {"expectation_maximisation": Entry(f"{RULES_PACKAGE}.mixture:ExpectationMaximisation")},
}


@dataclass(frozen=True)
class Method:
    """What `--method` names.

    Attributes:
        family: of the priors that it trains, a key of `FAMILIES`.
        learner: a key of that family's `LEARNERS`.
        settings: the learner's settings that differ from its own defaults.
        levels: the pixels that it learns from, "binary" or "grey".
        rate, scale: of steps, and of the first weights, where the template leaves them to the method.
        template: the file in `restore/learning/usual/` that a plan fills in; by default that of the images' pixels.
    """

    family: str
    learner: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    levels: tuple[str, ...] = ("binary",)
    rate: float = 0.0
    scale: float = 0.0
    template: str = ""

    @property
    def learnt(self) -> bool:
        return FAMILIES[self.family].learnt


METHODS: Mapping[str, Method] = {
    "tap": Method("rbm", "tap", {"starts": "redrawn"}, levels=("binary", "grey")),
    "pcd": Method("rbm", "contrastive", {"starts": "persistent"}),
    "cd": Method("rbm", "contrastive", {"centring": False, "steps": 10}),
    "cg": Method("rbm", "contrastive", {"steps": 10}),
    "s-dcp": Method("rbm", "contrastive", {"centring": False, "steps": 4, "inner_steps": 6}),
    "cs-dcp": Method("rbm", "contrastive", {"steps": 4, "inner_steps": 6}),
    "ssd": Method("rbm", "spectral", {"steps": 10}, rate=0.002, scale=0.01),
    "fw": Method("rbm", "frank_wolfe", template="frank_wolfe"),
    "fw-linear": Method("rbm", "frank_wolfe_linear", template="frank_wolfe"),
    "principal": Method("rbm", "principal", levels=("grey",), template="principal"),
    "crbm-bp": Method("crbm", "belief_propagation", rate=0.03, scale=0.05, template="conditional"),
    "crbm-mf": Method("crbm", "mean_field", rate=0.03, scale=0.05, template="conditional"),
    "crbm-cd": Method("crbm", "contrastive", rate=0.02, scale=0.01, template="conditional"),
    "crbm-percloss": Method("crbm", "perceptron", rate=0.02, scale=0.01, template="conditional"),
    "crbm-mssvm": Method("crbm", "marginal_max_margin", rate=0.01, scale=0.05, template="conditional"),
    "crbm-lssvm": Method("crbm", "latent_max_margin", rate=0.01, scale=0.05, template="conditional"),
    "crbm-lr": Method("crbm", "logistic", rate=0.02, template="conditional"),
    "fvbm": Method(
        "fvbm", "quasi_newton", {"precision": "float32", "steps": 60, "rounds": 2}, template="fully_visible"
    ),
    "bslm": Method("fvbm", "bslm", template="fully_visible"),
    "convolutional": Method("informed_convolutional", "matched", template="convolutional"),
}
