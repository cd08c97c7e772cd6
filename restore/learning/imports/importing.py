"""Make a prior of an RBM that another program has trained: from its file to a prior kept under a name."""

from __future__ import annotations

import hashlib
import math
from contextlib import suppress
from pathlib import Path

from restore import zoo
from restore.errors import ModelError, OutputError, UsageError, shown
from restore.learning.imports.conventions import Told, recognised
from restore.learning.imports.settings import Settled, settled
from restore.learning.imports.tensors import read_tensors
from restore.learning.recipes.recipe import check_name
from restore.learning.run.card import SCORES
from restore.learning.run.keeping import reserve
from restore.priors import RBM
from restore.progress import Meter
from restore.zoo import limits
from restore.zoo.description import Description


def read_rbm(path: Path, told: Told) -> tuple[RBM, tuple[int, int]]:
    """The machine in a file, in single precision, and the height and width of its images.

    Raises:
        RestoreError: as `read_tensors` and `recognised`.
        UsageError: if its visible units fill no such image.
        ModelError: if it is too large, or its numbers are.
    """
    where = shown(path)
    weights, *biases = recognised(read_tensors(path), told, where)
    pixels, hidden = weights.shape
    if max(pixels, hidden) > limits.UNITS:
        raise ModelError(f"{where}: has a layer of {max(pixels, hidden)} units; at most {limits.UNITS} are known here")
    side = math.isqrt(pixels)
    if told.shape is None and side * side != pixels:
        raise UsageError(f"{where}: {pixels} visible units are no square image; give --shape HEIGHTxWIDTH")
    height, width = told.shape or (side, side)
    if height * width != pixels:
        raise UsageError(f"{where}: {pixels} visible units are no image of --shape {height}x{width}")
    double = (RBM.from_spins if told.spins else RBM.binary)(weights, *biases)
    machine = RBM.binary(*(value.float().contiguous() for value in double.parameters.values()))
    if not all(bool(value.isfinite().all()) for value in machine.parameters.values()):
        raise ModelError(f"{where}: its numbers are too large for single precision; train again")
    return machine, (height, width)


def import_rbm(
    path: Path,
    name: str,
    told: Told,
    *,
    command: str,
    output: Path | None = None,
    overwrite: bool = False,
    seed: int = 0,
    meter: Meter = lambda done, note="": None,
) -> tuple[Path, Settled]:
    """Keep the RBM in a file as a prior, with all that restoring needs; returns its folder, and what was found.

    A stop leaves no empty folder, and has a note of what there is instead.

    Args:
        path: a .npz or safetensors file.
        name: what to call the prior.
        told: what the file does not say.
        command: what was typed, for the card.
        output: its folder; by default the one with its name in the user's folder.
        overwrite: replace a prior that is there already.
        seed: seed of all that is drawn.
        meter: see `settled`.

    Raises:
        RestoreError: as `read_rbm` and `restore.learning.run.keeping.reserve`.
    """
    check_name(name)
    machine, image_shape = read_rbm(path, told)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    place = reserve(name, output, overwrite=overwrite, run=None, resume=False)
    source = shown(path.name)[: limits.TEXT]
    about = Description(name, image_shape, machine.hidden.size, 127, source, "import", licence="unknown")
    assert place.target is not None
    left = "nothing was imported; the same command starts anew"
    try:
        found = settled(machine, about, seed, meter)
        zoo.save(place.target, found.prior, _card(found, digest, command))
        left = f"{shown(place.target)}: imported, but without its graph, so that only torch restores with it"
        place.add_graph(OutputError)
    except BaseException as stop:
        stop.add_note(left)
        # The folder that was made for the prior, if it is empty.
        with suppress(OSError):
            place.target.rmdir()
        raise
    return place.target, found


def _card(found: Settled, digest: str, command: str) -> str:
    about = found.prior.description
    height, width = about.image_shape
    settings = about.inference
    return f"""# {about.name}

A binary restricted Boltzmann machine with {about.pixels} visible units ({height} x {width} pixels) and
{about.hidden} hidden units, imported from `{about.data}` (ink = grey level above {about.threshold}).
It restores with the `{settings.solver}` solver from {settings.starts} starts per image, which converged for
{found.converged:.1%} of its own images with 5, 10 and 20 % of the pixels flipped, at a damping of {settings.damping:g}.
Licence: that of the file.

## Import

    {command}

- file (SHA-256): {digest}

{SCORES}

Not measured yet.
"""
