"""A training run's folder, and how a run is stopped: lock, log, signals."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import torch
from filelock import FileLock, Timeout

from restore.errors import TrainingError, option, shown
from restore.files import remove_abandoned, write_atomically
from restore.learning.run import checkpoint as checkpoints
from restore.learning.run.checkpoint import Checkpoint
from restore.learning.run.parallel import from_first, highest, processes

# What may change when a run is resumed, because nothing learnt so far depends on it: the threads, which affect the bits
# of what follows, and the time limit.
THREADS_KEY = "threads"
LIMITS = ("recipe.minutes", "recipe.training.minutes")

# The folder inside a run's folder for the growth of hidden units before it.
GROWTH = "growth"


class Stopped(KeyboardInterrupt):
    """Training was stopped by a signal, after writing a checkpoint; `signal_number` says which."""

    def __init__(self, signal_number: int) -> None:
        super().__init__(signal_number)
        self.signal_number = signal_number


@dataclass(frozen=True)
class Lease:
    """A run from its beginning or a resume to the next stop: the checkpoint to continue from, the signals received.

    `threads` says that their number differs from the lease before; else it is empty.
    """

    checkpoint: Checkpoint | None
    stops: list[int]
    threads: str

    def stop(self) -> int:
        """The signal that ends the lease, 0 for none; all processes of a run call this between steps."""
        return int(highest(self.stops[0] if self.stops else 0))


def circumstances() -> dict[str, int]:
    """The numbers of threads and processes: besides recipe and data they affect the bits of a result."""
    return {THREADS_KEY: torch.get_num_threads(), "processes": processes()}


@contextmanager
def lease(folder: Path, identity: Mapping[str, Any], resume: bool) -> Iterator[Lease]:
    """Hold a run's folder, find where to continue, and collect requests to stop."""
    with ExitStack() as held, _stop_requests() as stops:

        def begin() -> tuple[Checkpoint | None, str, Mapping[str, Any]]:
            held.enter_context(locked(folder))
            remove_abandoned(folder)
            return *_checkpoint_of(folder, identity, resume), identity

        checkpoint, threads, wanted = from_first(begin)
        if highest(wanted != identity):
            unlike = "; ".join(checkpoints.differences(wanted, identity).values())
            raise TrainingError(f"processes differ ({unlike or 'from the first'}); give all of them the same")
        yield Lease(checkpoint, stops, threads)


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold a run's folder for one process; a TrainingError if it cannot be made, or another process trains in it."""
    lock = FileLock(folder / "lock")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _without_link(folder / "lock")
        lock.acquire(timeout=0)
    except Timeout:
        raise TrainingError(f"another run works in this folder; choose another {option('run')}", folder) from None
    except OSError as fault:
        raise TrainingError(
            f"cannot be used as a run folder ({fault.strerror}); choose another {option('run')}", folder
        ) from fault
    try:
        yield
    finally:
        lock.release()


def cleared(folder: Path) -> None:
    """Remove the checkpoints of a run and of its stages, which tell which stages are over."""
    with locked(folder):
        for checkpoint in [folder / checkpoints.NAME, *folder.glob(f"*/{checkpoints.NAME}")]:
            checkpoints.remove(checkpoint.parent)


def _checkpoint_of(folder: Path, identity: Mapping[str, Any], resume: bool) -> tuple[Checkpoint | None, str]:
    """The checkpoint to continue from, and in words, a number of threads that differs from then."""
    checkpoint = checkpoints.load(folder)
    if checkpoint is None:
        return None, ""
    if not resume:
        other = f"{option('overwrite')} to begin anew, or another {option('run')}"
        raise TrainingError(f"holds a run already; give {option('resume')} to go on, {other}", folder)
    changed = checkpoints.differences(checkpoint.facts["identity"], identity)
    refused = [phrase for key, phrase in changed.items() if key != THREADS_KEY and key not in LIMITS]
    if refused:
        fault = f"the run was started with other settings ({'; '.join(refused)})"
        raise TrainingError(f"{fault}; undo the change or use a new {option('run')}", folder)
    return checkpoint, changed.get(THREADS_KEY, "")


def set_generator(generator: torch.Generator, checkpoint: Checkpoint, seed: int) -> str:
    """Restore a generator from a checkpoint; on another kind of device it is seeded anew, which the result says."""
    if checkpoint.tensors["generator"].shape == generator.get_state().shape:
        generator.set_state(checkpoint.tensors["generator"])
        return ""
    # Not the seed of the beginning, so that nothing is drawn twice.
    generator.manual_seed((seed + checkpoint.step) % 2**63)
    return "it goes on on another kind of device, with other random numbers"


def stage_folder(folder: Path, number: int) -> Path:
    """The folder, inside a run's, for the pre-training of layer `number`, counted from 1."""
    return folder / f"layer-{number}"


def log(folder: Path, record: dict[str, Any]) -> None:
    path = folder / "log.jsonl"
    try:
        _without_link(path)
        with path.open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(record) + "\n")
    except OSError as fault:
        raise TrainingError(f"cannot be written ({fault.strerror}); free some space", path) from fault


def _without_link(path: Path) -> None:
    """Remove a link that somebody has put where a file is to be written."""
    if path.is_symlink():
        path.unlink()


def cut_log(folder: Path, epochs: int) -> None:
    """Drop what was logged after the checkpoint that a run continues from: it will be logged again."""
    path = folder / "log.jsonl"
    if path.exists():
        lines = path.read_bytes().splitlines(keepends=True)[:epochs]
        write_atomically(path, b"".join(lines), TrainingError)


def epoch_records(folder: Path) -> list[dict[str, Any]]:
    """The records of all epochs in a run's log; a TrainingError if it is missing or damaged."""
    try:
        lines = (folder / "log.jsonl").read_text("utf-8").splitlines()
        if not lines:
            # A checkpoint is written after its line of the log.
            raise ValueError("empty")
        return [record | {"seconds": float(record["seconds"])} for record in map(json.loads, lines)]
    except (OSError, ValueError, TypeError, KeyError, OverflowError, RecursionError) as fault:
        raise TrainingError(f"{shown(folder)}/log.jsonl: missing or damaged; train again") from fault


@contextmanager
def _stop_requests() -> Iterator[list[int]]:
    """Collect SIGINT and SIGTERM instead of ending, if this is the main thread."""
    received: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        received.append(number)

    try:
        previous = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    except ValueError:  # not the main thread
        yield received
        return
    try:
        yield received
    finally:
        for number, handler in previous.items():
            # A handler that `parallel` has set meanwhile, because of a failure, stays.
            if signal.getsignal(number) is note:
                signal.signal(number, handler)
