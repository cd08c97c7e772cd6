"""The files of the page: for our server, and for any server of static files."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from restore import zoo
from restore.errors import ModelError, OutputError, reason
from restore.files import write_atomically
from restore.images.tones import ENOUGH, FAINTEST, INK_LEVEL, INK_SHARE, PAPER_LEVEL, PAPER_SHARE, SCALE
from restore.inference.decision.notes import BLIND
from restore.inference.onnx.contract import POLARITIES, read_intact
from restore.inference.painting import UNCHANGED
from restore.inference.scans.sample import LIGHT_INK
from restore.inference.scans.sheet import CELL, FEW, MISLEADING, REACH, ROUNDED
from restore.inference.tiles.blocks import PAGE_BEYOND, Cutting, coarsest, into_blocks, into_parts
from restore.registry import MARKS
from restore.status import Status
from restore.zoo.description import Description

PAGE = Path(__file__).parent / "site"

# Pictures of the page that show what a prior does: by the data it was trained on, else by the polarity of its images.
EXAMPLES = {"text": "page.png", "scans": "page-scan.png"}
DIGIT_OR_SILHOUETTE = dict(zip(POLARITIES, ("digit.png", "silhouette.png"), strict=True))


def usable(priors: Iterable[Path]) -> dict[Path, dict[str, Any]]:
    """Facts on the priors of black and white pictures, and of ink, that have a graph; a damaged one causes a warning.

    Raises:
        ModelError: if none is left.
    """
    by_folder = {}
    for folder in priors:
        try:
            header = zoo.describe(folder)
            if (folder / zoo.GRAPH).is_file() and not header.grey and folder.name != zoo.PARTS_PRIOR:
                by_folder[folder] = facts(folder)
        except ModelError as fault:
            zoo.leave_out(str(fault))
    if not by_folder:
        raise ModelError(f"no prior has a {zoo.GRAPH}; get the folder models/ again")
    return by_folder


def page(priors: Iterable[Mapping[str, Any]], *, served: bool) -> dict[str, bytes]:
    """The files of the page by name; `models.json` lists the priors and the kind of server."""
    files = {path.name: path.read_bytes() for path in sorted(PAGE.iterdir()) if path.is_file()}
    listing: dict[str, Any] = {"served": served, "preferred": zoo.preferred(), "priors": list(priors)}
    if served:
        listing["marks"] = {name: words.many for name, words in MARKS.items()}
    return files | {"models.json": json.dumps(listing, indent=1).encode()}


def facts(folder: Path) -> dict[str, Any]:
    """The header of a prior, and further facts for the page; raises ModelError if it is damaged."""
    read_intact(folder / zoo.GRAPH)
    header = zoo.describe(folder)
    ground = polarity(folder)
    height, width = header.image_shape
    return asdict(header) | {
        "name": folder.name,
        "width": width,
        "height": height,
        "whole": header.whole,
        "cutting": [cutting._asdict() for cutting in _cuttings(header)],
        "page": reading_of_pages(header) if header.kind.pages else None,
        "polarity": ground,
        "example": EXAMPLES.get(header.data, DIGIT_OR_SILHOUETTE[ground]),
        "triesAgain": header.tries_again,
        "outcomes": {status.name.lower(): outcome(status, header) for status in Status},
        "blind": BLIND,
        "unchanged": UNCHANGED,
        "bytes": sum((folder / name).stat().st_size for name in (zoo.GRAPH, zoo.WEIGHTS)),
    }


def _cuttings(header: Description) -> list[Cutting]:
    """How larger images are cut into blocks, and blocks into parts."""
    return [into_blocks(header), into_parts(header)] if header.whole else []


def reading_of_pages(header: Description) -> dict[str, Any]:
    """What reading a page is done with, beside the graph: see `restore.inference.scans`."""
    sizes = {"beyond": PAGE_BEYOND, "step": coarsest(header), "reach": REACH, "cell": CELL, "enough": ENOUGH}
    stretch = {"side": SCALE, "ink": INK_LEVEL, "paper": PAPER_LEVEL, "faintest": FAINTEST}
    stretch |= {"inkShare": INK_SHARE, "paperShare": PAPER_SHARE}
    levels = {"few": FEW, "least": ROUNDED, "outliers": MISLEADING, "lightInk": LIGHT_INK}
    return sizes | levels | {"stretch": stretch}


def polarity(folder: Path) -> str:
    """The polarity of a prior's training images, mostly light or mostly dark; raises ModelError if damaged."""
    from safetensors import SafetensorError, safe_open

    path = folder / zoo.WEIGHTS
    try:
        with safe_open(path, framework="numpy") as stored:
            return POLARITIES[zoo.light_ground(stored.get_tensor("pixel_means").astype(float))]
    except (OSError, SafetensorError) as fault:
        raise ModelError(f"cannot be read ({reason(fault)}); get the file again", path) from fault


def write(priors: Iterable[Path], runtime: Mapping[str, Path], folder: Path, *, overwrite: bool = False) -> None:
    """Write the page with its priors to a folder, for any web server that serves static files.

    `runtime` holds the files of onnxruntime-web by name. Raises OutputError if the folder is not empty and not to be
    overwritten, if a link in it would lead out of it, or if it cannot be written to.
    """
    known = usable(priors)
    files: dict[str, bytes | Path] = {**page(known.values(), served=False)}
    files |= {f"ort/{name}": path for name, path in runtime.items()}
    files |= {f"models/{folder.name}/{name}": folder / name for folder in known for name in (zoo.GRAPH, zoo.WEIGHTS)}
    try:
        if not overwrite and folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise OutputError("exists already; give --overwrite or another folder", folder)
        for inside in {folder / parent for address in files for parent in Path(address).parents if parent.name}:
            if inside.is_symlink():
                raise OutputError("is a link, which is not followed; remove it or choose another", inside)
        for address, source in files.items():
            target = folder / address
            target.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(target, source if isinstance(source, bytes) else source.read_bytes())
    except OutputError:
        raise
    except OSError as fault:
        raise OutputError(f"cannot be written ({fault.strerror}); choose another place", folder) from fault


def outcome(status: Status, header: Description) -> str:
    """How the solver of a prior ended, in a sentence."""
    if header.stops_as_learnt and status is Status.MAX_ITER:
        count = header.inference.max_iter
        learnt = "one iteration" if count == 1 else f"{count} iterations"
        return f"stopped after the {learnt} that {header.name} restores with"
    return status.sentence
