"""The option that describes damage to draw; what it may be, the channels say."""

from __future__ import annotations

import typer

from restore.channels.registry import SHOWN

TASK = typer.Option(help=f"{SHOWN}.")
