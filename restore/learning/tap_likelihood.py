"""Maximum likelihood with log Z from TAP solutions (TAP machine, Alg. 2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from restore.channels import BitFlip
from restore.errors import UsageError
from restore.learning.centring import centred, follow
from restore.learning.contract import LearnerState, Step
from restore.learning.statistics import clamped, difference, fixed_point
from restore.priors import RBM
from restore.solvers import TAP
from restore.solvers.loop import iterate

Starts = Literal["data", "noisy", "persistent", "redrawn"]


@dataclass(frozen=True)
class TAPLikelihood:
    """Gradient of the TAP log-likelihood: clamped statistics minus those of TAP solutions of the free machine.

    Attributes:
        starts: where the solutions of a step start.
            "data": from the mini-batch itself (the paper's choice);
            "noisy": from the mini-batch with pixels flipped, each image at a rate drawn from [0, noise] (the paper's
            proposal, end of sec. VII.D);
            "persistent": from the solutions of the step before;
            "redrawn": from binary images drawn from the marginals of the step before. The draw lets solutions leave
            spurious minima, which a deterministic continuation cannot.
        solutions: how many persistent or redrawn solutions are kept (K).
        iterations: iteration limit per step.
        tol: a solution is left alone once no mean moves by more than this.
        damping: share of the old value kept at each iteration.
        noise: largest flip rate of noisy starts, in [0, 0.5].
        centring: take the gradient in the centred gauge.
    """

    starts: Starts = "data"
    solutions: int = 100
    iterations: int = 3
    tol: float = 0.0
    damping: float = 0.0
    noise: float = 0.0
    centring: bool = True

    def __post_init__(self) -> None:
        if self.solutions < 1 or self.iterations < 1:
            raise UsageError(f"solutions and iterations must be at least 1, not {self.solutions} and {self.iterations}")
        if not 0 <= self.noise <= 0.5:
            raise UsageError(f"noise must lie in [0, 0.5], not {self.noise}")
        if (self.noise > 0) != (self.starts == "noisy"):
            raise UsageError('noise is the flip rate of starts = "noisy": give both or neither')
        self.solver  # noqa: B018 - checks tol and damping

    @property
    def solver(self) -> TAP:
        return TAP(max_iter=self.iterations, tol=self.tol, damping=self.damping)

    @property
    def remembers(self) -> bool:
        """Whether solutions of one step are the starts of the next."""
        return self.starts in ("persistent", "redrawn")

    def init(self, prior: RBM, images: Tensor, generator: torch.Generator) -> LearnerState:
        state = {
            "visible_offset": images.mean(0),
            "hidden_offset": torch.full_like(prior.weights[0], 0.5),
        }
        if self.remembers:
            chosen = torch.randint(len(images), (self.solutions,), generator=generator, device=images.device)
            parts = self.solver.init(prior, images[chosen])
            state |= {f"solution.{index}": value for index, value in enumerate(parts)}
        return state

    def step(self, prior: RBM, batch: Tensor, state: LearnerState, generator: torch.Generator, epoch: int = 0) -> Step:
        start = self._start(prior, batch, state, generator)
        # The statistics below take the last of the iterations.
        if self.iterations > 1:
            outcome = iterate(
                self.solver.step, prior, start, max_iter=self.iterations - 1, tol=self.tol, watched=len(prior.layers)
            )
            start = outcome.state
        depth = len(prior.layers)
        model, means, variances = fixed_point(prior, list(start[:depth]), list(start[depth:]))
        data = clamped(prior, batch)
        gradient = difference(data, model)
        hidden_offset = follow(state["hidden_offset"], data["units.1.bias"])
        if self.centring:
            gradient = centred(gradient, state["visible_offset"], hidden_offset)
        after = {"visible_offset": state["visible_offset"], "hidden_offset": hidden_offset}
        if self.remembers:
            after |= {f"solution.{index}": value for index, value in enumerate((*means, *variances))}
        # How far from a fixed point the solutions were left.
        return Step(gradient, after, {"solution_change": (means[0] - start[0]).abs().mean()})

    def _start(self, prior: RBM, batch: Tensor, state: LearnerState, generator: torch.Generator) -> tuple[Tensor, ...]:
        if self.starts == "data":
            return self.solver.init(prior, batch)
        if self.starts == "noisy":
            rate = self.noise * torch.rand((len(batch), 1), generator=generator, device=batch.device, dtype=batch.dtype)
            return self.solver.init(prior, BitFlip(rate).corrupt(batch, generator))
        kept = tuple(state[f"solution.{index}"] for index in range(2 * len(prior.layers)))
        if self.starts == "persistent":
            return kept
        return self.solver.init(prior, torch.bernoulli(kept[0], generator=generator))
