"""`restore app`: the local page. No torch needed; to write it, nothing but the package itself."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from restore.console import tell

EXAMPLE = "Example:  restore app"


def app(
    port: Annotated[int, typer.Option(help="Where to serve; 0 picks a free port.", min=0, max=65535)] = 8000,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Do not open the page.")] = False,
    install: Annotated[
        bool,
        typer.Option("--install", help="Download onnxruntime-web (33 MB, 14 MB installed), for --output, and exit."),
    ] = False,
    runtime: Annotated[
        Path | None, typer.Option(help="Install from this file, made by `npm pack onnxruntime-web@1.30.0`, and exit.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write the site to this folder, for a web server, and exit.")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Write into a folder that is not empty.")] = False,
) -> None:
    """Restore images on a page in the browser, served to this machine until Ctrl-C (exit code 0); works offline."""
    from restore import zoo
    from restore.app import assembly
    from restore.app import runtime as onnxruntime_web

    folder = onnxruntime_web.user_folder()
    if install or runtime is not None:
        onnxruntime_web.install(folder, runtime)
        tell(str(folder))
        return
    if output is not None:
        assembly.write(zoo.folders(), onnxruntime_web.installed(folder), output, overwrite=overwrite)
        tell(str(output / "index.html"))
        return

    from restore.cli import serve

    serve.run("127.0.0.1", port, serve.Options(max_pixels=serve.MOST_PIXELS), browser=not no_browser)
