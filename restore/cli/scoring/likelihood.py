"""What `restore evaluate --likelihood` does: measure how probable a prior finds images."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from restore.console import say

if TYPE_CHECKING:
    from restore.cli.scoring.source import Source
    from restore.evaluation.likelihoods.result import Likelihood

Kind = Literal["ais", "tap", "pseudo", "exact"]


@dataclass(frozen=True)
class Choices:
    """Options of a likelihood; None where not given."""

    schedule: str | None = None
    runs: int | None = None
    starts: int | None = None
    pixels: int | None = None

    def check(self, kind: Kind | None) -> None:
        """Refuse the options of another kind, and values out of range, before anything is loaded."""
        from restore.errors import UsageError

        for name, owner in {"schedule": "ais", "runs": "ais", "starts": "tap", "pixels": "pseudo"}.items():
            if getattr(self, name) is not None and owner != kind:
                raise UsageError(f"--{name} belongs to --likelihood {owner}; leave it out")
        for name, least in {"runs": 2, "starts": 1, "pixels": 1}.items():
            value = getattr(self, name)
            if value is not None and value < least:
                raise UsageError(f"--{name} must be at least {least}, not {value}")


def evaluate_likelihood(model: str, source: Source, kind: Kind, choices: Choices, seed: int, device: str) -> Likelihood:
    """The mean log-likelihood of images under a prior, with a progress bar if it takes long."""
    import torch

    from restore.evaluation.likelihoods.ais import ais_likelihood
    from restore.evaluation.likelihoods.exact import chunks, exact_likelihood
    from restore.evaluation.likelihoods.pseudo import pseudo_likelihood
    from restore.evaluation.likelihoods.schedules import temperatures
    from restore.evaluation.likelihoods.tap import precise_solver, tap_likelihood
    from restore.inference.torch_engine import Engine
    from restore.progress import progress

    betas = temperatures(choices.schedule or "salakhutdinov")
    engine = Engine.load(model, device)
    # TAP solves machines of any units; the other methods need binary units in at most two layers.
    machine: Any = engine.free_machine("likelihood")
    if kind != "tap":
        engine.description.check_plain(f"{kind} likelihood")
    images = source.fitting(engine.trained.description).to(engine.device)
    generator = torch.Generator(engine.device).manual_seed(seed)
    if kind == "ais":
        base = torch.logit(engine.trained.pixel_means)
        with progress(f"{model}: annealing", len(betas) - 1, quiet=source.quiet) as meter:
            found = ais_likelihood(machine, images, betas.tolist(), choices.runs or 100, generator, base, meter)
    elif kind == "exact":
        with progress(f"{model}: summing", chunks(machine, images.shape[1]), quiet=source.quiet) as meter:
            found = exact_likelihood(machine, images, meter)
    elif kind == "tap":
        chosen = torch.randperm(len(images), generator=generator, device=engine.device)[: choices.starts or 100]
        found = tap_likelihood(machine, images, images[chosen], precise_solver(engine.description.inference))
    else:
        found = pseudo_likelihood(machine, images, choices.pixels or images.shape[1], generator)
    for warning in () if source.quiet else found.warnings:
        say(f"{model}: {warning}")
    return found
