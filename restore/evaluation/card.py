"""The scores on a prior's card: the tasks of published priors, and tables of Markdown."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from torch import Tensor

from restore import console
from restore.channels import Task
from restore.console import Display
from restore.evaluation.evaluate import Report, compare, restorer_of, task_of
from restore.evaluation.metrics import Score
from restore.inference.engine import PictureEngine
from restore.zoo.description import Description

# Tasks of priors that are given the damage, by the kind of observation.
_NOISE = ("noise:0.05", "noise:0.1", "noise:0.2", "noise:0.3")
CARD_TASKS: Mapping[str, tuple[str, ...]] = {
    "flips and mask": ("flip:0.05", "flip:0.1", "flip:0.2", "flip:0.3", "flip:0.4", "patch:8", "patch:12"),
    "noise and mask": (*_NOISE, "salt:0.2", "patch:8"),
    "one noise and mask": _NOISE,
    "page and mask": (),
}

# The same on whole images of other sizes than the prior's.
WHOLE_TASKS: Mapping[str, tuple[str, ...]] = {
    "flips and mask": ("flip:0.05", "flip:0.1", "flip:0.2", "flip:0.3", "holes:8:0.1"),
    "noise and mask": ("noise:0.1", "noise:0.2", "salt:0.2", "holes:8:0.1"),
    "one noise and mask": _NOISE,
    "page and mask": (),
}


def tasks_of(header: Description, *, whole: bool) -> list[Task]:
    """The tasks of a prior's card; for a conditional prior the task that it has learnt."""
    if header.task:
        return [task_of(header)]
    named = (WHOLE_TASKS if whole else CARD_TASKS)[header.kind.observation(header)]
    return list(map(header.task_of, named))


def measure(
    engine: PictureEngine, batches: Sequence[Tensor], seed: int, *, whole: bool, progress: Display = False
) -> list[Report]:
    """Score a prior on all tasks of its card.

    Args:
        engine: the prior.
        batches: see `evaluate`.
        seed: of the damage.
        whole: True for whole images, of other sizes than the prior's.
        progress: as of `evaluate`.
    """
    header = engine.header
    restorer = restorer_of(engine)
    tasks = tasks_of(header, whole=whole)

    reports = list[Report]()
    with console.progress(f"{header.name}: restored", 1.0, progress) as meter:

        def part(done: float, total: float | None, note: str) -> None:
            meter((len(reports) + done) / len(tasks), note)

        for task in tasks:
            reports.append(compare(restorer, batches, task, seed, grey=header.grey, progress=part))
    return reports


def as_section(reports: Sequence[Report], command: str) -> str:
    """Markdown for a card: the command, and one row per task."""
    rows: list[list[str]] = []
    for report in reports:
        row = [str(report.task), str(report.n)]
        if report.psnr is not None and report.ssim is not None:
            rows.append([*row, _cell(report.psnr, 1, 2), _cell(report.ssim, 1, 4)])
        else:
            shares = ((report.error_all, 3), (report.error_changed, 2), (report.error_unchanged, 3))
            rows.append([*row, *(_cell(score, 100, digits) for score, digits in shares), _cell(report.mcc, 1, 4)])
    errors = ["wrong pixels, % of all", "wrong, % of the changed", "wrong, % of the unchanged", "MCC"]
    head = ["task", "images", *(["PSNR, dB", "SSIM"] if reports[0].grey else errors)]
    return f"Measured by `{command}` (± is the standard error):\n\n{table(head, rows)}"


def whole_section(reports: Sequence[Report], command: str) -> str:
    """As `as_section`, for whole images, with the scores of the others in columns of their own."""
    intro = f"Measured by `{command}` on whole images, restored as `restore denoise` does it (± is the standard error)"
    measure = "PSNR in dB" if reports[0].grey else "wrong pixels in %, of holes in % of the hidden pixels"
    rows = []
    for report in reports:
        median = next(name for name in report.beside if name.startswith("median"))
        sides = median.removeprefix("median of ")
        cells = [_main(one) for one in (report, report.beside["as it is"], report.beside[median])]
        rows.append([str(report.task), str(report.n), *cells[:2], f"{cells[2]} ({sides})"])
    return f"{intro}; {measure}:\n\n{table(['task', 'images', 'restored', 'as it is', 'best median'], rows)}"


def _main(report: Report) -> str:
    """The main score of a report."""
    return _cell(report.psnr, 1, 2) if report.psnr else _cell(report.error_hidden or report.error_all, 100, 3)


def _cell(score: Score, factor: float, digits: int) -> str:
    # A hole filled exactly has no finite PSNR, and then there is no mean.
    finite = math.isfinite(score.mean)
    return plus_minus(factor * score.mean, factor * score.standard_error, digits) if finite else "-"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table with names on the left in the first column, and figures on the right in the others."""
    lines = [head, ["---"] + ["---:"] * (len(head) - 1), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def plus_minus(value: float, error: float, digits: int) -> str:
    """A figure with its standard error."""
    return f"{value:.{digits}f} ± {error:.{digits}f}"
