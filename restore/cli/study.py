"""`restore study`: the experiments behind the published figures, one command each."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

EXAMPLE = "Example:  restore study denoising --data-root path/to/data -o training/"


def study(
    name: Annotated[Literal["denoising", "scores"], typer.Argument(help="Which study.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="Folder for tables and figures.")] = Path("training"),
    models: Annotated[list[str] | None, typer.Option("--model", help="Priors [all published ones].")] = None,
    n: Annotated[int, typer.Option("--n", help="Number of test images.")] = 1000,
    seed: Annotated[int, typer.Option(help="Seed of the damage.")] = 0,
    data_root: Annotated[Path | None, typer.Option(help="Where MNIST lies [RESTORE_DATA].")] = None,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda[:N].")] = "auto",
) -> None:
    """Repeat a study: `denoising` (MCC over the flip probability) or `scores` (the cards of the priors)."""
