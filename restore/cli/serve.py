"""`restore serve`: restore what is posted. No torch needed."""

from __future__ import annotations

from typing import Annotated

import typer

from restore.cli import options as given
from restore.console import say, tell
from restore.inference.options import Options

EXAMPLE = "Example:  restore serve --host 0.0.0.0"

# The most pixels of a picture, unless more are granted: each request that waits may take eight bytes for each.
MOST_PIXELS = 2000 * 2000
QUEUE = 16
# Seconds that a request may take once it runs: some ten times what such a picture takes.
TIMEOUT = 120


def serve(
    host: Annotated[str, typer.Option(help="Address to listen on; 0.0.0.0 for every machine.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port; 0 picks a free one.", min=0, max=65535)] = 8000,
    workers: Annotated[
        int | None, typer.Option(help="Images restored at a time. [one for each processor]", min=1, max=1024)
    ] = None,
    queue: Annotated[int, typer.Option(help="Requests that may wait; more get 503.", min=0, max=2**20)] = QUEUE,
    timeout: Annotated[
        int, typer.Option(help="Seconds an image may take; its process is then ended.", min=1)
    ] = TIMEOUT,
    max_pixels: given.MaxPixels = MOST_PIXELS,
    device: given.Device = "auto",
    engine: given.Engine = "auto",
    max_memory: given.MaxMemory = None,
) -> None:
    """Restore images that are posted to /denoise or /complete, until Ctrl-C (exit code 0); /docs says how."""
    options = Options(engine=engine, device=device, max_memory=max_memory, max_pixels=max_pixels)
    run(host, port, options, workers, queue, timeout)


def run(
    host: str,
    port: int,
    options: Options,
    workers: int | None = None,
    queue: int = QUEUE,
    seconds: int = TIMEOUT,
    browser: bool = False,
) -> None:
    """Serve until a signal comes and all that runs is done; with `browser` show the page."""
    import contextlib
    import threading
    import webbrowser

    from restore import zoo
    from restore.app import assembly
    from restore.app.server import Server
    from restore.app.workers import Workers
    from restore.errors import in_command
    from restore.inference import threads

    site = assembly.page(assembly.usable(zoo.folders()).values(), served=True)
    server = Server(site, Workers(options, workers or threads.processors(), queue, seconds), host, port)
    tell(server.url, flush=True)
    say("restore: Ctrl-C ends it")
    if browser:
        # One that runs in the terminal would block the server it asks.
        threading.Thread(target=webbrowser.open, args=(server.url,), daemon=True).start()
    with contextlib.suppress(KeyboardInterrupt), in_command(False):
        server.run()
