"""`restore study denoising`: Matthews correlation over the flip probability (TAP machine, Fig. 8)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from restore.cli.study_report import report
from restore.console import say

if TYPE_CHECKING:
    from torch import Tensor

    from restore.engine import Engine


def study_denoising(output: Path, engines: dict[str, Engine], training: Tensor, truth: Tensor, seed: int) -> None:
    import json
    from dataclasses import asdict

    from restore.evaluation import denoising_study as denoising
    from restore.files import write_atomically

    shape = next(iter(engines.values())).trained.description.image_shape
    curves = denoising.study(engines, training, truth, shape, seed, say)
    tables = denoising.as_tables(curves)
    tables += [denoising.depth_table(curves, name) for name in engines]
    record = {"n": len(truth), "seed": seed, "curves": [asdict(curve) for curve in curves]}
    write_atomically(output / "denoising.json", json.dumps(record, indent=1).encode())
    denoising.as_figure(curves, output / "denoising.png")
    report(output, {"denoising": "\n\n".join(tables)})
