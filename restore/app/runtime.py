"""Install onnxruntime-web, which runs the exported priors in a browser: one release, in the user data folder."""

from __future__ import annotations

import hashlib
import io
import tarfile
import tempfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from restore.data.sets.download import RemoteFile, fetch, read_intact
from restore.errors import InputError, ModelError, OutputError, shown
from restore.files import write_atomically


@dataclass(frozen=True)
class Member:
    """A file to take from the release.

    Attributes:
        path: its path in the archive.
        size: in bytes; no more is ever read.
        sha256: of its content, in hexadecimal.
    """

    path: str
    size: int
    sha256: str

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]

    def matches(self, content: bytes) -> bool:
        return hashlib.sha256(content).hexdigest() == self.sha256


@dataclass(frozen=True)
class Release:
    """A published archive, and the files to take from it."""

    archive: RemoteFile
    members: tuple[Member, ...]


# The smallest bundle that runs on WebAssembly: the loader with its glue code, the WebAssembly, and package.json, which
# states the licence (MIT; the package has no other licence file). npm names the checksum of the archive as
# sha512-q0y+JrrtukXSzsBWEMccVfqX25LRmosXHF+CaRJmg8pZClzcV7svNc4rKY3jL02Vb7QmRMDs1SigqR4CXAfKYQ==
ONNXRUNTIME_WEB = Release(
    RemoteFile(
        "onnxruntime-web-1.30.0.tgz",
        "d2228df7e4616bc3348bf504ee888f3bec43789a273f0a63f3e68d203ce3bf71",
        ("https://registry.npmjs.org/onnxruntime-web/-/",),
    ),
    (
        Member(
            "package/dist/ort.wasm.bundle.min.mjs",
            73_054,
            "11e64bd8ffe11bd1a2a2f0d6275fdfbbba7262f0b76b99b53d228a8a22ef3d90",
        ),
        Member(
            "package/dist/ort-wasm-simd-threaded.wasm",
            14_239_897,
            "3398c10d07d229bd91b364548e130e0e51a8e5704b88c7c083ebbeb78842dee2",
        ),
        Member(
            "package/package.json",
            4_593,
            "16f69f755509990539aeb1c8445884960e91adcacab2e8dca8e44ee43601df5c",
        ),
    ),
)

_INSTALL = "`restore app --install` downloads it"
_ELSEWHERE = (
    "where there is no network, `npm pack onnxruntime-web@1.30.0` elsewhere and `restore app --runtime FILE.tgz`"
)


def user_folder() -> Path:
    """The folder of the release's files."""
    import platformdirs

    return Path(platformdirs.user_data_dir("restore")) / "onnxruntime-web-1.30.0"


def install(folder: Path, archive: Path | None = None, release: Release = ONNXRUNTIME_WEB) -> None:
    """Install the release into `folder`, from a copy of its archive or from the network.

    Nothing is written before the archive and each of its files have the right checksum.

    Raises:
        ModelError: if the archive cannot be had, or differs from what was published.
        OutputError: if the folder cannot be written to.
    """
    try:
        with tempfile.TemporaryDirectory() as place:
            path = fetch(release.archive, Path(place)) if archive is None else archive
            content = read_intact(path, release.archive)
    except InputError as fault:
        raise ModelError(f"{fault}; {_ELSEWHERE}" if archive is None else str(fault)) from fault
    files = _unpacked(content, release)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as fault:
        raise OutputError(f"{shown(folder)}: cannot be made ({fault.strerror}); free its name or some space") from fault
    for name, data in files.items():
        write_atomically(folder / name, data)


def installed(folder: Path, release: Release = ONNXRUNTIME_WEB) -> Mapping[str, Path]:
    """The files of the installed release by name.

    Raises:
        ModelError: if one is missing or damaged.
    """
    paths = {member.name: folder / member.name for member in release.members}
    for member in release.members:
        path = paths[member.name]
        try:
            intact = path.stat().st_size == member.size and member.matches(path.read_bytes())
        except FileNotFoundError as fault:
            raise ModelError(f"onnxruntime-web is not installed; {_INSTALL}") from fault
        except OSError as fault:
            raise ModelError(f"{shown(path)}: cannot be read ({fault.strerror}); {_INSTALL} again") from fault
        if not intact:
            raise ModelError(f"{shown(path)}: is damaged; {_INSTALL} again")
    return paths


def _unpacked(content: bytes, release: Release) -> dict[str, bytes]:
    """The wanted files of an archive by name; others are not read, and no path in the archive is followed."""
    files = {}
    try:
        with tarfile.open(fileobj=io.BytesIO(content), mode="r:gz") as archive:
            for member in release.members:
                entry = archive.getmember(member.path)
                stream = archive.extractfile(entry) if entry.isfile() else None
                data = stream.read(member.size + 1) if stream else b""
                if not member.matches(data):
                    raise ModelError(f"{release.archive.name}: holds another {member.path} than was published")
                files[member.name] = data
    except (tarfile.TarError, KeyError, OSError, EOFError, zlib.error) as fault:
        raise ModelError(f"{release.archive.name}: cannot be unpacked ({fault}); get it again") from fault
    return files
