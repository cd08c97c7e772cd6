"""`restore models` and `restore info`: list priors, and show what each says about itself. No torch needed."""

from __future__ import annotations

import json as json_module
from pathlib import Path
from typing import Annotated

import typer

from restore.console import say, tell

# A little more than the longest published name.
NAME_WIDTH = 28

MODELS_EXAMPLE = "Example:  restore models --json"
INFO_EXAMPLE = "Example:  restore info tap-mnist"


def models(json: Annotated[bool, typer.Option("--json", help="One JSON object per prior.")] = False) -> None:
    """List the published priors and those trained here."""

    from restore import zoo
    from restore.errors import ModelError, shown

    published = zoo.search.published_folder()
    for folder in zoo.folders():
        try:
            about = zoo.describe(folder)
        except ModelError as fault:
            say(f"restore: {fault}")
            continue
        origin = "published" if folder.parent == published else "yours"
        height, width = about.image_shape
        if json:
            facts = {"name": folder.name, "origin": origin, "width": width, "height": height, "hidden": about.hidden}
            facts |= {"deeper": list(about.deeper), "grey": about.grey}
            facts |= {"data": about.data, "method": about.method, "task": about.task or None, "folder": str(folder)}
            facts |= {"unfinished": about.unfinished or None}
            tell(json_module.dumps(facts))
        else:
            size = "any size" if about.whole else f"{width}x{height}"
            undoes = f", undoes {about.task}" if about.task else ", grey images" if about.grey else ""
            undoes += f", unfinished: {about.unfinished}" if about.unfinished else ""
            units = (about.hidden,) if about.convolutional else about.sizes[1:]
            hidden = "+".join(map(str, units)) or "0"
            tell(
                shown(
                    f"{folder.name:{NAME_WIDTH}} {origin:10} {size:>9} {hidden:>7} hidden  "
                    f"{about.method} on {about.data}{undoes}"
                )
            )


def info(
    model: Annotated[str, typer.Argument(help="Name or folder of a prior.")],
    json: Annotated[bool, typer.Option("--json", help="The header of the weights file as JSON.")] = False,
) -> None:
    """Show the card of a prior."""
    import dataclasses

    from restore import zoo

    folder = zoo.find(model)
    if not folder.is_dir():
        from restore.inference.onnx.engine import OnnxEngine

        tell(json_module.dumps(OnnxEngine.load(folder).facts.to_metadata()))
        return
    about = zoo.describe(folder)
    card = folder / zoo.CARD
    if json:
        tell(json_module.dumps(dataclasses.asdict(about) | {"folder": str(folder)}))
    elif card.exists():
        tell(_text(card).rstrip())
    else:
        tell(f"{about.name}: no card; --json shows the header of its weights")


def _text(card: Path) -> str:
    from restore.errors import ModelError, shown

    try:
        return card.read_text("utf-8", errors="backslashreplace")
    except OSError as fault:
        raise ModelError(f"{shown(card)}: cannot be read ({fault.strerror}); check its permissions") from fault
