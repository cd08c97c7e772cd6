"""Conditional restricted Boltzmann machines, which have learnt to undo one damage."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from restore.families.family import Family, Observation
from restore.registry import Learner, Offer

if TYPE_CHECKING:
    from torch import Tensor

    from restore.couplings import Coupling
    from restore.families.spec import Spec
    from restore.fields import Fields
    from restore.priors import RBM, ConditionalRBM
    from restore.units import Units

RULES = "restore.learning.rules.conditional"


class Conditional(Family):
    words = "conditional restricted Boltzmann machine"
    learners: ClassVar[Mapping[str, Learner]] = {
        "belief_propagation": Learner(
            f"{RULES}.likelihood:BeliefPropagationLikelihood", {"crbm-bp": Offer(rate=0.03, scale=0.05)}
        ),
        "mean_field": Learner(f"{RULES}.likelihood:MeanFieldLikelihood", {"crbm-mf": Offer(rate=0.03, scale=0.05)}),
        "contrastive": Learner(f"{RULES}.divergence:ConditionalDivergence", {"crbm-cd": Offer(rate=0.02, scale=0.01)}),
        "perceptron": Learner(f"{RULES}.divergence:PerceptronLoss", {"crbm-percloss": Offer(rate=0.02, scale=0.01)}),
        "marginal_max_margin": Learner(
            f"{RULES}.max_margin:MarginalMaxMargin", {"crbm-mssvm": Offer(rate=0.01, scale=0.05)}
        ),
        "latent_max_margin": Learner(
            f"{RULES}.max_margin:LatentMaxMargin", {"crbm-lssvm": Offer(rate=0.01, scale=0.05)}
        ),
        "logistic": Learner(f"{RULES}.likelihood:LogisticRegression", {"crbm-lr": Offer(rate=0.02, scale=0.0)}),
    }
    grows = True
    learnt = True

    def observation(self, spec: Spec) -> Observation:
        return "learnt"

    def shapes(self, spec: Spec, image_shape: tuple[int, int]) -> dict[str, tuple[int, ...]]:
        pixels, hidden = self.sizes(spec, image_shape)
        return super().shapes(spec, image_shape) | {"inputs.0": (pixels, pixels), "inputs.1": (hidden, pixels)}

    def joined(
        self, layers: tuple[Units, ...], couplings: tuple[Coupling, ...], values: Mapping[str, Tensor]
    ) -> ConditionalRBM:
        from restore.priors import RBM, ConditionalRBM

        return ConditionalRBM(RBM(layers, couplings), values["inputs.0"], values["inputs.1"])

    def check_machine(self, machine: ConditionalRBM) -> None:
        super().check_machine(machine.machine)

    def given(self, machine: ConditionalRBM, evidence: Fields) -> RBM:
        """The machine of the observed image, which stands where others have evidence."""
        return machine.given(evidence.linear)
