"""The files of the site, by their addresses. No torch needed, and nothing is copied to serve them."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from restore import zoo
from restore.errors import ModelError, OutputError, reason, shown
from restore.files import write_atomically
from restore.inference.onnx.contract import POLARITIES
from restore.inference.onnx.inspection import read_checked
from restore.inference.restore import BLIND, INVERTED
from restore.inference.restored import outcome
from restore.marginals import Status

# Addresses below the site's root, such as "models/tap-mnist/solver.onnx", and the file or its content for each.
Site = Mapping[str, Path | bytes]

_PAGE = Path(__file__).parent / "site"

# Pictures of the page that show what a prior does: by the data it was trained on, else by the polarity of its images.
_EXAMPLES = {"text": "page.png"}
_DIGIT_OR_SILHOUETTE = dict(zip(POLARITIES, ("digit.png", "silhouette.png"), strict=True))


def collect(runtime: Mapping[str, Path], priors: Iterable[Path]) -> Site:
    """Make the site: the page, the runtime, the priors that have a graph, and `models.json` that lists them.

    Args:
        runtime: files of onnxruntime-web by name.
        priors: folders of priors. Priors without a graph, and those of grey images, for which the page has no tools,
            are left out; damaged ones with a warning.

    Raises:
        ModelError: if no prior is left.
    """
    usable = dict(_usable(priors))
    if not usable:
        raise ModelError(f"no prior has a {zoo.GRAPH}; get the folder models/ again")
    # Files of the package may be links into a package store.
    site: dict[str, Path | bytes] = {path.name: path.resolve() for path in sorted(_PAGE.iterdir()) if path.is_file()}
    site |= {f"ort/{name}": path for name, path in runtime.items()}
    for folder in usable:
        ours = folder.parent == zoo.search.published_folder()
        files = {name: folder / name for name in (zoo.GRAPH, zoo.WEIGHTS)}
        site |= {f"models/{folder.name}/{name}": path.resolve() if ours else path for name, path in files.items()}
    listing = {"preferred": zoo.PREFERRED_BINARY, "priors": list(usable.values())}
    return site | {"models.json": json.dumps(listing, indent=1).encode()}


def _usable(priors: Iterable[Path]) -> Iterator[tuple[Path, dict[str, Any]]]:
    """The priors that have a graph, with their facts; damaged ones are left out with a warning."""
    for folder in priors:
        if (folder / zoo.GRAPH).is_file():
            try:
                if folder.parent != zoo.search.published_folder():
                    _refuse_links(folder)
                if not zoo.describe(folder).grey:
                    read_checked(folder / zoo.GRAPH)
                    yield folder, facts(folder)
            except ModelError as fault:
                warnings.warn(str(fault), stacklevel=2)


def _refuse_links(folder: Path) -> None:
    for name in (zoo.GRAPH, zoo.WEIGHTS):
        if (folder / name).is_symlink():
            raise ModelError(f"{shown(folder / name)}: is a link, which is not followed; put the file itself there")


def content(source: Path | bytes) -> bytes:
    """The content of an address; raises OSError for a link, which is not followed."""
    if isinstance(source, bytes):
        return source
    with os.fdopen(os.open(source, os.O_RDONLY | os.O_NOFOLLOW), "rb") as stream:
        return stream.read()


def facts(folder: Path) -> dict[str, Any]:
    """What the page must know about a prior; raises ModelError if its description is damaged."""
    about = zoo.describe(folder)
    height, width = about.image_shape
    ground = polarity(folder)
    return {
        "name": folder.name,
        "width": width,
        "height": height,
        "hidden": about.hidden,
        "threshold": about.threshold,
        "conditional": about.conditional,
        "task": about.task,
        "polarity": ground,
        "example": _EXAMPLES.get(about.data, _DIGIT_OR_SILHOUETTE[ground]),
        "method": about.method,
        "data": about.data,
        "triesAgain": about.tries_again,
        "outcomes": {status.name.lower(): outcome(status, about) for status in Status},
        "inverted": INVERTED,
        "blind": BLIND,
        "inference": {key: asdict(about.inference)[key] for key in ("max_iter", "tol", "damping")},
        "tiling": asdict(about.tiling),
        "bytes": sum((folder / name).stat().st_size for name in (zoo.GRAPH, zoo.WEIGHTS)),
    }


def polarity(folder: Path) -> str:
    """Whether a prior's training images were mostly light or mostly dark, judged as in `restore denoise`.

    Raises:
        ModelError: if the weights cannot be read, or lack the mean of each pixel.
    """
    from safetensors import SafetensorError, safe_open

    path = folder / zoo.WEIGHTS
    try:
        with safe_open(path, framework="numpy") as stored:
            means = stored.get_tensor("pixel_means").astype(float)
    except (OSError, SafetensorError) as fault:
        raise ModelError(f"{shown(path)}: cannot be read ({reason(fault)}); get the file again") from fault
    if not ((means > 0) & (means < 1)).all():
        raise ModelError(f"{shown(path)}: pixel_means holds values outside (0, 1); get the file again")
    return POLARITIES[zoo.light_ground(means)]


def write(site: Site, folder: Path, *, overwrite: bool = False) -> None:
    """Write the site to a folder, for any web server that serves static files.

    Raises:
        OutputError: if the folder is not empty and `overwrite` is not given, a link in it would lead out of it, or
            it cannot be written to.
    """
    try:
        if not overwrite and folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise OutputError(f"{shown(folder)}: exists already; give --overwrite or another folder")
        for inside in {folder / parent for address in site for parent in Path(address).parents if parent.name}:
            if inside.is_symlink():
                raise OutputError(f"{shown(inside)}: is a link, which is not followed; remove it or choose another")
        for address, source in site.items():
            target = folder / address
            target.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(target, content(source))
    except OutputError:
        raise
    except OSError as fault:
        raise OutputError(f"{shown(folder)}: cannot be written ({fault.strerror}); choose another place") from fault
