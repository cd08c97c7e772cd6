"""`restore import`: make a prior of an RBM that another program has trained."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from restore.cli import options
from restore.console import progress, say
from restore.errors import shown

EXAMPLE = "Example:  restore import rbm.npz --name mine   (then: restore denoise image.png --model mine --p 0.1)"


def import_(
    source: Annotated[
        str,
        typer.Argument(
            help="File or URL of a bundle or of weights W and biases b and c, .npz or safetensors; or hf:OWNER/NAME."
        ),
    ],
    name: Annotated[str | None, typer.Option(help="Name for the prior. [of a bundle: its own]")] = None,
    sha256: Annotated[str, typer.Option(metavar="DIGITS", help="The checksum that the file must have.")] = "",
    shape: options.Shape = None,
    seed: options.Seed = 0,
    overwrite: options.Overwrite = False,
    quiet: options.Quiet = False,
) -> None:
    """Keep a prior that someone shares, or make one of a binary RBM of scikit-learn or PyTorch in about a minute."""
    from tempfile import TemporaryDirectory

    from restore.errors import InputError, ModelError, UsageError, option
    from restore.export import bundle

    with TemporaryDirectory() as folder:
        path = bundle.fetched(source, Path(folder), sha256)
        try:
            if bundle.is_bundle(path):
                _keep(path, name, overwrite=overwrite, quiet=quiet)
            elif name is None:
                raise UsageError(f"is not a bundle; name the prior to make of it with {option('name')}", source)
            else:
                _learn(path, name, source, shape, seed, overwrite=overwrite, quiet=quiet)
        except (InputError, ModelError) as fault:  # of what was downloaded, whose place means nothing
            raise type(fault)(str(fault).replace(shown(path), shown(source))) from fault


def _keep(path: Path, name: str | None, *, overwrite: bool, quiet: bool) -> None:
    """Keep the prior in a bundle or a folder."""
    from restore.export import bundle
    from restore.learning.run.place import reserve
    from restore.zoo.search import check_name

    files, header = bundle.read(path)
    name = name or header.name
    check_name(name)
    target = reserve(name, None, overwrite)
    bundle.keep(files, target)
    if not quiet:
        say(f"{shown(str(target))}: imported")


def _learn(
    file: Path,
    name: str,
    source: str,
    shape: tuple[int, int] | None,
    seed: int,
    *,
    overwrite: bool,
    quiet: bool,
) -> None:
    """Make the prior of an RBM."""
    from restore import zoo
    from restore.errors import OutputError
    from restore.export.beside import add_graph
    from restore.learning.imports import CONVERGED_SHARE, SWEEPS, prior_of, read_rbm
    from restore.learning.run.place import reserve
    from restore.zoo.description import Description
    from restore.zoo.search import check_name

    check_name(name)
    machine, image_shape = read_rbm(file, shape)
    source = shown(Path(source).name)[: zoo.limits.TEXT]
    header = Description(name, image_shape, 127, source, "import", licence="unknown", hidden=machine.hidden.size)
    target = reserve(name, None, overwrite)
    with progress(f"{shown(name)}: drawing images, sweep", SWEEPS, not quiet) as meter:
        prior, converged = prior_of(machine, header, seed, meter)
    zoo.save(target, prior, f"# {name}\n\nA binary RBM, imported from `{source}`. Licence: that of the file.\n")
    graph = add_graph([target], OutputError)
    if converged < CONVERGED_SHARE:
        say(f"restore: {shown(name)}: its solver converges for {converged:.0%} of its own images; expect little of it")
    if not quiet:
        say(f"{shown(str(target))}: imported" + (f", without its graph: {graph}" if graph else ""))
