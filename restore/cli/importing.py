"""`restore import`: make a prior of an RBM that another program has trained."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from restore.cli import options
from restore.console import say
from restore.errors import shown

EXAMPLE = "Example:  restore import rbm.npz --name mine   (then: restore denoise image.png --model mine --p 0.1)"


def import_(
    file: Annotated[Path, typer.Argument(help="A .npz or safetensors file of weights W and biases b and c.")],
    name: Annotated[str, typer.Option(help="Name for the prior.")],
    shape: options.Shape = None,
    seed: options.Seed = 0,
    overwrite: options.Overwrite = False,
    quiet: options.Quiet = False,
) -> None:
    """Make a prior of a binary RBM trained elsewhere, with scikit-learn or PyTorch, in about a minute."""
    from restore import zoo
    from restore.errors import OutputError
    from restore.learning.imports import ENOUGH, SWEEPS, prior_of, read_rbm
    from restore.learning.recipe.recipe import check_name
    from restore.learning.run.place import reserve
    from restore.progress import progress
    from restore.zoo.description import Description

    check_name(name)
    machine, image_shape = read_rbm(file, shape)
    source = shown(file.name)[: zoo.limits.TEXT]
    header = Description(name, image_shape, 127, source, "import", licence="unknown", hidden=machine.hidden.size)
    place = reserve(name, None, overwrite=overwrite, run=None, resume=False)
    with progress(f"{shown(name)}: drawing images, sweep", SWEEPS, quiet=quiet) as meter:
        prior, converged = prior_of(machine, header, seed, meter)
    assert place.target is not None
    zoo.save(place.target, prior, f"# {name}\n\nA binary RBM, imported from `{source}`. Licence: that of the file.\n")
    graph = place.add_graph(OutputError)
    if converged < ENOUGH:
        say(f"restore: {shown(name)}: its solver converges for {converged:.0%} of its own images; expect little of it")
    if not quiet:
        say(f"{shown(str(place.target))}: imported" + (f", without its graph: {graph}" if graph else ""))
