"""Share a prior as one file, a bundle: a zip archive of the files of its folder, its header and their checksums."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import re
import zipfile
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from restore.data.archives import ZIP, members, readable
from restore.errors import InputError, ModelError, OutputError, UsageError, option, reason, shown
from restore.files import check_regular, write_atomically
from restore.inference.onnx.engine import OnnxEngine
from restore.zoo import CARD, GRAPH, WEIGHTS, describe, limits
from restore.zoo.description import Description

# The file of a bundle that lists the others; the newest format of bundles.
MANIFEST, FORMAT = "manifest.json", 1
# The others, in the order of writing: a graph is refused next to weights that it was not made from.
FILES = (WEIGHTS, GRAPH, CARD)

HUB = "hf:"
_AGAIN = "get the file again"


def pack(folder: Path) -> bytes:
    """The bundle of a prior's folder; the same prior gives the same bytes.

    Raises:
        ModelError: if the prior is damaged, or its graph was made from other weights.
    """
    files, header = read(folder)
    manifest = {"format": FORMAT, "header": header.to_header(), "sha256": _digests(files)}
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, content in {MANIFEST: json.dumps(manifest, indent=1, sort_keys=True).encode(), **files}.items():
            archive.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)
    return packed.getvalue()


def fetched(source: str, folder: Path, sha256: str = "") -> Path:
    """The file or folder that `source` names: a path, a URL, or `hf:OWNER/NAME[@REVISION]`, downloaded into `folder`.

    Raises:
        UsageError: if `sha256` is no checksum, or is given for a folder, which has none.
        InputError: if it cannot be downloaded, is too large, or has another checksum.
    """
    if sha256 and not re.fullmatch("[0-9a-fA-F]{64}", sha256):
        raise UsageError("is no SHA-256, which has 64 digits from 0 to f", option("sha256"))
    path = Path(source)
    if sha256 and (source.startswith(HUB) or path.is_dir()):
        raise UsageError(f"only a file has a checksum; leave it out for {shown(source)}", option("sha256"))
    if source.startswith(HUB):
        return _from_hub(source, folder)
    on_web = source.startswith(("http://", "https://"))
    if not on_web and not os.path.exists(path):  # noqa: PTH110 - False where too long
        raise InputError("is neither a file nor an address that begins with http://, https:// or hf:; check it", source)
    return _downloaded(source, folder, sha256.lower()) if on_web else _with_checksum(path, sha256.lower())


def _with_checksum(path: Path, sha256: str) -> Path:
    if sha256:
        with readable(path), path.open("rb") as stream:
            if hashlib.file_digest(stream, "sha256").hexdigest() != sha256:
                raise InputError(f"has another checksum than {option('sha256')} says; {_AGAIN}", path)
    return path


def _downloaded(source: str, folder: Path, sha256: str) -> Path:
    import pooch

    pooch.get_logger().setLevel("WARNING")
    known = f"sha256:{sha256}" if sha256 else None
    try:
        return Path(pooch.retrieve(source, known, "downloaded", folder, downloader=_download))
    except OSError as fault:  # of requests, too
        raise InputError(f"cannot be downloaded ({reason(fault, source)}); check the address", source) from fault
    except ValueError as fault:
        raise InputError(f"is not the file that was asked for ({reason(fault, source)}); {_AGAIN}", source) from fault


def _download(url: str, file: str, pooch: Any) -> None:
    """Write what a URL gives to a file, up to the most bytes that a bundle may have."""
    import requests

    with requests.get(url, stream=True, timeout=60) as answer, Path(file).open("wb") as stream:
        answer.raise_for_status()
        for part in answer.iter_content(2**20):
            stream.write(part)
            if stream.tell() > limits.PACKED:
                raise ValueError(f"more than {limits.PACKED} bytes")


def _from_hub(source: str, folder: Path) -> Path:
    from huggingface_hub import snapshot_download

    repository, _, revision = source.removeprefix(HUB).partition("@")
    try:
        snapshot_download(repository, revision=revision or None, local_dir=folder, allow_patterns=list(FILES))
    except Exception as fault:  # its exceptions have no base of their own
        raise InputError(
            f"cannot be downloaded from the Hugging Face hub ({reason(fault)}); check the name", source
        ) from fault
    return folder


def is_bundle(path: Path) -> bool:
    """True for a bundle, the folder of a prior, and a damaged archive, which `read` refuses."""
    if path.is_dir():
        return True
    with contextlib.suppress(OSError), path.open("rb") as stream:
        if stream.read(4) in ZIP:
            with contextlib.suppress(zipfile.BadZipFile), zipfile.ZipFile(stream) as archive:
                return MANIFEST in archive.namelist()
            return True
    return False


def read(path: Path) -> tuple[dict[str, bytes], Description]:
    """The files of a prior by name, from a bundle or a folder, and its header.

    Raises:
        InputError: if the archive is damaged, leads out of itself, or unpacks to too much.
        ModelError: if it holds other files than a bundle, a checksum is wrong, or the header is another.
    """
    if path.is_dir():
        files = _of_folder(path)
        return files, _checked(files, path)
    files = {}
    with readable(path):
        for name, read in members(path, file_bytes=limits.PACKED, all_bytes=limits.PACKED):
            if name not in (MANIFEST, *FILES):
                raise ModelError(f"{shown(name)} is no file of a bundle; {_AGAIN}", path)
            files[name] = read()
    try:
        manifest = json.loads(files.pop(MANIFEST))
        version, header, digests = (manifest[name] for name in ("format", "header", "sha256"))
    except (ValueError, TypeError, KeyError, RecursionError) as fault:
        raise ModelError(f"its {MANIFEST} is damaged ({reason(fault)}); {_AGAIN}", path) from fault
    if type(version) is not int or version != FORMAT:
        raise ModelError(f"a bundle of format {version!r:.20}, this version reads {FORMAT}; update the package", path)
    if digests != _digests(files):
        raise ModelError(f"its files are not those whose checksums it lists; {_AGAIN}", path)
    description = _checked(files, path)
    if header != description.to_header():
        raise ModelError(f"its header is not that of its weights; {_AGAIN}", path)
    return files, description


def _of_folder(folder: Path) -> dict[str, bytes]:
    files: dict[str, bytes] = {}
    for name in FILES:
        try:
            check_regular(folder / name, limits.PACKED)
            files[name] = (folder / name).read_bytes()
        except FileNotFoundError:
            continue
        except (OSError, ValueError) as fault:
            raise ModelError(f"cannot be read ({reason(fault)})", folder / name) from fault
    return files


def _digests(files: Mapping[str, bytes]) -> dict[str, str]:
    return {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}


def _checked(files: Mapping[str, bytes], where: Path) -> Description:
    """Read the header of a prior from its files; raises ModelError, which names `where`, if they are no prior."""
    import numpy as np
    from safetensors.numpy import load

    if len(files.get(CARD, b"")) > limits.CARD_BYTES:
        raise ModelError(f"its {CARD} has more than {limits.CARD_BYTES} bytes; {_AGAIN}", where)
    with TemporaryDirectory() as folder:
        for name, content in files.items():
            (Path(folder) / name).write_bytes(content)
        try:
            header = describe(Path(folder))
            if GRAPH in files:
                OnnxEngine.load(Path(folder))
        except ModelError as fault:
            raise ModelError(str(fault).replace(folder, shown(where))) from fault
    if not all(np.isfinite(value.astype(np.float32)).all() for value in load(files[WEIGHTS]).values()):
        raise ModelError(f"its weights are NaN or infinite; {_AGAIN}", where)
    return header


def keep(files: Mapping[str, bytes], folder: Path) -> None:
    """Write a prior's files to its folder, which is made if missing; raises OutputError if that is impossible."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as fault:
        raise OutputError(f"cannot be made ({fault.strerror}); choose another name", folder) from fault
    for name in FILES:
        if name in files:
            write_atomically(folder / name, files[name])
        elif os.path.lexists(folder / name):
            (folder / name).unlink()
