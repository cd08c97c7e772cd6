"""Learners by their names in recipes, and the families of priors that they train.

A new learner is a file in `restore/learning/rules/` that fulfils `contract.py` there (or `learning/rounds.py`), and an
entry here. Its settings, a dataclass on top of `LearningRule`, are keys of a recipe's [learner].
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from restore.registry.entry import Entry


@dataclass(frozen=True)
class Family:
    """A family of priors.

    Attributes:
        words: what it is called.
        any_units: whether units may be of any type; if not, they are bits.
        conditional: whether its priors have learnt to undo one damage; otherwise the caller says what the damage is.
        fully_visible: whether there are no hidden units.
        deep: whether there are several layers of hidden units.
        mixture: whether a prior is a mixture of Gaussians over unbounded grey pixels; it is solved in closed form.
        convolutional: whether hidden units are features, which are the same at every place.
    """

    words: str
    any_units: bool = False
    conditional: bool = False
    fully_visible: bool = False
    deep: bool = False
    mixture: bool = False
    convolutional: bool = False


FAMILIES: Mapping[str, Family] = MappingProxyType(
    {
        "rbm": Family("restricted Boltzmann machine", any_units=True),
        "crbm": Family("conditional restricted Boltzmann machine", conditional=True),
        "fvbm": Family("fully visible Boltzmann machine", fully_visible=True),
        "deep": Family("deep Boltzmann machine", any_units=True, deep=True),
        "convolutional": Family("convolutional restricted Boltzmann machine", convolutional=True),
        "mixture": Family("mixture of Gaussians", any_units=True, mixture=True),
    }
)

_TAP = Entry("restore.learning.rules.tap_likelihood:TAPLikelihood")
_MATCHED = Entry("restore.learning.rules.matched:MatchedMarginals")

LEARNERS: Mapping[str, Mapping[str, Entry]] = MappingProxyType(
    {
        "rbm": {
            "tap": _TAP,
            "matched": _MATCHED,
            "contrastive": Entry("restore.learning.rules.contrastive:ContrastiveDivergence"),
            "spectral": Entry("restore.learning.rules.spectral:SpectralDescent"),
            "frank_wolfe": Entry("restore.learning.rules.frank_wolfe:FrankWolfe"),
            "principal": Entry("restore.learning.rules.principal:Principal"),
        },
        "deep": {"tap": _TAP, "matched": _MATCHED},
        "convolutional": {"matched": _MATCHED},
        "crbm": {
            "belief_propagation": Entry("restore.learning.rules.conditional.likelihood:BeliefPropagationLikelihood"),
            "mean_field": Entry("restore.learning.rules.conditional.likelihood:MeanFieldLikelihood"),
            "contrastive": Entry("restore.learning.rules.conditional.divergence:ConditionalDivergence"),
            "perceptron": Entry("restore.learning.rules.conditional.perceptron:PerceptronLoss"),
            "marginal_max_margin": Entry("restore.learning.rules.conditional.max_margin:MarginalMaxMargin"),
            "latent_max_margin": Entry("restore.learning.rules.conditional.max_margin:LatentMaxMargin"),
            "logistic": Entry("restore.learning.rules.conditional.likelihood:LogisticRegression"),
        },
        "fvbm": {
            "bslm": Entry("restore.learning.rules.bslm:BSLM"),
            "gradient_ascent": Entry("restore.learning.rules.bslm:GradientAscent"),
            "quasi_newton": Entry("restore.learning.rules.bslm:QuasiNewton"),
        },
        "mixture": {"expectation_maximisation": Entry("restore.learning.rules.mixture:ExpectationMaximisation")},
    }
)
