"""`restore models` and `restore info`: list priors, and show what each says about itself. No torch needed."""

from __future__ import annotations

import json as json_module
from typing import Annotated

import typer

from restore.console import tell

EXAMPLE = "Example:  restore models && restore info tap-mnist"


def models(json: Annotated[bool, typer.Option("--json", help="One JSON object per prior.")] = False) -> None:
    """List the published priors and those trained here."""
    from restore import zoo
    from restore.errors import shown

    folders = list(zoo.folders())
    width_of_names = max((len(folder.name) for folder in folders), default=0)
    for folder in folders:
        header = zoo.readable(folder)
        if header is None:
            continue
        origin = "published" if zoo.search.is_published(folder) else "yours"
        height, width = header.image_shape
        if json:
            facts = {"name": folder.name, "origin": origin, "width": width, "height": height, "hidden": header.hidden}
            facts |= {"deeper": list(header.deeper), "grey": header.grey}
            facts |= {"data": header.data, "method": header.method, "task": header.task or None, "folder": str(folder)}
            tell(json_module.dumps(facts | {"unfinished": header.unfinished or None}))
            continue
        size = "any size" if header.whole else f"{width}x{height}"
        undoes = f", undoes {header.task}" if header.task else ", grey images" if header.grey else ""
        undoes += f", unfinished: {header.unfinished}" if header.unfinished else ""
        hidden = "+".join(map(str, header.hidden_counts))
        facts_in_words = f"{hidden:>7} hidden  {header.method} on {header.data}{undoes}"
        tell(shown(f"{folder.name:{width_of_names}} {origin:10} {size:>9} {facts_in_words}"))


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
    header = zoo.describe(folder)
    if json:
        tell(json_module.dumps(dataclasses.asdict(header) | {"folder": str(folder)}))
    else:
        tell(zoo.card_of(folder).rstrip() or f"{header.name}: no card; --json shows the header of its weights")
