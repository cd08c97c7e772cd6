"""The manifest of a folder of outputs: how each was made, so that a batch that was stopped can continue.

The outputs of each image have one line of JSON, on disk *before* they are. It names the files they are made from, the
prior with the checksum of its weights, and the checksums of what will be written. So whenever a run dies, an existing
output is recognised and not made again, and a line without its output is work to do. A line with `settings` gives the
settings of all lines below it. A line with `error` says why an image failed; the next run tries that image again.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from restore.errors import ModelError, OutputError, UsageError, shown
from restore.images.outputs import Standing
from restore.zoo import WEIGHTS, find

NAME = ".restore-manifest.jsonl"

# A file as it was read: its size, and the time of its last change in nanoseconds.
Stamp = tuple[int, int]


def stamp(path: Path) -> Stamp:
    """A file as it is now; (-1, 0) if its state cannot be read."""
    try:
        status = path.stat()
    except (OSError, ValueError):
        return -1, 0
    return status.st_size, status.st_mtime_ns


@dataclass(frozen=True)
class Entry:
    """The outputs of a restored image, before they are written.

    Attributes:
        sources: the image, and its mask if it has one, as they were read.
        models: names or folders of the priors, of which pages of one file may have several.
        contents: the bytes of each output.
    """

    sources: Mapping[str, Stamp]
    models: Sequence[str]
    contents: Mapping[str, bytes]


@dataclass(frozen=True)
class Origin:
    """What the outputs of one image were made from; files are named relative to the folder.

    Attributes:
        sources: the image, and its mask if it has one, as they were read.
        models: names or folders of the priors.
        weights: checksums of their weights.
        files: checksums of the outputs.
        settings: options that the outputs depend on.
    """

    sources: Mapping[str, Stamp]
    models: Sequence[str]
    weights: Sequence[str]
    files: Mapping[str, str]
    settings: Mapping[str, Any]


@dataclass(frozen=True)
class Manifest:
    """The manifest of a folder, as a run finds it.

    Attributes:
        folder: where the outputs go.
        settings: the run's options that outputs depend on, as JSON types.
        model: name or folder of the run's prior; None if it depends on the image.
        overwrite: whether outputs of other settings may be replaced.
        known: what each output was made from, by its name and checksum.
    """

    folder: Path
    settings: Mapping[str, Any]
    model: str | None
    overwrite: bool
    known: Mapping[str, Mapping[str, Origin]]
    _weights: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, folder: Path, settings: Mapping[str, Any], model: str | None, overwrite: bool) -> Manifest:
        """Read the manifest of a folder; a folder without one has no known outputs.

        Raises:
            OutputError: if there is one that cannot be read.
        """
        known: dict[str, dict[str, Origin]] = {}
        for origin in _read(folder / NAME):
            for name, checksum in origin.files.items():
                known.setdefault(name, {})[checksum] = origin
        return cls(folder, settings, model, overwrite, known)

    def standing(self, sources: Sequence[Path], target: Path) -> Standing:
        """Whether an existing output is done, outdated, or not ours.

        Args:
            sources: the image, and its mask if it has one.
            target: the output.

        Raises:
            UsageError: if it was made with another mask, prior or other settings, and may not be replaced.
        """
        name = self.name_of(target)
        # The content decides: the newest line may be about content that was never written.
        origin = self.known[name].get(_checksum(target) or "") if name in self.known else None
        now = {self.name_of(source): stamp(source) for source in sources}
        if origin is None or next(iter(origin.sources)) != next(iter(now)):
            return Standing.FOREIGN
        changed = self._changed(origin, now)
        if changed and not self.overwrite:
            raise UsageError(
                f"{shown(target)}: was made with another setting: {changed}; give --overwrite to replace it, "
                "or another -o"
            )
        intact = all(_checksum(self.folder / output) == checksum for output, checksum in origin.files.items())
        same = not changed and intact and origin.sources == now
        return Standing.DONE if same else Standing.OUTDATED

    @contextmanager
    def writing(self) -> Iterator[Journal]:
        """Append to the manifest; only one run may at a time.

        Raises:
            OutputError: if another run works in the folder, or it cannot be written to.
        """
        path = self.folder / NAME
        try:
            stream = path.open("ab", buffering=0)
        except OSError as fault:
            raise _cannot_be_written(path, fault) from fault
        with stream:
            try:
                fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise OutputError(
                    f"{shown(self.folder)}: another run restores into this folder; wait for it or choose another -o"
                ) from None
            journal = Journal(self, stream)
            journal.append([{"settings": self.settings}])
            yield journal

    def weights_of(self, model: str) -> str:
        """The checksum of a prior's weights, or of a file made by `restore export`.

        Raises:
            ModelError: if there is no such prior.
        """
        if model not in self._weights:
            place = find(model)
            path = place / WEIGHTS if place.is_dir() else place
            checksum = _checksum(path)
            if checksum is None:
                raise ModelError(f"{shown(path)}: cannot be read; check its permissions")
            self._weights[model] = checksum
        return self._weights[model]

    def name_of(self, path: str | Path) -> str:
        """A file's name in the manifest: relative, so that folders that move together keep their references."""
        return os.path.relpath(path, self.folder)

    def _changed(self, origin: Origin, sources: Iterable[str]) -> str:
        """Which settings have changed, in words; empty if none."""
        before, now = origin.settings, self.settings
        said = [
            f"{key} was {before.get(key)} and is {now.get(key)}"
            for key in sorted(before.keys() | now.keys())
            if before.get(key) != now.get(key)
        ]
        if list(origin.sources) != list(sources):
            said.append("the mask is another file")
        models = [self.model] if self.model else origin.models
        with suppress(ModelError):
            if [self.weights_of(model) for model in models] == list(origin.weights):
                return "; ".join(said)
        old, new = (shown(", ".join(names)) for names in (origin.models, models))
        return "; ".join([*said, f"the prior was {old} and is {new}, or has changed"])


