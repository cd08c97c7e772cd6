"""Compare rules for which starts of a restoration count, and tolerances, on test digits with flipped pixels.

    python benchmarks/choices/starts.py tap-mnist-100 tap-mnist-50 tap-mnist-25 --n 100
    python benchmarks/choices/starts.py tap-mnist tap-mnist-100 --n 20 --levels .1 .2 .3 --tolerances .01 .001 .0001

Policies: "all" counts every start, where it stopped; "settled", what `restore` does, counts those that converged;
"calmed" adds those that converge when they continue with half the step. "radius" is the spectral radius of the squared
response of the cavities, (c_v² ∘ W²)(c_h² ∘ W²)ᵀ: above 1 the expansion behind TAP does not hold (de Almeida &
Thouless, 1978). "Gibbs" samples the machine, by chains of 600 sweeps that warm up from half the inverse temperature.
"""

from __future__ import annotations

import time
from dataclasses import replace

import torch
from torch import Tensor

from benchmarks.measures.script import command_line, head, row
from restore.channels import BitFlip, parse_task
from restore.data import binarise, load
from restore.evaluation.metrics import error_all, matthews
from restore.fields import Fields
from restore.inference.torch_engine import Engine, machine_under, starts
from restore.priors import RBM
from restore.solvers import LayeredMap, Solution
from restore.solvers.starts import calmer, merge, replaced
from restore.status import Status

# Of a chain: the number of sweeps, the share that warms it up, and the share after which it is averaged.
SWEEPS, WARM, KEPT = 600, 0.2, 0.3

LEVELS = [0.3, 0.35, 0.4, 0.45]


class Trial:
    """A prior under the evidence of some damaged digits, with its starts."""

    def __init__(self, engine: Engine, truth: Tensor, p: float, seed: int) -> None:
        observed, _ = parse_task(f"flip:{p}").damage(
            truth, engine.header.image_shape, torch.Generator().manual_seed(seed)
        )
        evidence = Fields(BitFlip(p).evidence(observed).linear.float())
        places = starts(engine.trained, evidence)
        self.batch, self.count, _ = places.shape
        machine = machine_under(engine.trained, evidence)
        assert isinstance(machine, RBM) and isinstance(engine.solver, LayeredMap)
        self.solver = engine.solver
        self.machine = machine.rows(torch.arange(self.batch).repeat_interleave(self.count))
        self.places = places.flatten(0, 1)
        strength = evidence.linear.abs().mean(-1)
        self.power = (strength / engine.header.inference.trust).clamp(max=1)

    def solve(self, machine: RBM | None = None, **settings: float) -> Solution:
        machine = machine or self.machine
        return replace(self.solver, **settings).solve(machine, self.places.to(machine.weights))

    def merged(self, found: Solution) -> Solution:
        return merge(found, self.batch, self.count, self.power)


def radius(machine: RBM, found: Solution) -> Tensor:
    """The spectral radius for each solution, by power iteration; (rows,)."""
    squares, visible, hidden = machine.weights.double() ** 2, *(each.double() ** 2 for each in found.variances)
    vector = torch.ones_like(hidden)
    for _ in range(60):
        vector = hidden * ((visible * (vector @ squares.T)) @ squares)
        size = vector.norm(dim=1, keepdim=True)
        vector = vector / size
    return size.squeeze(1)


def gibbs(trial: Trial) -> Tensor:
    """Pixel means of chains from all starts but the first, averaged per image."""
    draw = torch.Generator().manual_seed(1)
    weights = trial.machine.weights
    bias, hidden_bias = (layer.parameters["bias"] for layer in trial.machine.layers)
    visible, total = torch.bernoulli(trial.places, generator=draw), torch.zeros_like(trial.places)
    for sweep in range(SWEEPS):
        beta = min(1.0, 0.5 + 0.5 * sweep / (SWEEPS * WARM))
        hidden = torch.bernoulli(torch.sigmoid(beta * (visible @ weights + hidden_bias)), generator=draw)
        means = torch.sigmoid(beta * (hidden @ weights.T + bias))
        visible = torch.bernoulli(means, generator=draw)
        if sweep >= KEPT * SWEEPS:
            total += means
    return (total / (SWEEPS * (1 - KEPT))).unflatten(0, (trial.batch, trial.count))[:, 1:].mean(1)


