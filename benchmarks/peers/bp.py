"""Sum-product belief propagation: the fused kernel against the plain form, the paper's equations, and PGMax.

    python benchmarks/peers/bp.py --threads 1

Messages per second on random binary machines, float32. One message goes over one edge in one direction in one
iteration. The forms are checked against each other before they are timed. The peers are the equations of the paper
(CRBM-BP, Alg. 1) in eager PyTorch, and PGMax if it is installed. The limit is the number of messages that memory could
read and write: 8 bytes each, at the speed of a large copy. The last part solves a machine of 10,000 x 2,000 units to
convergence.
"""

from __future__ import annotations

import os
import resource
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from unittest.mock import patch

import torch
from torch import Tensor

from benchmarks.measures.script import command_line, head, row
from benchmarks.measures.timing import medians
from restore.fields import Fields
from restore.learning.run.card import machine_facts
from restore.priors import RBM
from restore.solvers import BeliefPropagation
from restore.solvers.messages import bp_kernel
from restore.solvers.solution import Solution
from restore.status import Status

ITERATIONS = 10
MESSAGE_BYTES = 8
COPIED = 2**28

# One turn of the fused kernel solves this many images, batch after batch: long enough for the clock.
IMAGES = 64

# By how much beliefs may differ. PGMax is less precise, because it sums over factors in single precision: on 1000 x 500
# units it stays 1.1e-4 away from a solution in double precision, however many iterations it runs.
TOLERANCE, PEER_TOLERANCE = 1e-4, 2e-4

# PGMax sends all messages at once and needs about twice as many iterations; after these it has converged.
FLOODED = 40


@dataclass(frozen=True)
class Problem:
    """A random machine and the log-odds of its visible units for each image."""

    prior: RBM
    visible: Tensor

    @property
    def name(self) -> str:
        return f"{' x '.join(map(str, self.prior.weights.shape))}, batch {len(self.visible)}"

    @property
    def messages(self) -> int:
        """The number of messages of one image in one iteration."""
        return 2 * self.prior.weights.numel()

    def solve(self, solver: BeliefPropagation, images: int | None = None, pairs: bool = False) -> Solution:
        return solver.solve(self.prior.tilt(Fields(self.visible[:images])), pairs=pairs)


@dataclass(frozen=True)
class Form:
    """Work, and how many images it solves."""

    name: str
    images: int
    work: Callable[[], object]


def problem(visible: int, hidden: int, batch: int, spread: float) -> Problem:
    torch.manual_seed(0)
    weights = torch.randn(visible, hidden).mul_(spread)
    return Problem(RBM.binary(weights, torch.zeros(visible), torch.randn(hidden)), torch.randn(batch, visible))


def plainly(problem: Problem, solver: BeliefPropagation) -> Solution:
    with patch.object(bp_kernel, "largest_weight", return_value=None):
        return problem.solve(solver)


def equations(weights: Tensor, b1: Tensor, b2: Tensor, iterations: int) -> tuple[Tensor, Tensor]:
    """Beliefs by Alg. 1, eq. (13), (14), (16), (17) in the probability domain, for all images at once.

    M^hv is kept as its transpose, (batch, D, H) like M^vh. The pairwise beliefs, eq. (18), are left out, as in `solve`
    without `pairs`.
    """
    vh, hv = weights.new_full((2, len(b1), *weights.shape), 0.5)
    tau_v, tau_h = torch.sigmoid(b1), torch.sigmoid(b2).expand(len(b1), -1)
    for _ in range(iterations):
        first, second = (1 - hv) * tau_h[:, None, :], hv * (1 - tau_h[:, None, :])
        vh = torch.sigmoid(torch.log((torch.exp(weights) * first + second) / (first + second)))
        tau_v = torch.sigmoid(b1 + torch.log(vh / (1 - vh)).sum(2))
        first, second = (1 - vh) * tau_v[:, :, None], vh * (1 - tau_v[:, :, None])
        hv = torch.sigmoid(torch.log((torch.exp(weights) * first + second) / (first + second)))
        tau_h = torch.sigmoid(b2 + torch.log(hv / (1 - hv)).sum(1))
    return tau_v, tau_h


def by_equations(problem: Problem, iterations: int) -> tuple[Tensor, Tensor]:
    prior = problem.prior
    return equations(prior.weights, prior.visible.bias + problem.visible, prior.hidden.bias, iterations)


def pgmax(problem: Problem, threads: int) -> Callable[[int], tuple[Tensor, Tensor]] | None:
    """A function from a number of PGMax iterations to the beliefs of the first image; None if PGMax does not run."""
    # Read once, when the first program is compiled.
    os.environ["NPROC"] = str(threads)
    os.environ["XLA_FLAGS"] = f"--xla_cpu_multi_thread_eigen={str(threads > 1).lower()}"
    try:
        import jax
        import numpy as np
        from pgmax import fgraph, fgroup, infer, vgroup

        # PGMax 0.6.1 needs this, and later versions of JAX lack it.
        _ = jax.lib.xla_bridge.get_backend
    except (ImportError, AttributeError):
        return None
    weights = problem.prior.weights.numpy()
    own = (problem.prior.visible.bias + problem.visible[0]).numpy(), problem.prior.hidden.bias.numpy()
    layers = [vgroup.NDVarArray(num_states=2, shape=(size,)) for size in weights.shape]
    potentials = np.zeros((weights.size, 2, 2), np.float32)
    potentials[:, 1, 1] = weights.ravel()
    edges = [[layers[0][i], layers[1][j]] for i in range(weights.shape[0]) for j in range(weights.shape[1])]
    graph = fgraph.FactorGraph(layers)
    graph.add_factors(fgroup.PairwiseFactorGroup(variables_for_factors=edges, log_potential_matrix=potentials))
    inference = infer.BP(graph.bp_state, temperature=1.0)
    evidence = {layer: np.stack([np.zeros_like(odds), odds], 1) for layer, odds in zip(layers, own, strict=True)}
    start = inference.init(evidence_updates=evidence)
    run = jax.jit(lambda arrays, count: inference.run(arrays, num_iters=count, damping=0.0), static_argnums=1)

    def beliefs(iterations: int) -> tuple[Tensor, Tensor]:
        found = infer.get_marginals(inference.get_beliefs(run(start, iterations)))
        visible, hidden = (torch.from_numpy(np.array(found[layer])[:, 1]) for layer in layers)
        return visible, hidden

    return beliefs


