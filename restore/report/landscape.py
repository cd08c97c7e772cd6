"""Show what a prior has learnt: its receptive fields and its TAP solutions; see `restore.evaluation.probing`."""

from __future__ import annotations

import time
from dataclasses import replace

import torch
from torch import Tensor

from restore.evaluation.probing.findings import Findings
from restore.evaluation.probing.solutions import PROBING, Solutions, tap_solutions
from restore.evaluation.probing.verdict import ENOUGH
from restore.inference.torch_engine import Engine
from restore.priors import FullyVisible
from restore.report.images import fitting, receptive_fields, strip, strongest
from restore.report.page import Part, Rows, Section, Sentence, Strips
from restore.report.pictures import signed

# A probe takes minutes; this one should take seconds. Less damping and a wider tolerance converge sooner: for a prior
# of shapes 45 of 50 starts in .8 s (37 in 2.9 s with the probe's own settings), for tap-mnist-100 43 in 2.8 s, with 25
# solutions (44 in 6.5 s, with 23). First come just enough starts to tell modes from memories; all of them follow only
# if they take no more than this many seconds.
QUICK = replace(PROBING, max_iter=1000, damping=0.7, tol=1e-4)
STARTS = 200
SECONDS = 20.0

# Rows of receptive fields, and of solutions.
FIELDS, SOLUTIONS = 5, 2


def field_section(engine: Engine) -> Section:
    """The receptive fields of hidden units: their weights to the pixels."""
    about, machine = engine.trained.description, engine.trained.machine
    title = "What the hidden units look at"
    if isinstance(machine, FullyVisible) or not about.hidden:
        return Section(title, [Sentence("This prior has no hidden units: pixels are coupled directly.")])
    chosen = strongest(receptive_fields(machine, about.image_shape), fitting(about.image_shape, FIELDS))
    count = f"all {about.hidden}" if len(chosen) == about.hidden else f"the strongest {len(chosen)} of {about.hidden}"
    said = f"The weights of {count} hidden units to the pixels, strongest first: red where a unit calls for white, "
    said += "blue for black; each on its own scale."
    return Section(title, [Sentence(said), Strips([strip(chosen, about.image_shape, colours=signed)])])


def probe_section(engine: Engine, training: Tensor) -> Section:
    """The result of a short probe that starts from training images (N, D)."""
    about = engine.trained.description
    title = "What it takes for an image"
    if about.conditional:
        said = "Left out: this prior has a different landscape for each image that it sees, and none of its own."
        return Section(title, [Sentence(said)])
    if about.convolutional:
        said = "Left out: its solutions are those of a field without end, of which these images show a piece."
        return Section(title, [Sentence(said)])
    if "bernoulli" not in about.unit_kinds:
        said = "Left out: without binary units a prior has at most one solution, wherever it starts."
        return Section(title, [Sentence(said)])
    order = torch.randperm(len(training), generator=torch.Generator().manual_seed(0))[:STARTS]
    found, seconds = quick_probe(engine, training[order].to(engine.device))
    findings = Findings.of(about.name, None, found, seconds)
    facts = [("starts that led to a solution", f"{findings.converged} of {findings.starts}")]
    facts.append(("distinct solutions", str(findings.solutions)))
    if findings.free_energy is not None:
        low, high = findings.free_energies[0], findings.free_energies[-1]
        facts.append(("their free energy", f"{low:.2f} to {high:.2f} nats, {findings.free_energy:.2f} on average"))
        largest = ", ".join(map(str, sorted(findings.basins, reverse=True)[:5]))
        facts.append(("starts in the largest basins", largest))
    said = f"Left to itself, from training images: {findings.verdict}."
    parts: list[Part] = [Sentence(said), Rows([], facts), *map(Sentence, findings.warnings)]
    if found.count:
        widest = found.means[0][found.basins.argsort(descending=True, stable=True)]
        shown = widest[: fitting(about.image_shape, SOLUTIONS)]
        parts += [Sentence("The solutions that most starts lead to:"), Strips([strip(shown, about.image_shape)])]
    return Section(title, parts)


def quick_probe(engine: Engine, starts: Tensor) -> tuple[Solutions, float]:
    """Solutions from all starts (N, D), or from the first ones if all would take too long; and the seconds taken."""
    machine = engine.free_machine("TAP solutions")
    began = time.perf_counter()
    found = tap_solutions(machine, starts[:ENOUGH], QUICK)
    seconds = time.perf_counter() - began
    if len(starts) > ENOUGH and seconds * len(starts) / ENOUGH < SECONDS:
        found = tap_solutions(machine, starts, QUICK)
    return found, time.perf_counter() - began