def policies(trial: Trial, truth: Tensor, name: str, p: float) -> None:
    first = trial.solve()
    settled = first.status == int(Status.CONVERGED)
    left = (~settled).nonzero().squeeze(1)
    calm = calmer(trial.solver).solve(trial.machine.rows(left), first.means[0][left])
    counted = replace(first, status=torch.full_like(first.status, int(Status.CONVERGED)))
    found = {
        "all": trial.merged(counted).means[0],
        "settled": trial.merged(first).means[0],
        "calmed": trial.merged(replaced(first, left, calm)).means[0],
        "Gibbs": gibbs(trial),
    }
    scores = [f"{matthews(truth, x).mean():.3f} / {100 * error_all(truth, x).mean():.2f}" for x in found.values()]
    best = first.log_partition.masked_fill(~settled, -torch.inf).view(trial.batch, trial.count).amax(1)
    above = (calm.log_partition - best[left // trial.count])[calm.status == int(Status.CONVERGED)]
    radii = radius(trial.machine, first)[settled].median(), radius(trial.machine.rows(left), calm).median()
    share = 100 * float(settled.double().mean())
    facts = [f"{share:.0f} %", f"{radii[0]:.1f} / {radii[1]:.1f}", f"{float(above[above.isfinite()].median()):+.1f}"]
    row(name, f"{p:g}", *facts, *scores)


def tolerances(trial: Trial, name: str, p: float, tried: list[float]) -> None:
    """Compare tolerances by the distance to fixed points in double precision."""
    patient = 4 * trial.solver.max_iter
    exact = trial.merged(trial.solve(trial.machine.to(torch.float64), tol=1e-8, max_iter=5000))
    for tol in tried:
        started = time.process_time()
        found = trial.solve(tol=tol, max_iter=patient)
        seconds, merged = time.process_time() - started, trial.merged(found)
        off = (merged.log_partition - exact.log_partition).abs()
        moved = (merged.means[0] - exact.means[0]).abs().amax(1)
        cost = [f"{found.iterations.double().mean():.0f}", f"{seconds:.1f}"]
        errors = [f"{value:.3f}" for value in (moved.median(), off.median(), off.double().quantile(0.95), off.max())]
        row(name, f"{p:g}", f"{tol:g}", *cost, *errors)


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("models", nargs="+", help="binary RBMs of MNIST that TAP solves")
    parser.add_argument("--n", type=int, default=100, help="test images [%(default)s]")
    parser.add_argument("--seed", type=int, default=0, help="of the flips [%(default)s]")
    parser.add_argument("--levels", type=float, nargs="+", default=LEVELS, help="of flips [%(default)s]")
    parser.add_argument("--tolerances", type=float, nargs="+", help="compare these instead of policies")
    chosen = parser.parse_args()
    truth = torch.from_numpy(binarise(load("mnist", split="test").images))[: chosen.n]
    heads = ["settle", "radius: settled / calmed", "log Z of calmed, nats above", "all", "settled", "calmed", "Gibbs"]
    if chosen.tolerances:
        errors = ["worst pixel moved, median", "log Z off, median", "95 %", "worst"]
        heads = ["tolerance", "iterations", "CPU seconds", *errors]
    head("prior", "p", *heads)
    with torch.inference_mode():
        for name in chosen.models:
            engine = Engine.load(name, "cpu")
            for p in chosen.levels:
                trial = Trial(engine, truth, p, chosen.seed)
                if chosen.tolerances:
                    tolerances(trial, name, p, chosen.tolerances)
                else:
                    policies(trial, truth, name, p)


if __name__ == "__main__":
    main()