def check(problem: Problem, peer: Callable[[int], tuple[Tensor, Tensor]] | None) -> None:
    """Check that all forms find the same beliefs.

    `solve` ends with the visible beliefs that the equations reach one iteration later. PGMax sends all messages at once
    ("flooding"), so only its converged beliefs are the same.
    """
    solver = BeliefPropagation(max_iter=ITERATIONS, tol=0)
    fused, plain = problem.solve(solver), plainly(problem, solver)
    assert bool((fused.iterations == ITERATIONS).all() and (plain.iterations == ITERATIONS).all())
    differences = {
        "plain form": differ(fused.means, plain.means),
        "paper's equations": differ(
            fused.means, (by_equations(problem, ITERATIONS + 1)[0], by_equations(problem, ITERATIONS)[1])
        ),
    }
    if peer:
        converged = problem.solve(BeliefPropagation(max_iter=FLOODED, tol=0), images=1)
        differences["PGMax, at convergence"] = differ((mean[0] for mean in converged.means), peer(FLOODED))
    print(f"\n{problem.name}: beliefs of the fused kernel differ from those of")
    for name, difference in differences.items():
        print(f"- {name} by {difference:.1e}")
        assert difference <= (PEER_TOLERANCE if name.startswith("PGMax") else TOLERANCE), name


def differ(ours: Iterable[Tensor], theirs: Iterable[Tensor]) -> float:
    return max(float((a - b).abs().max()) for a, b in zip(ours, theirs, strict=True))


def compare(problem: Problem, repeats: int, threads: int) -> None:
    """Check and time all forms, and print a table."""
    peer = pgmax(problem, threads)
    check(problem, peer)
    batch, solver = len(problem.visible), BeliefPropagation(max_iter=ITERATIONS, tol=0)

    def fused(pairs: bool) -> None:
        for _ in range(IMAGES // batch):
            problem.solve(solver, pairs=pairs)

    source, target = torch.ones(COPIED // 4), torch.empty(COPIED // 4)
    forms = [
        Form("fused kernel", IMAGES, lambda: fused(pairs=False)),
        Form("fused kernel, with pairwise beliefs", IMAGES, lambda: fused(pairs=True)),
        Form("plain form", batch, lambda: plainly(problem, solver)),
        Form("(a) paper's equations", batch, lambda: by_equations(problem, ITERATIONS)),
    ]
    if peer:
        forms.append(Form("(b) PGMax, per image", 1, lambda: peer(ITERATIONS)))
    seconds = medians({form.name: form.work for form in forms} | {"copy": lambda: target.copy_(source)}, repeats)
    bandwidth = 2 * COPIED / seconds["copy"]
    rates = {form.name: ITERATIONS * problem.messages * form.images / seconds[form.name] for form in forms}
    head(problem.name, "ms per image", "million messages/s", "fused is faster by", "of the memory's limit")
    for form in forms:
        rate, milliseconds = rates[form.name], 1000 * seconds[form.name] / form.images
        shares = f"{rates[forms[0].name] / rate:.2f}", f"{rate * MESSAGE_BYTES / bandwidth:.4f}"
        row(form.name, f"{milliseconds:.3f}", f"{rate / 1e6:.1f}", *shares)
    print(f"\nA copy moves {bandwidth / 1e9:.1f} GB/s: {bandwidth / MESSAGE_BYTES / 1e9:.2f} G messages/s.")
    if not peer:
        print("PGMax is not there, or not with a JAX it runs on: its row is left out.")


def converge(repeats: int) -> None:
    """Print time and memory to solve one large machine. Call it first, while the process has used little memory."""
    large = problem(10_000, 2_000, 1, 0.05)
    before, solver = peak(), BeliefPropagation()
    found = large.solve(solver)
    grown = peak() - before
    seconds = medians({"large": lambda: large.solve(solver)}, repeats)["large"]
    rate = int(found.iterations) * large.messages / seconds
    status = Status(int(found.status)).name.lower()
    print(f"{large.name}, tolerance {solver.tol}: {status} after {int(found.iterations)} iterations", end=" ")
    print(f"and {seconds:.3f} s ({rate / 1e6:.0f} million messages/s);", end=" ")
    print(f"peak memory {peak() / 2**20:.0f} MiB, of which the solver took {grown / 2**20:.0f} MiB")


def peak() -> int:
    """The most bytes of memory this process has used; Linux counts them in KiB."""
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def main() -> None:
    chosen = command_line(__doc__, repeats=5).parse_args()
    torch.set_num_threads(chosen.threads)
    if bp_kernel.library() is None:
        raise SystemExit("the fused kernel cannot be built here: there is no C compiler")
    print(f"{os.cpu_count()} cores; {machine_facts()}\n")
    with torch.inference_mode():
        converge(chosen.repeats)
        for shape in ((784, 256, 64), (1000, 500, 1)):
            compare(problem(*shape, spread=0.1), chosen.repeats, chosen.threads)


if __name__ == "__main__":
    main()
