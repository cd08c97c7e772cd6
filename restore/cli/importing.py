"""`restore import`: make a prior of an RBM that another program has trained."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from restore.cli import options
from restore.console import say
from restore.errors import shown

EXAMPLE = "Example:  restore import rbm.npz --name mine   (then: restore denoise image.png --model mine --p 0.1)"

CARD = """# {name}

A binary restricted Boltzmann machine, imported from `{source}` (ink = grey level above 127). Licence: that of the file.

## Import

    {command}

- file (SHA-256): {digest}

## Scores

Not measured yet.
"""


def import_(
    file: Annotated[
        Path, typer.Argument(help="A .npz or safetensors file with the weights and biases of a binary RBM.")
    ],
    name: Annotated[str, typer.Option(help="Name for the prior.")],
    spins: Annotated[bool, typer.Option("--spins", help="Its units are -1 or 1, not 0 or 1.")] = False,
    shape: options.Shape = None,
    seed: options.Seed = 0,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Folder for the prior [user model folder, by the name].")
    ] = None,
    overwrite: options.Overwrite = False,
    quiet: options.Quiet = False,
) -> None:
    """Make a prior of a binary RBM trained elsewhere: scikit-learn, PyTorch, PGMax, ...

    Its modes, damping and iterations are found from images that it draws itself, in about a minute.
    """
    import hashlib

    from restore.learning.imports import ENOUGH, SWEEPS, import_rbm, read_rbm
    from restore.learning.recipe.recipe import check_name
    from restore.learning.run.place import reserve
    from restore.progress import progress
    from restore.zoo import limits
    from restore.zoo.description import Description

    check_name(name)
    machine, image_shape = read_rbm(file, spins=spins, shape=shape)
    source = shown(file.name)[: limits.TEXT]
    header = Description(name, image_shape, 127, source, "import", licence="unknown", hidden=machine.hidden.size)
    command, digest = shlex.join(["restore", *map(shown, sys.argv[1:])]), hashlib.sha256(file.read_bytes()).hexdigest()
    card = CARD.format(name=name, source=source, command=command, digest=digest)
    with progress(f"{shown(name)}: drawing images, sweep", SWEEPS, quiet=quiet) as meter:
        place = reserve(name, output, overwrite=overwrite, run=None, resume=False)
        settings, converged = import_rbm(machine, header, place, card, seed=seed, meter=meter)
    if converged < ENOUGH:
        what = f"its solver converges for {converged:.0%} of its own images after damage; expect little of it"
        say(f"restore: {shown(name)}: {what}")
    if not quiet:
        where = shown(str(place.target))
        say(f"{where}: imported; damping {settings.damping:g}, at most {settings.max_iter} iterations")
