"""Whether a prior is worth using: on held-out images, beside the best simple restorer of each kind of damage."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from restore.evaluation.evaluate import Report, evaluate, restorer_of
from restore.inference.torch_engine import Engine
from restore.learning.train import Learnt
from restore.report.trials import SEED, Scores

# A prior lacks images if it leaves so much less wrong of those it has learnt from than of others.
BY_HEART = 0.8

# A verdict by fewer held-out images is hardly one.
FEW = 10

# It lacks time if the best epoch is among the last of them.
LATE = 0.8


def verdict(name: str, scores: Sequence[Scores], remedy: str) -> str:
    """Where a prior is ahead of all others, in figures; and what would help where it is not."""
    said, lost = [], 0
    for entry in scores:
        rival = min((other for other in entry.reports if other != name), key=entry.order)
        said.append(f"after {entry.task} {_figure(entry.reports[name])}, with {rival} {_figure(entry.reports[rival])}")
        lost += entry.order(name) >= entry.order(rival)
    worth = "worth using" if not lost else "not worth using yet" if lost == len(scores) else "worth using in part"
    few = scores[0].reports[name].n
    told = f", as far as {few} held-out image{'s' * (few > 1)} can tell" if few < FEW else ""
    measure = "" if scores[0].reports[name].psnr is not None else " wrong pixels"
    return f"{worth}{told}:{measure} {'; '.join(said)}{f'; what may help: {remedy}' * bool(lost)}"


def advice(learnt: Learnt, memorised: bool) -> str:
    """What would make a prior better, in words; it lacks images if it has learnt those it had by heart."""
    trained, lesson = learnt.trained, learnt.lesson
    late = trained.error is not None and trained.epoch >= LATE * len(learnt.curve) > 1
    reasons = []
    if memorised:
        reasons.append("more images, for it restores those it has learnt from clearly better")
    if late:
        reasons.append("more time, for it was still getting better")
    if lesson.wholes and not memorised:
        reasons.append("larger windows (--shape)")
    return ", ".join(reasons) or "another method (--method)"


def by_heart(engine: Engine, training: Tensor, scores: Scores) -> bool:
    """Whether a prior restores images that it has learnt from (N, D) clearly better than others."""
    about, held_out = engine.description, scores.reports[engine.description.name]
    generator = torch.Generator().manual_seed(SEED)
    images = training[: held_out.n]
    seen = evaluate(restorer_of(engine), images, scores.task, about.image_shape, generator, grey=about.grey)
    return _loss(seen) < BY_HEART * _loss(held_out)


def _loss(report: Report) -> float:
    """The share of wrong pixels, or the mean squared error of grey ones."""
    return report.error_all.mean if report.psnr is None else 10 ** (-report.psnr.mean / 10)


def _figure(report: Report) -> str:
    return f"{report.error_all.mean:.2%}" if report.psnr is None else f"{report.psnr.mean:.1f} dB"