@dataclass(frozen=True)
class Journal:
    """A manifest open for appending."""

    manifest: Manifest
    stream: IO[bytes]

    def promise(self, entries: Iterable[Entry]) -> None:
        """Record what is about to be written; raises OutputError if that fails."""
        name = self.manifest.name_of
        self.append(
            {
                "sources": {name(source): seen for source, seen in entry.sources.items()},
                "models": entry.models,
                "weights": [self.manifest.weights_of(model) for model in entry.models],
                "files": {name(file): hashlib.sha256(content).hexdigest() for file, content in entry.contents.items()},
            }
            for entry in entries
        )

    def failed(self, source: str, reason: str) -> None:
        """Record why an image has no output."""
        self.append([{"input": self.manifest.name_of(source), "error": reason}])

    def append(self, lines: Iterable[Mapping[str, Any]]) -> None:
        """Write lines and flush them to disk."""
        try:
            # Each line also ends the one before it: a run that died may have left half a line.
            self.stream.write(b"".join(b"\n" + json.dumps(line).encode() for line in lines) + b"\n")
            os.fsync(self.stream.fileno())
        except OSError as fault:
            raise _cannot_be_written(self.manifest.folder / NAME, fault) from fault


def _read(path: Path) -> Iterator[Origin]:
    """The origins in a manifest, oldest first; broken lines are skipped."""
    settings: Mapping[str, Any] = {}
    try:
        with path.open("rb") as stream:
            for line in stream:
                try:
                    told = json.loads(line)
                    settings = told.get("settings", settings)
                    if "files" in told:
                        sources = {str(name): (size, time) for name, (size, time) in told["sources"].items()}
                        files = {str(name): str(checksum) for name, checksum in told["files"].items()}
                        if sources:
                            yield Origin(sources, told["models"], told["weights"], files, settings)
                except (ValueError, TypeError, KeyError, AttributeError):
                    continue
    except FileNotFoundError:
        return
    except OSError as fault:
        raise OutputError(
            f"{shown(path)}: cannot be read ({fault.strerror}); check its permissions or choose another -o"
        ) from fault


def _checksum(path: Path) -> str | None:
    """The SHA-256 of a file; None if it cannot be read."""
    try:
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError:
        return None


def _cannot_be_written(path: Path, fault: OSError) -> OutputError:
    reason = fault.strerror or fault
    return OutputError(f"{shown(path)}: cannot be written ({reason}); free some space or choose another -o")
