"""Belief propagation on bipartite binary machines, as matrix operations on log-odds (CRBM-BP, sec. 5, Alg. 1).

A message is the log-odds it adds to its receiver's belief. With the weight w of the edge and the cavity k of the sender
(its belief without what came over this edge) a message is

    sum-product    log (1 + e^(w + k)) - log (1 + e^k)
    max-product    max(0, w + k) - max(0, k)
    mixed-product  from hidden to visible units as sum-product; from visible to hidden ones w if the visible belief is
                   positive, else 0: visible units are maximised over, hidden units are summed over.

An iteration sends all messages from hidden to visible units and then all back; only this alternation converges.
All messages start at 0. At the end the visible beliefs are computed once more from the last hidden ones. Then every
pairwise belief agrees with the visible belief, and log Z needs the messages of one direction only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal, get_args

import torch
from torch import Tensor

from restore.errors import UsageError
from restore.priors import RBM, BoltzmannMachine
from restore.solvers.loop import State, check_settings, damped, iterate, largest_change
from restore.solvers.messages import bp_kernel
from restore.solvers.parts import check_memory, images_at_once, parts_of
from restore.solvers.solution import Solution, concatenate
from restore.status import Status
from restore.tracing import tracing
from restore.units import Bernoulli, Units, log_one_plus_exp

METHOD = "belief propagation"

Kind = Literal["sum", "max", "mixed"]

# Arrays of messages per image during a step of the plain form.
ARRAYS_PER_IMAGE = 8

# The most hidden units of a machine for the kernel of GPUs, whose programs have 32 warps and no more.
KERNEL_HIDDEN_UNITS = 8192


def message(weights: Tensor, cavity: Tensor, kind: Kind) -> Tensor:
    """The message over edges with these weights from senders with these cavity log-odds; "mixed" means "sum".

    Written so that a large cavity costs no digits: the first term is max(0, w + k) - max(0, k), the second the log of a
    ratio between 1/2 and 2.
    """
    largest = torch.maximum(cavity.clamp(max=0) + weights, cavity.clamp(min=0).neg_())
    if kind == "max":
        return largest
    # In place: for arrays of this size allocating memory takes longer than filling it.
    above = (weights + cavity).abs_().neg_().exp_().add_(1)
    below = cavity.abs().neg_().exp_().add_(1)
    return largest.add_(above.div_(below).log_())


def sweep(
    weights: Tensor, visible_own: Tensor, hidden_own: Tensor, hidden: Tensor, old: Tensor, kind: Kind, damping: float
) -> tuple[Tensor, Tensor, Tensor]:
    """One iteration: visible log-odds (batch, D), hidden log-odds (batch, H), messages to hidden units (batch, D, H).

    Args:
        weights: (D, H).
        visible_own, hidden_own: log-odds of the units' own fields, broadcastable to (batch, units).
        hidden: log-odds of the hidden units before, (batch, H).
        old: messages from visible to hidden units before, (batch, D, H).
        kind, damping: as in `BeliefPropagation`.
    """
    received = message(weights, hidden[:, None, :] - old, kind)
    visible = visible_own + _total(received, -1)
    if kind == "mixed":
        sent = torch.where(visible[:, :, None] > 0, weights, 0.0)
    else:
        sent = message(weights, visible[:, :, None] - received, kind)
    (sent,) = damped((sent,), (old,), damping)
    return visible, hidden_own + _total(sent, -2), sent


def _total(messages: Tensor, over: int) -> Tensor:
    """Their sum, in double precision: some runtimes of exported graphs add numbers one by one."""
    return messages.sum(over, dtype=torch.float64).to(messages.dtype)


@dataclass(frozen=True)
class BeliefPropagation:
    """Belief propagation between binary units; exact where couplings form no loop.

    Attributes:
        kind: "sum" for marginals; "max" for the jointly most probable state; "mixed" for the most probable visible
            state with the hidden units summed out.
        max_iter, tol: as in `FixedPoint`; means must have come to rest.
        damping: share of the old messages, as log-odds, that messages to hidden units keep, in [0, 1).
        max_memory: bytes that messages may take; larger batches are solved in parts.

    >>> import math
    >>> tree = RBM.binary(torch.full((3, 1), 2.0), torch.full((3,), -1.0), torch.zeros(1)).to(torch.float64)
    >>> round(BeliefPropagation().solve(tree).log_partition.item(), 6)
    3.988372
    >>> round(math.log((1 + math.exp(-1)) ** 3 + (1 + math.exp(1)) ** 3), 6)  # hidden unit off, and on
    3.988372
    """

    kind: Kind = "sum"
    max_iter: int = 1000
    tol: float = 1e-3
    damping: float = 0.0
    max_memory: int = 2**31

    def __post_init__(self) -> None:
        if self.kind not in get_args(Kind):
            raise UsageError(f"kind must be one of {', '.join(get_args(Kind))}, not {self.kind}")
        check_settings(self.max_iter, self.tol, self.damping)
        check_memory(self.max_memory)

    def init(self, machine: RBM, batch: int) -> State:
        """The state without messages: means and log-odds of the units' own fields."""
        visible, hidden = (_own(layer).expand(batch, -1) for layer in machine.layers)
        messages = visible.new_zeros(batch, machine.weights.numel())
        return torch.sigmoid(visible), torch.sigmoid(hidden), hidden.clone(), messages

    def step(self, machine: RBM, state: State) -> State:
        """One iteration on means of both layers, hidden log-odds, and messages to hidden units."""
        _, _, hidden, flat = state
        visible, hidden, sent = sweep(
            machine.weights,
            _own(machine.visible),
            _own(machine.hidden),
            hidden,
            flat.unflatten(-1, machine.weights.shape),
            self.kind,
            self.damping,
        )
        return torch.sigmoid(visible), torch.sigmoid(hidden), hidden, sent.flatten(1)

    def solve(self, machine: BoltzmannMachine, start: Tensor | None = None, *, pairs: bool = False) -> Solution:
        """Iterate until every image has converged.

        Args:
            machine: a binary machine in two layers, under evidence; its fields may have a batch dimension.
            start: must be None: all messages start at 0.
            pairs: True to average P(v_i = 1, h_j = 1) over the batch as well; sum-product only.

        Returns:
            The solution. `log_partition` is the Bethe estimate of log Z for "sum". For "max" and "mixed" it is the log
            of the unnormalised probability of the state found, hidden units maximised or summed over. An image whose
            fields are not finite counts as diverged, and all its results are NaN.

        Raises:
            UsageError: for another machine; if a start is given, `pairs` is asked of another kind, or the batch is
                empty.
            InputError: if a single image exceeds `max_memory`.
        """
        if not isinstance(machine, RBM):
            raise UsageError(f"belief propagation is for machines in two layers, not for {type(machine).__name__}")
        if start is not None:
            raise UsageError("belief propagation starts by itself; give no start")
        if pairs and self.kind != "sum":
            raise UsageError(f"pairwise beliefs come from sum-product, not from {self.kind}-product")
        sizes = [own.shape[0] for own in map(_own, machine.layers) if own.dim() == 2]
        if 0 in sizes:
            raise UsageError("a batch of 0 images; give at least one")
        batch = max(sizes, default=1)
        # Fields that all images share may be a batch of one; below, rows of the batch are taken.
        machine = replace(machine, layers=tuple(Bernoulli(own.expand(batch, -1)) for own in map(_own, machine.layers)))
        if tracing():
            return self._plain(machine, batch, pairs)
        largest = None if self.damping else bp_kernel.largest_weight(machine.weights)
        plain = ARRAYS_PER_IMAGE * max(1, machine.weights.numel()) * machine.weights.element_size()
        if largest is not None and not machine.weights.is_cuda:
            at_once = images_at_once(METHOD, machine, bp_kernel.memory(machine.weights, pairs), self.max_memory)
            run = partial(bp_kernel.run, largest=largest, threads=min(at_once, torch.get_num_threads()))
            return self._fused(run, machine, batch, pairs)
        memory = plain
        solved = self._plain
        if largest is not None and machine.hidden.size <= KERNEL_HIDDEN_UNITS:
            from restore.solvers.messages import bp_triton

            memory = bp_triton.memory(machine.weights, pairs)
            solved = partial(self._fused, bp_triton.run)
        parts = parts_of(machine, batch, images_at_once(METHOD, machine, memory, self.max_memory), memory)
        return concatenate([solved(machine.rows(rows), len(rows), pairs) for rows in parts])

    def _plain(self, machine: RBM, batch: int, pairs: bool) -> Solution:
        outcome = iterate(
            self.step,
            machine,
            self.init(machine, batch),
            max_iter=self.max_iter,
            tol=self.tol,
            change=largest_change(2),
        )
        _, hidden_means, hidden, flat = outcome.state
        sent = flat.unflatten(-1, machine.weights.shape)
        cavity = hidden[:, None, :] - sent
        visible = _own(machine.visible) + _total(message(machine.weights, cavity, self.kind), -1)
        means = torch.sigmoid(visible)
        both = None
        if pairs:
            both = torch.einsum("nd,ndh->dh", means, torch.sigmoid(machine.weights + cavity)) / batch
        if self.kind == "sum":
            # log (1 + e^k) - log (1 + e^B) per edge is the message over a weight -r from a sender with log-odds B.
            edges = message(-sent, hidden[:, None, :], "sum").sum((1, 2), dtype=torch.float64)
            log_z = log_one_plus_exp(visible.double()).sum(-1) + log_one_plus_exp(hidden.double()).sum(-1) + edges
        else:
            log_z = self._log_probability(machine, means, hidden_means)
        broken = (outcome.status == int(Status.DIVERGED)) | ~_finite(machine, batch)
        result = bp_kernel.KernelResult(means, hidden_means, both, None, outcome.iterations, outcome.residual)
        return _solution(result, log_z, outcome.status, broken)

    def _fused(self, run: Callable[..., bp_kernel.KernelResult], machine: RBM, batch: int, pairs: bool) -> Solution:
        sound = _finite(machine, batch)
        fields = [_own(layer).expand(batch, -1).to(machine.weights.dtype) for layer in machine.layers]
        # Beyond this limit a unit is certain, and a larger field would only change log Z.
        limit = bp_kernel.LARGEST_FIELD
        visible, hidden = (torch.where(sound[:, None], own, 0.0).clamp(-limit, limit) for own in fields)
        settings = bp_kernel.KernelSettings(self.kind, self.max_iter, self.tol)
        # Triton launches kernels on the present GPU, which need not be that of the weights.
        with torch.cuda.device_of(machine.weights):
            result = run(machine.weights, visible, hidden, settings, pairs=pairs)
        status = torch.where(result.residual <= self.tol, int(Status.CONVERGED), int(Status.MAX_ITER))
        if result.log_partition is None:
            log_z = self._log_probability(machine, result.visible, result.hidden)
        else:
            log_z = result.log_partition + sum((own.double() - limit).clamp(min=0).sum(-1) for own in fields)
        both = None if result.pairs is None else result.pairs / batch
        return _solution(replace(result, pairs=both), log_z, status, ~sound)

    def _log_probability(self, machine: RBM, visible: Tensor, hidden: Tensor) -> Tensor:
        """Unnormalised log-probability of the state found by "max" or "mixed"."""
        machine = machine.to(torch.float64)
        state = (visible > 0.5).double()
        if self.kind == "mixed":
            return -machine.free_energy(state)
        return -machine.energy((state, (hidden > 0.5).double()))


def _own(layer: Units) -> Tensor:
    """The log-odds of binary units without their neighbours."""
    if not isinstance(layer, Bernoulli):
        raise UsageError(f"belief propagation is for binary units, not for {type(layer).__name__}")
    return layer.bias


def _finite(machine: RBM, batch: int) -> Tensor:
    visible, hidden = (torch.isfinite(_own(layer)).all(-1).expand(batch) for layer in machine.layers)
    return visible & hidden


def _solution(result: bp_kernel.KernelResult, log_partition: Tensor, status: Tensor, broken: Tensor) -> Solution:
    """The solution, with NaN for broken images and for averages over them."""
    means = tuple(torch.where(broken[:, None], torch.nan, mean) for mean in (result.visible, result.hidden))
    log_partition, residual = (torch.where(broken, torch.nan, value) for value in (log_partition, result.residual))
    status = torch.where(broken, int(Status.DIVERGED), status)
    pairs = None if result.pairs is None else torch.where(broken.any(), torch.nan, result.pairs)
    variances = tuple(mean * (1 - mean) for mean in means)
    return Solution(means, variances, log_partition, result.iterations, residual, status, pairs)
