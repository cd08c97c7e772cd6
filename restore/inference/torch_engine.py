"""The torch engine: a prior on a device with its solver, for as many images as there are."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from restore.channels import Channel
from restore.channels.damage import Damage
from restore.errors import InputError, UsageError, option
from restore.fields import Fields
from restore.inference.devices import pick_device, room
from restore.inference.engine import Posterior
from restore.inference.tiles.blocks import PART_SIDE, PART_SIDE_ON_GPU
from restore.solvers import FixedPoint, SeveralStarts, Solution, solver_of
from restore.solvers.layered_map import LayeredMap
from restore.solvers.solution import concatenate
from restore.solvers.starts import nearest_modes, open_bits
from restore.units import Units
from restore.units.contract import mapped
from restore.zoo import TrainedPrior, find, light_ground, load
from restore.zoo.description import Description
from restore.zoo.inference import Effort

# Rows (images times starts) solved side by side: few enough that their state stays in a processor's caches. On a GPU as
# many as its memory holds: every batch waits for its slowest images, which leave the GPU idle.
ROWS_AT_ONCE = {"cpu": 2048, "cuda": 2**20}

# How many arrays of all units a row takes on a GPU at most.
ARRAYS_PER_ROW = 24

# Machines with more hidden units than this are solved in smaller parts.
MANY_HIDDEN = 2000


@dataclass(frozen=True)
class Engine:
    """A prior with its solver, ready to restore: a `restore.inference.engine.PictureEngine`, and more on tensors.

    Attributes:
        trained: the prior and what it carries.
        device: where to compute.
        max_memory: bytes that the messages or matrices of a solver may take; None for its own limit.
    """

    backend: ClassVar[str] = "torch"

    trained: TrainedPrior
    device: torch.device
    max_memory: int | None = None

    @classmethod
    def load(cls, model: str, device: str = "auto", max_memory: int | None = None) -> Engine:
        """Load a published or user-trained prior by name or path; see `restore.zoo.find` for the errors."""
        return cls.of(load(find(model)), pick_device(device), max_memory)

    @classmethod
    def of(cls, trained: TrainedPrior, device: torch.device, max_memory: int | None = None) -> Engine:
        moved = replace(
            trained,
            machine=trained.machine.to(device),
            pixel_means=trained.pixel_means.to(device),
            modes=trained.modes.to(device),
            grey_pixels=None if trained.grey_pixels is None else moved_to(trained.grey_pixels, device),
        )
        return cls(moved, device, max_memory)

    @property
    def header(self) -> Description:
        return self.trained.description

    @property
    def light_ground(self) -> bool:
        return light_ground(self.trained.pixel_means.cpu().numpy())

    @cached_property
    def solver(self) -> FixedPoint:
        made = solver_of(self.header.inference)
        if isinstance(made, LayeredMap):
            made = replace(made, weighs=self.header.weighs)
        limit = self.max_memory or room(self.device)
        if limit is None or not hasattr(made, "max_memory"):
            return made
        return replace(made, max_memory=limit)

    @property
    def part(self) -> int:
        return PART_SIDE if self.device.type == "cpu" else PART_SIDE_ON_GPU

    def solve(self, pictures: np.ndarray, damage: Damage, effort: Effort = "full") -> Posterior:
        header = self.header.at(effort, pictures.shape[1:], touched=damage.touched)
        whole = header.image_shape == self.header.image_shape
        trained = self.trained if whole else self.trained.of_size(header.image_shape)
        observed = torch.from_numpy(np.ascontiguousarray(pictures, np.float32)).flatten(1)
        channel = header.channel(damage)
        if trained.grey_pixels is not None:
            gain = grey_polarity_gain(observed, channel, moved_to(trained.grey_pixels, torch.device("cpu")))
        elif header.kind.pages:
            gain = torch.zeros(len(observed))
        else:
            hidden = None if damage.hidden is None else torch.from_numpy(np.array(damage.hidden)).flatten(1)
            gain = polarity_gain(observed, hidden, trained.pixel_means.cpu())
        engine = replace(self, trained=replace(trained, description=header))
        result = engine.restore(observed, None if header.task else channel)
        # Hidden layers are many times as much as a large picture: they stay on the device.
        count = 1 if header.kind.any_size else None
        layers = [[layer.cpu().numpy() for layer in values[:count]] for values in (result.means, result.variances)]
        outcome = [values.cpu().numpy() for values in (result.status, result.iterations, result.residual)]
        return Posterior.solved(pictures, damage, layers, outcome, gain.numpy())

    def restore(self, observed: Tensor, channel: Channel | None = None) -> Solution:
        """Find the posterior marginals of damaged images, on the engine's device, or the CPU if its memory is short.

        Args:
            observed: images (N, D), N >= 1, binary or grey levels as the prior knows them, on any device.
            channel: how they were damaged; None for a conditional prior, which has learnt the damage.

        Raises:
            UsageError: if images or channel do not fit the prior.
            InputError: if a single image does not fit into the device's memory, or `max_memory`.
        """
        header = self.header
        if observed.dim() != 2 or observed.shape[1] != header.pixels or not len(observed):
            raise UsageError(f"images of shape {tuple(observed.shape)} do not fit; give (N >= 1, {header.pixels})")
        header.check_told(p=channel is not None, sigma=False, mask=False)
        evidence = Fields(observed.float()) if channel is None else channel.evidence(observed)
        if not (header.grey or header.kind.pages):
            # For bits x² = x, and nearest modes are ranked by linear fields.
            evidence = Fields(evidence.with_presence(evidence.linear - evidence.quadratic / 2))
        done: list[Solution] = []
        weight = max(1, header.inference.starts, header.components // 8, sum(header.sizes[1:]) // MANY_HIDDEN)
        rows = ROWS_AT_ONCE[self.device.type]
        free = room(self.device)
        rows = rows if free is None else min(rows, free // (4 * ARRAYS_PER_ROW * sum(header.sizes)))
        first = 0
        kept = self.device
        size = max(1, rows // weight)
        with torch.inference_mode():
            while first < len(observed):
                try:
                    part = solve(self.trained, self.solver, _rows(evidence, first, first + size))
                except torch.cuda.OutOfMemoryError:
                    if size == 1:
                        raise InputError(
                            f"out of memory with a single image; use {option('device', 'cpu')}", self.device
                        ) from None
                    size //= 2
                    kept = torch.device("cpu")
                    done = [earlier.moved(kept) for earlier in done]
                    torch.cuda.empty_cache()
                    continue
                done.append(part.moved(kept))
                first += size
        try:
            return concatenate(done)
        except torch.cuda.OutOfMemoryError:
            return concatenate([earlier.moved(torch.device("cpu")) for earlier in done])


def solve(trained: TrainedPrior, solver: FixedPoint, evidence: Fields) -> Solution:
    """The fixed point of a prior under evidence (batch, D), or the average of those from all its starts; tempered."""
    if trained.description.temperature != 1:
        assert isinstance(solver, LayeredMap)  # a header with a temperature says so
        solver = replace(solver, temperature=trained.description.temperature)
    settings = trained.description.inference
    evidence = evidence.mapped(lambda values: values.to(trained.pixel_means))
    machine = machine_under(trained, evidence)
    if not settings.starts:
        return solver.solve(machine)
    if not trained.description.tries_again:
        return solver.solve(machine, pointwise(trained, evidence))
    strength = evidence.linear.abs().mean(-1)
    power = (strength / settings.trust).clamp(max=1)
    several = SeveralStarts(solver)
    if not (settings.clear and settings.modes and settings.starts > 1):
        return several.solve(machine, starts(trained, evidence), power)
    weak = open_bits(evidence.linear, trained.description.image_shape) > settings.clear

    def modes(rows: Tensor) -> Tensor:
        return nearest_modes(evidence.linear[rows], trained.modes, settings.starts - 1)

    return several.solve_where_needed(machine, pointwise(trained, evidence), weak, modes, power)


def machine_under(trained: TrainedPrior, evidence: Fields) -> Any:
    """The prior under evidence (batch, D); a conditional prior takes the observed image itself as evidence."""
    evidence = evidence.mapped(lambda values: values.to(trained.pixel_means))
    return trained.description.kind.given(trained.machine, evidence)


def starts(trained: TrainedPrior, evidence: Fields) -> Tensor:
    """The starts of the solver: the pointwise estimate, then the modes nearest to the evidence."""
    first = pointwise(trained, evidence)[:, None]
    if trained.description.inference.starts < 2:
        return first
    modes = nearest_modes(evidence.linear, trained.modes, trained.description.inference.starts - 1)
    return torch.cat([first, modes], 1)


def pointwise(trained: TrainedPrior, evidence: Fields) -> Tensor:
    """The posterior mean of independent pixels (TAP machine, eq. 46); (batch, D)."""
    return trained.pointwise.moments(evidence)[0]


def polarity_gain(observed: Tensor, hidden: Tensor | None, pixel_means: Tensor) -> Tensor:
    """The log-likelihood gain of inversion under independent pixels, in nats per visible pixel, (batch,)."""
    visible = torch.ones_like(observed, dtype=torch.bool) if hidden is None else ~hidden
    # log p(1 - y) - log p(y) is the sum of (1 - 2 y) logit(m) over visible pixels.
    gain = torch.where(visible, (1 - 2 * observed) * torch.logit(pixel_means), torch.zeros(())).sum(-1)
    return gain / visible.sum(-1).clamp_min(1)


def grey_polarity_gain(observed: Tensor, channel: Channel, pixels: Units) -> Tensor:
    """As `polarity_gain`, for grey images (N, D) after a channel; the independent pixels are given."""

    def likelihood(values: Tensor) -> tuple[Tensor, Tensor]:
        fields = channel.evidence(values)
        evidence = Fields(fields.linear, fields.quadratic)
        # The part of log p(y | x) that does not depend on x: of Gaussian noise -y²/(2 sigma²). For impulses it differs
        # between black and white, so they are not counted.
        return pixels.log_partition(evidence) - evidence.quadratic * values * values / 2, evidence.quadratic

    (inverted, _) = likelihood(1 - observed)
    (upright, precision) = likelihood(observed)
    through = (precision > 0).expand_as(observed)
    return torch.where(through, inverted - upright, 0.0).sum(-1) / through.sum(-1).clamp_min(1)


def moved_to(units: Units, device: torch.device) -> Units:
    return mapped(units, lambda value: value.to(device))


def _rows(fields: Fields, first: int, last: int) -> Fields:
    def part(values: Tensor) -> Tensor:
        return values if values.dim() < 2 or len(values) == 1 else values[first:last]

    return fields.mapped(part)
