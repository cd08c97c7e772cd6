"""`restore models` and `restore info`: list priors, and show what each says about itself. No torch needed."""

from __future__ import annotations

import json as json_module
from typing import Annotated

import typer

from restore.console import say, tell

# A little more than the longest published name.
NAME_WIDTH = 28

EXAMPLE = "Example:  restore models && restore info tap-mnist"


def models(json: Annotated[bool, typer.Option("--json", help="One JSON object per prior.")] = False) -> None:
    """List the published priors and those trained here."""
    from restore import zoo
    from restore.errors import ModelError, shown

    for folder in zoo.folders():
        try:
            about = zoo.describe(folder)
        except ModelError as fault:
            say(f"restore: {fault}")
            continue
        origin = "published" if zoo.search.is_published(folder) else "yours"
        height, width = about.image_shape
        if json:
            facts = {"name": folder.name, "origin": origin, "width": width, "height": height, "hidden": about.hidden}
            facts |= {"deeper": list(about.deeper), "grey": about.grey}
            facts |= {"data": about.data, "method": about.method, "task": about.task or None, "folder": str(folder)}
            tell(json_module.dumps(facts | {"unfinished": about.unfinished or None}))
            continue
        size = "any size" if about.whole else f"{width}x{height}"
        undoes = f", undoes {about.task}" if about.task else ", grey images" if about.grey else ""
        undoes += f", unfinished: {about.unfinished}" if about.unfinished else ""
        hidden = "+".join(map(str, about.hidden_counts))
        facts_in_words = f"{hidden:>7} hidden  {about.method} on {about.data}{undoes}"
        tell(shown(f"{folder.name:{NAME_WIDTH}} {origin:10} {size:>9} {facts_in_words}"))


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
    if json:
        tell(json_module.dumps(dataclasses.asdict(about) | {"folder": str(folder)}))
    else:
        tell(zoo.card_of(folder).rstrip() or f"{about.name}: no card; --json shows the header of its weights")
