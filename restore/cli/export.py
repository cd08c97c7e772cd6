"""`restore export`: write a prior with its solver as one ONNX file, for other programs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from restore.cli import options

EXAMPLE = "Example:  restore export tap-mnist -o tap-mnist.onnx"


def export(
    model: options.Model,
    output: Annotated[
        str | None, typer.Option("-o", "--output", metavar="FILE", help="File to write [NAME.onnx].")
    ] = None,
    float16: Annotated[bool, typer.Option("--float16", help="Store matrices in half precision.")] = False,
    no_channel: Annotated[
        bool, typer.Option("--no-channel", help="Take the log-odds of every pixel instead of an image, --p and a mask.")
    ] = False,
    beside: Annotated[
        bool, typer.Option("--beside", help="Write solver.onnx to the prior's folder; its tensors stay in the weights.")
    ] = False,
    bundle: Annotated[
        str | None,
        typer.Option("--bundle", metavar="FILE", help="Write the prior itself as one .zip file, for `restore import`."),
    ] = None,
    overwrite: options.Overwrite = False,
) -> None:
    """Write a prior and its solver to an ONNX file, for onnxruntime in any language; or a prior to a file to share."""
    from restore import zoo
    from restore.console import say
    from restore.errors import ModelError, UsageError, option
    from restore.files import write_atomically
    from restore.zoo.made import remember

    folder = zoo.find(model)
    if not folder.is_dir():
        raise ModelError("is exported already; name the prior it was made from", folder)
    if (beside or bundle) and (output is not None or float16 or no_channel or (beside and bundle)):
        whole = option("beside" if beside else "bundle")
        raise UsageError(f"{whole} writes the whole prior to a place of its own; leave the other options out")
    # The path may not contain the folder's name: it may be a dot.
    target = folder / zoo.GRAPH if beside else Path(bundle or output or f"{folder.resolve().name}.onnx")
    _check(target, ".zip" if bundle else ".onnx", overwrite, "" if beside else " or another -o")
    if bundle:
        from restore.export.bundle import pack

        content = pack(folder)
    else:
        from restore.export.packing import beside_weights, standalone

        content = beside_weights(folder) if beside else standalone(folder, float16=float16, field=no_channel)
    write_atomically(target, content)
    if beside:
        remember(folder)
    what = "for `restore import`" if bundle else "with its solver"
    say(f"{target}: {folder.resolve().name} {what}, {len(content) / 1e3:,.0f} kB")


def _check(target: Path, kind: str, overwrite: bool, remedy: str) -> None:
    """Raise RestoreError for a file that cannot be written, may not be, or has another ending."""
    from restore.errors import OutputError, UsageError, option
    from restore.images.outputs import is_folder, require_writable

    if is_folder(target):
        raise OutputError("is a folder; name a file", target)
    if target.suffix != kind:
        raise UsageError(f"the output name must end in {kind}; choose another name", target)
    if os.path.lexists(target) and not overwrite:
        raise OutputError(f"exists already; give {option('overwrite')}{remedy}", target)
    require_writable(target.parent)
