"""Install onnxruntime-web, which runs priors in a browser: one release, in the user data folder."""

from __future__ import annotations

import io
import tarfile
import tempfile
from collections.abc import Mapping
from pathlib import Path

from restore.data.sets.download import RemoteFile, fetch, read_intact
from restore.errors import InputError, ModelError
from restore.files import make_folder, write_atomically

RELEASE = RemoteFile(
    "onnxruntime-web-1.30.0.tgz",
    "d2228df7e4616bc3348bf504ee888f3bec43789a273f0a63f3e68d203ce3bf71",
    ("https://registry.npmjs.org/onnxruntime-web/-/",),
)
# The smallest bundle that runs on WebAssembly: the loader with its glue code, the WebAssembly, and package.json, which
# states the licence (MIT; the package has no other licence file).
MEMBERS = (
    "package/dist/ort.wasm.bundle.min.mjs",
    "package/dist/ort-wasm-simd-threaded.wasm",
    "package/package.json",
)

_ELSEWHERE = (
    "where there is no network, `npm pack onnxruntime-web@1.30.0` elsewhere and `restore app --runtime FILE.tgz`"
)


def user_folder() -> Path:
    """The folder of the release's files."""
    import platformdirs

    return Path(platformdirs.user_data_dir("restore")) / "onnxruntime-web-1.30.0"


def install(folder: Path, archive: Path | None = None) -> None:
    """Install the release into `folder`, from a copy of its archive or from the network.

    Nothing is written before the archive has the right checksum.

    Raises:
        ModelError: if the archive cannot be had, or differs from what was published.
        OutputError: if the folder cannot be written to.
    """
    try:
        with tempfile.TemporaryDirectory() as temporary:
            path = fetch(RELEASE, Path(temporary)) if archive is None else archive
            content = read_intact(path, RELEASE)
    except InputError as fault:
        raise ModelError(f"{fault}; {_ELSEWHERE}" if archive is None else str(fault)) from fault
    make_folder(folder, "free its name or some space")
    with tarfile.open(fileobj=io.BytesIO(content)) as release:
        for member in MEMBERS:
            stream = release.extractfile(member)
            assert stream is not None
            write_atomically(folder / Path(member).name, stream.read())


def installed(folder: Path) -> Mapping[str, Path]:
    """The files of the installed release by name; raises ModelError if one is missing."""
    paths = {Path(member).name: folder / Path(member).name for member in MEMBERS}
    if not all(path.is_file() for path in paths.values()):
        raise ModelError("onnxruntime-web is not installed; `restore app --install` downloads it")
    return paths
