"""Several starts per image: a machine has many fixed points, and a single start may miss the best.

Every distinct solution s is a mode of the machine with weight exp(log Z_s); the marginals are the weighted average. A
single start can fail visibly: at strong noise the pointwise estimate of a sparse image lies in the basin of the empty
image, and the iteration ends there although solutions of far larger weight exist.

Only fixed points count: elsewhere log Z means nothing and is often too high. A start that does not converge with the
solver's own damping is left out if another start of the image converges. With more damping it would mostly converge,
but to a solution where TAP's expansion does not hold: at flips of .4 such solutions of tap-mnist-100 have a spectral
radius of 9, where 1 is the border of stability, and a log Z 15 nats above the solutions found at once, which have 2. So
more damping is only for images none of whose starts converges.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.nn.functional import avg_pool2d, softplus

from restore.priors import BoltzmannMachine
from restore.priors.bits import inner_products, unpack
from restore.solvers.contract import FixedPoint
from restore.solvers.solution import Solution
from restore.status import Status
from restore.tracing import tracing
from restore.zoo import inference

# Two solutions are the same if no visible mean differs by more than this: well above any sensible tolerance of a
# solver, and well below the difference of two images.
SAME = 0.05

# The side of the windows in which evidence is measured: a hole of this size has several likely contents.
WINDOW = 8

# No more images than this are solved at a time; an exporter wants to know.
MOST_IMAGES = 2**31

# Under evidence weaker than this at every pixel, modes whose log-likelihoods differ by less count as equally likely, in
# nats. So the choice of starts no longer depends on an image whose evidence vanishes, at a flip probability of 1/2.
TIE = 0.2

# A start counts for the verdict on an image if it carries at least this share of the weight.
COUNTS = 0.01


@dataclass(frozen=True)
class SeveralStarts:
    """Solve from every start, and average the distinct solutions by their weights.

    >>> from restore.priors import RBM
    >>> from restore.solvers import TAP
    >>> black_or_white = RBM.binary(torch.full((8, 1), 4.0), torch.full((8,), -2.0), torch.full((1,), -16.0))
    >>> starts = torch.stack([torch.zeros(8), torch.ones(8)])
    >>> [round(means[0].item(), 2) for means in TAP().solve(black_or_white, starts).means[0]]  # each finds one mode
    [0.13, 0.87]
    >>> round(SeveralStarts(TAP()).solve(black_or_white, starts[None]).means[0][0, 0].item(), 2)
    0.5
    """

    solver: FixedPoint

    def solve(self, machine: BoltzmannMachine, starts: Tensor, power: Tensor | None = None) -> Solution:
        """Find the marginals of a batch of machines from several starts each.

        Args:
            machine: the prior under evidence.
            starts: visible means, shape (batch, starts, D).
            power: the weight of a solution is exp(power * log Z); shape (batch,), in [0, 1]. The default 1 is right for
                an exact log Z; a smaller power keeps the error of an approximate one from deciding alone.

        Returns:
            A solution with the `iterations` of the longest start, the worst `residual` and `status` among the starts
            that carry weight, and a `log_partition` that sums the weights of the distinct solutions.
        """
        batch, count, _ = starts.shape
        image = torch.arange(batch, device=starts.device)[:, None].expand(-1, count).flatten()
        every = starts.flatten(0, 1)
        solution = self.solver.solve(machine.rows(image), every)
        # Left out of graphs, which would be twice as large; their user gives other settings for a second try.
        left = torch.empty(0) if tracing() else without_solution(solution.status, count)
        if len(left):
            again = calmer(self.solver).solve(machine.rows(image[left]), every[left])
            solution = replaced(solution, left, again)
        return merge(solution, batch, count, power)

    def solve_where_needed(
        self,
        machine: BoltzmannMachine,
        first: Tensor,
        several: Tensor,
        others: Callable[[Tensor], Tensor],
        power: Tensor,
    ) -> Solution:
        """As `solve`, with further starts only for images that need them.

        Args:
            machine: the prior under evidence.
            first: visible means, one start for each image, (batch, D).
            several: which images need further ones, (batch,); others have them only if their first does not converge.
            others: gives further starts, (images, starts, D), for images by number.
            power: as in `solve`.
        """
        batch = first.shape[0]
        hard = several.nonzero().squeeze(-1)
        if tracing():
            torch._check(hard.shape[0] <= MOST_IMAGES)
        # One image more, which is dropped: a runtime reduces an array without rows to one of the wrong shape.
        some = torch.cat([hard, hard.new_zeros(1)])
        further = others(some)
        count, last = further.shape[1], hard.shape[0]
        image = hard[:, None].expand(-1, count).flatten()
        every = torch.arange(batch, device=first.device)
        starts = torch.cat([first, further[:last].flatten(0, 1)])
        solution = self.solver.solve(machine.rows(torch.cat([every, image])), starts)
        rows = batch + torch.arange(last * count, device=first.device).view(last, count)
        rows = torch.cat([torch.cat([hard[:, None], rows], 1), rows.new_zeros(1, count + 1)])
        mixed = merge(solution.rows(rows.flatten()), some.shape[0], count + 1, power[some])
        index = torch.arange(last, device=first.device)
        best = solution.rows(every).put(hard, mixed.rows(index))
        left = torch.empty(0) if tracing() else (best.status != int(Status.CONVERGED)).nonzero().squeeze(-1)
        if len(left):
            again = torch.cat([first[left][:, None], others(left)], 1)
            best = best.put(left, self.solve(machine.rows(left), again, power[left]))
        return best


def without_solution(status: Tensor, count: int) -> Tensor:
    """Numbers of the starts of images without a converged start; each image has `count` consecutive ones."""
    settled = (status.view(-1, count) == int(Status.CONVERGED)).any(1, keepdim=True)
    return (~settled).expand(-1, count).flatten().nonzero().squeeze(-1)


def merge(solution: Solution, batch: int, count: int, power: Tensor | None = None) -> Solution:
    """Average the solutions of `count` consecutive starts per image; see `SeveralStarts.solve` for the power.

    Starts that did not converge count only if none of the image's did; `status` says so.
    """
    if count == 1:
        return solution
    means = [mean.unflatten(0, (batch, count)) for mean in solution.means]
    variances = [variance.unflatten(0, (batch, count)) for variance in solution.variances]
    status, residual = solution.status.view(batch, count), solution.residual.view(batch, count)
    usable = (status != int(Status.DIVERGED)) & torch.isfinite(solution.log_partition.view(batch, count))
    settled = usable & (status == int(Status.CONVERGED))
    # Not `torch.where`: runtimes of exported graphs have it for numbers only.
    usable = settled | (usable & ~settled.any(1, keepdim=True))
    ignored = ~usable | repeated(means[0], usable)
    log_weight = solution.log_partition.view(batch, count).masked_fill(ignored, -torch.inf)
    # If every start diverged, the first one stands for the image, so that its status and its NaN are seen.
    hopeless = ~usable.any(1)
    log_weight = torch.where(hopeless[:, None] & (torch.arange(count, device=status.device) == 0), 0.0, log_weight)
    tempered = log_weight if power is None else power[:, None] * log_weight
    weight = torch.softmax(tempered.masked_fill(log_weight == -torch.inf, -torch.inf), 1)
    # Among very many equal weights none reaches that share; then all count.
    says = weight >= weight.amax(1, keepdim=True).clamp(max=COUNTS)

    def average(values: Tensor) -> Tensor:
        share = weight.to(values.dtype)[:, :, None]
        return torch.where(share > 0, share * values, 0.0).sum(1)

    mixed = [average(mean) for mean in means]
    # Law of total variance: within solutions, and between them.
    spread = [
        average(variance) + average((mean - centre[:, None]) ** 2)
        for variance, mean, centre in zip(variances, means, mixed, strict=True)
    ]
    return Solution(
        tuple(mixed),
        tuple(spread),
        torch.logsumexp(log_weight, 1).masked_fill(hopeless, torch.nan),
        solution.iterations.view(batch, count).amax(1),
        residual.masked_fill(~says, -torch.inf).amax(1),
        status.masked_fill(~says, int(Status.CONVERGED)).amax(1),
    )


def repeated(means: Tensor, usable: Tensor) -> Tensor:
    """Mask, (batch, starts), of solutions (batch, starts, D) that repeat a usable earlier one of the image."""
    # Not torch.cdist: exported graphs lack it.
    distance = (means[:, :, None] - means[:, None]).abs().amax(-1)
    # A start that diverged is no solution.
    same = (distance <= SAME) & usable[:, None, :]
    return torch.tril(same, diagonal=-1).any(-1)


def open_bits(evidence: Tensor, image_shape: tuple[int, int]) -> Tensor:
    """Entropy left by the evidence, in bits per pixel: the maximum over windows of `WINDOW` pixels a side; (batch,).

    Args:
        evidence: the log-odds that a pixel is 1, (batch, H * W).
        image_shape: (H, W).

    >>> hole = torch.where(torch.arange(256) < 128, 0.0, 1000.0)[None]
    >>> open_bits(hole, (16, 16)).item(), round(open_bits(torch.full((1, 256), 2.2), (16, 16)).item(), 2)
    (1.0, 0.47)
    """
    odds = evidence.abs()
    # The entropy of a pixel with these log-odds.
    bits = (softplus(-odds) + odds * torch.sigmoid(-odds)) / math.log(2)
    height, width = image_shape
    windows = avg_pool2d(bits.view(-1, 1, height, width), (min(WINDOW, height), min(WINDOW, width)), stride=1)
    return windows.flatten(1).amax(1)


def nearest_modes(evidence: Tensor, modes: Tensor, count: int) -> Tensor:
    """The modes that are likeliest under the evidence, as starts; of equally likely ones, the earlier first.

    Args:
        evidence: linear fields on the image, shape (batch, D).
        modes: packed binary images, shape (modes, bytes). The log-likelihood of such a mode is its inner product with
            the evidence, up to a constant.
        count: maximum number per image.

    Returns:
        Shape (batch, min(count, modes), D).
    """
    # With one flip probability for all pixels many modes tie, and rounding would break ties differently on every
    # machine. In these units equal fields are whole numbers, and sums are far from the middle between two points.
    strongest = evidence.abs().amax(1, keepdim=True).double().clamp_min(torch.finfo(evidence.dtype).tiny)
    unit = strongest / 1024
    likelihood = (inner_products(evidence, modes) / unit).round()
    likelihood = torch.where(strongest < TIE, (likelihood * unit / TIE).round(), likelihood)
    order = torch.arange(len(modes), dtype=torch.float64, device=modes.device) / max(1, len(modes))
    ranked = (likelihood - order).topk(min(count, len(modes)), dim=1).indices
    return unpack(modes[ranked], evidence.shape[1]).to(evidence.dtype)


def calmer(solver: FixedPoint) -> FixedPoint:
    """The solver for another try; see `restore.zoo.inference.calmer`."""
    damping, tol = inference.calmer(solver.damping, solver.tol)
    return replace(solver, damping=damping, tol=tol)


def replaced(solution: Solution, rows: Tensor, better: Solution) -> Solution:
    """Replace some rows of a solution; the iterations of both tries are added."""
    return solution.put(rows, replace(better, iterations=solution.iterations[rows] + better.iterations))
