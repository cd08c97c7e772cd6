"""`restore import`: make a prior of an RBM that another program has trained."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from restore.cli import options
from restore.console import say
from restore.errors import shown

EXAMPLE = "Example:  restore import rbm.npz --name mine   (then: restore denoise image.png --model mine --p 0.1)"


def import_(
    file: Annotated[
        Path, typer.Argument(help="A .npz or safetensors file with the weights and biases of a binary RBM.")
    ],
    name: Annotated[str, typer.Option(help="Name for the prior.")],
    weights: Annotated[
        str | None, typer.Option(metavar="KEY", help="Tensor that holds the weights. [by its name]")
    ] = None,
    visible: Annotated[
        str | None, typer.Option(metavar="KEY", help="Tensor that holds the biases of pixels. [by its name]")
    ] = None,
    hidden: Annotated[
        str | None, typer.Option(metavar="KEY", help="Tensor that holds the biases of hidden units. [by its name]")
    ] = None,
    rows: Annotated[
        Literal["auto", "visible", "hidden"],
        typer.Option(help="Whether the rows of the weights are pixels or hidden units; auto: what fits the biases."),
    ] = "auto",
    spins: Annotated[bool, typer.Option("--spins", help="Its units are -1 or 1, not 0 or 1.")] = False,
    shape: Annotated[str | None, typer.Option(help="Size of its images, HEIGHTxWIDTH. [square]")] = None,
    seed: Annotated[int, typer.Option(help="Seed of the images drawn from it.")] = 0,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Folder for the prior [user model folder, by the name].")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace a prior of the same name.")] = False,
    quiet: options.Quiet = False,
) -> None:
    """Make a prior of a binary RBM trained elsewhere: scikit-learn, PyTorch, PGMax, ...

    Its modes, damping and iterations are found from images that it draws itself, in about a minute.
    """
    from restore.learning.imports.conventions import Told
    from restore.learning.imports.importing import import_rbm
    from restore.learning.imports.settings import ENOUGH, SWEEPS
    from restore.progress import progress

    size = None if shape is None else options.image_shape(shape)
    told = Told(weights, visible, hidden, rows, spins, size)
    command = shlex.join(["restore", *map(shown, sys.argv[1:])])
    with progress(f"{shown(name)}: drawing images, sweep", SWEEPS, quiet=quiet) as meter:
        folder, found = import_rbm(
            file, name, told, command=command, output=output, overwrite=overwrite, seed=seed, meter=meter
        )
    if found.converged < ENOUGH:
        say(
            f"restore: {shown(name)}: its solver converges for {found.converged:.0%} of its own images after damage; "
            "expect little of it"
        )
    if not quiet:
        settings = found.prior.description.inference
        say(f"{shown(folder)}: imported; damping {settings.damping:g}, at most {settings.max_iter} iterations")
