"""Fitting a fully visible machine by BSLM against scikit-learn logistic regressions, one per variable.

    python benchmarks/peers/bslm.py [--units 100] [--images 16000]

Images are Gibbs samples of a machine over spins whose parameters have the variance 1 / (2 units), so that the field on
a unit has variance 1/2. scikit-learn fits each variable to all others in float64
with its default solver and tolerance, without a penalty. It finds two values for each coupling, whose mean is taken.
The log-pseudo-likelihood is printed for all, and for the regressions before the means are taken.
"""

from __future__ import annotations

import numpy as np
import torch
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits
from torch import Tensor

from benchmarks.measures.script import command_line
from benchmarks.measures.timing import medians, report
from restore.learning.gradients.pseudo_likelihood import Objective, Sample, Spins
from restore.learning.rules.bslm import BSLM, PseudoLikelihoodAscent, QuasiNewton, spins_of
from restore.priors import FullyVisible
from restore.solvers.samplers.gibbs import gibbs_steps
from training.studies.bslm_covariance import rounds_of, unflattened

# Sweeps of Gibbs sampling, and the rise of the mean log-pseudo-likelihood at which a fit stops.
SWEEPS, TOLERANCE = 200, 1e-6


def drawn(units: int, images: int) -> Tensor:
    """Images (N, D) in {0, 1}."""
    generator = torch.Generator().manual_seed(0)
    parameters = (0.5 / units) ** 0.5 * torch.randn(units * (units + 1) // 2, generator=generator)
    machine = FullyVisible.from_spins(*unflattened(parameters))
    start = (torch.rand(images, units, generator=generator) < 0.5).float()
    return gibbs_steps(machine, start, SWEEPS, generator)


def ours(learner: PseudoLikelihoodAscent, images: Tensor) -> Spins:
    """The machine that maximises the pseudo-likelihood, with all checks of images that `restore train` makes."""
    start = spins_of(learner.begin(images, torch.Generator()))
    return spins_of(list(rounds_of(learner, images, start))[-1].state)


def regressions(images: np.ndarray) -> Spins:
    """One regression per variable: couplings whose symmetric part is that of the machine, and biases."""
    units = images.shape[1]
    spins = 2 * images - 1
    couplings, bias = np.zeros((units, units)), np.zeros(units)
    for unit in range(units):
        others = np.delete(np.arange(units), unit)
        # The log-odds of a spin are twice its field.
        fitted = LogisticRegression(C=np.inf).fit(spins[:, others], images[:, unit])
        couplings[unit, others], bias[unit] = fitted.coef_[0] / 2, fitted.intercept_[0] / 2
    return Spins(torch.from_numpy(couplings), torch.from_numpy(bias))


def main() -> None:
    parser = command_line(__doc__, repeats=3)
    parser.add_argument("--units", type=int, default=100, help="[%(default)s]")
    parser.add_argument("--images", type=int, default=16_000, help="[%(default)s]")
    chosen = parser.parse_args()
    torch.set_num_threads(chosen.threads)
    images = drawn(chosen.units, chosen.images)
    double = images.double().numpy()
    peer = "scikit-learn, per variable"
    learners: dict[str, PseudoLikelihoodAscent] = {
        "restore, BSLM": BSLM(tol=TOLERANCE),
        "restore, BSLM, float32": BSLM(tol=TOLERANCE, precision="float32"),
        "restore, BSLM without quasi-Newton steps": BSLM(tol=TOLERANCE, spacers=0),
        "restore, quasi-Newton steps alone": QuasiNewton(tol=TOLERANCE, steps=20),
    }
    candidates = {name: lambda learner=learner: ours(learner, images) for name, learner in learners.items()}
    candidates[peer] = lambda: regressions(double)
    found: dict[str, Spins] = {}

    def kept(name: str) -> None:
        found[name] = candidates[name]()

    with threadpool_limits(chosen.threads), torch.inference_mode():
        seconds = medians({name: lambda name=name: kept(name) for name in candidates}, chosen.repeats, warm_up=0)
        objective = Objective(Sample.of(images))
        apart = objective.value(found[peer])
        found[peer] = Spins((found[peer].couplings + found[peer].couplings.T) / 2, found[peer].bias)
        nats = {name: f"{objective.value(Spins(*(p.double() for p in at))):.6f}" for name, at in found.items()}
    report(seconds, peer, **{"log-pseudo-likelihood, nats per image": nats})
    print(f"{peer}: {apart:.6f} nats with the couplings of each variable by themselves")


if __name__ == "__main__":
    main()
