"""`restore models` and `restore info`: list priors, and show what each says about itself. No torch needed."""

from __future__ import annotations

import json as json_module
from typing import TYPE_CHECKING, Annotated, Any

import typer

from restore.cli.options import Model
from restore.console import tell
from restore.sizes import size_text

if TYPE_CHECKING:
    from restore.zoo.description import Description

EXAMPLE = "Example:  restore models && restore info tap-mnist"

# What images of a data set show.
SHOWS = {
    "mnist": "digits",
    "caltech101-silhouettes": "silhouettes",
    "cbcl": "faces",
    "text": "printed text",
    "scans": "scanned pages",
    "parts": "what on a page is no ink on paper",
    "drawings": "masks, codes, plans, icons, drawings",
    "photographs": "photographs",
}

# What the word means, before the list.
PRIOR = "A prior is a model of pictures of one kind, learnt from examples: it says which pictures are likely."

# The groups of the list, in this order.
TRIED_HEADING = "Tried if you name none, for black and white pictures:"
GREY = "Tried if you name none, with --sigma:"
OF_PAGES = "Reads grey pages if you name none:"
YOURS = "Yours, for --model:"
OTHERS = "Others, for --model; most repeat results of papers:"


def models(json: Annotated[bool, typer.Option("--json", help="One JSON object per prior.")] = False) -> None:
    """List the published priors and those trained here, with what each is for."""
    from restore import zoo
    from restore.errors import shown

    priors = [(folder, header) for folder in zoo.folders() if (header := zoo.readable(folder))]
    groups: dict[str, list[str]] = {TRIED_HEADING: [], OF_PAGES: [], GREY: [], YOURS: [], OTHERS: []}
    width_of_names = max((len(folder.name) for folder, _ in priors), default=0)
    for folder, header in sorted(priors, key=lambda prior: prior[1].auto):
        published = zoo.search.is_published(folder)
        if json:
            height, width = header.image_shape
            facts: dict[str, Any] = {"name": folder.name, "origin": "published" if published else "yours"}
            facts |= {"width": width, "height": height, "hidden": header.hidden, "deeper": list(header.deeper)}
            facts |= {"grey": header.grey, "data": header.data, "method": header.method, "task": header.task or None}
            facts |= {"auto": header.auto, "folder": str(folder), "unfinished": header.unfinished or None}
            tell(json_module.dumps(facts))
            continue
        chosen = header.auto and not header.task
        kind = OF_PAGES if header.kind.pages else GREY if header.grey else TRIED_HEADING
        group = kind if chosen else OTHERS if published else YOURS
        groups[group].append(shown(f"  {folder.name:{width_of_names}}  {_purpose(header)}"))
    if any(groups.values()):
        tell(PRIOR)
    for title, lines in groups.items():
        if lines:
            tell("\n".join([title, *lines]))


def _purpose(header: Description) -> str:
    """Write what a prior is for, and what it is."""
    size = "any size" if header.anywhere else size_text(header.image_shape)
    damage = f" after {header.task}" if header.task else " in grey" if header.grey and header.data == "mnist" else ""
    hidden = "+".join(map(str, header.hidden_counts))
    unfinished = f", unfinished: {header.unfinished}" if header.unfinished else ""
    shows = SHOWS.get(header.data, f"images of {header.data}")
    return f"{size:>8}  {shows}{damage} ({hidden} hidden units, {header.method}{unfinished})"


def info(
    model: Model,
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
