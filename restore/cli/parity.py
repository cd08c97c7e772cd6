"""`restore parity`: whether the exported graphs of priors restore as torch does."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from restore.console import tell

EXAMPLE = "Example:  restore parity tap-mnist --data mnist"


def parity(
    models: Annotated[list[str] | None, typer.Argument(help="Priors by name or folder [all with a graph].")] = None,
    data: Annotated[
        str | None, typer.Option(help="Images to damage and restore [what each prior learnt from].")
    ] = None,
    n: Annotated[int, typer.Option("--n", min=1, help="How many of them.")] = 20,
    seed: Annotated[int, typer.Option(min=0, max=2**63 - 1, help="Seed of the damage.")] = 0,
    data_root: Annotated[Path | None, typer.Option(help="Where named data sets lie [RESTORE_DATA].")] = None,
    json: Annotated[bool, typer.Option("--json", help="One JSON object per prior and task.")] = False,
) -> None:
    """Restore images with onnxruntime and with torch; fails where they do not agree."""
    import dataclasses

    from restore import zoo
    from restore.cli import telling
    from restore.data import load
    from restore.engines import open_engine
    from restore.errors import ModelError, shown
    from restore.export.parity import TOLERANCE, parities

    known = [folder.name for folder in zoo.folders() if (folder / zoo.GRAPH).is_file()]
    apart = 0
    for name in models or known:
        onnx, torch = open_engine(name, "onnx"), open_engine(name, "torch", "cpu")
        about = torch.description
        source = data or about.data
        clean = load(source, split="test", root=data_root).images[:n] / 255
        if clean.shape[1:] != about.image_shape:
            raise ModelError(f"{shown(name)}: the images of {shown(source)} do not fit; give others with --data")
        for found in parities(onnx, torch, clean, seed):
            apart += not found.agrees
            if json:
                telling.print_json({"model": about.name, "agrees": found.agrees} | dataclasses.asdict(found))
            else:
                tell(
                    f"{shown(about.name):28} {found.task:16} {found.images:5} images   largest difference "
                    f"{found.difference:.1e}   pixels {found.pixels}   parted {found.parted} "
                    f"({found.parted_difference:.1e})   unsettled {found.unsettled}   "
                    f"{'agree' if found.agrees else 'DIFFER'}",
                    flush=True,
                )
    if apart:
        raise ModelError(f"{apart} of the comparisons differ by more than {TOLERANCE} or in a pixel; export them again")
