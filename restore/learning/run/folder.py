"""A training run's folder, and how a run is stopped: lock, checkpoints, log, signals."""

from __future__ import annotations

import json
import signal
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import torch

from restore.errors import TrainingError, shown
from restore.files import remove_abandoned, write_atomically
from restore.learning.run import checkpoint as checkpoints
from restore.learning.run.checkpoint import Checkpoint
from restore.learning.run.parallel import from_first, highest, is_first, processes, rank

# What may change when a run is resumed, because nothing learnt so far depends on it: the threads, which affect the bits
# of what follows, and the time limits.
THREADS = "threads"
LIMITS = ("recipe.minutes", "recipe.training.minutes", "recipe.training.last")


def settings_gone(method: str) -> dict[str, Any]:
    """Settings that recipes had once, and what stands for them now: a run that had another value cannot go on."""
    return {
        "recipe.growth.power_rate": 0.0,
        "recipe.learner.noise": 0.0,
        "recipe.learner.power_rate": 0.0,
        # 0 stood for the step that gradient ascent always takes now.
        "recipe.learner.step": 0.0 if method == "gradient_ascent" else 1.0,
        "recipe.optimizer.options": {},
        "recipe.optimizer.shrinkage": 0.0,
        "recipe.training.patience": 0,
    }


class Stopped(KeyboardInterrupt):
    """Training was stopped by a signal, after writing a checkpoint; `signal_number` says which."""

    def __init__(self, signal_number: int) -> None:
        super().__init__(signal_number)
        self.signal_number = signal_number


@dataclass(frozen=True)
class Sitting:
    """A run at the start of a sitting: from its beginning or a resume to the next stop.

    Attributes:
        found: the checkpoint to continue from; None for a new run.
        stops: the signals received so far.
        changed: what may and does differ from the sitting before: a phrase for each, as in `differences`.
    """

    found: Checkpoint | None
    stops: list[int]
    changed: Mapping[str, str]

    @property
    def limited_otherwise(self) -> bool:
        """Whether the time limit differs from the sitting before."""
        return any(key in self.changed for key in LIMITS)

    def stop(self) -> int:
        """The signal that ends the sitting, 0 for none; all processes of a run call this between steps."""
        return highest(self.stops[0] if self.stops else 0)


def circumstances() -> dict[str, int]:
    """What affects the bits of a result besides recipe and data: threads and processes."""
    return {THREADS: torch.get_num_threads(), "processes": processes()}


@contextmanager
def sitting(folder: Path, identity: Mapping[str, Any], resume: bool) -> Iterator[Sitting]:
    """Hold a run's folder, find where to continue, and collect requests to stop.

    Args:
        folder: made if it is missing.
        identity: what decides the course of the run; a checkpoint with another identity is refused.
        resume: whether to continue from the newest checkpoint in the folder, if there is one.

    Raises:
        TrainingError: the folder is in use, holds another run, or cannot be written to.
    """
    with ExitStack() as held, _stop_requests() as stops:

        def begin() -> tuple[Checkpoint | None, dict[str, str], Mapping[str, Any]]:
            held.enter_context(checkpoints.locked(folder))
            remove_abandoned(folder)
            return *_found(folder, identity, resume), identity

        found, changed, wanted = from_first(begin)
        unlike = {} if is_first() else checkpoints.differences(wanted, identity)
        if unlike:
            said = "; ".join(unlike.values())
            raise TrainingError(f"process {rank()} is not like the first: {said}; give all the same")
        yield Sitting(found, stops, changed)


def _found(folder: Path, identity: Mapping[str, Any], resume: bool) -> tuple[Checkpoint | None, dict[str, str]]:
    """The checkpoint to continue from, and what differs from then among all that may."""
    found = checkpoints.newest(folder)
    if found is None:
        return None, {}
    if not resume:
        raise TrainingError(f"{shown(folder)}: holds a run already; give --resume to go on with it, or another --run")
    # Old checkpoints do not say; there was one process then.
    gone = settings_gone(identity["recipe"].get("method", ""))
    changed = checkpoints.differences({"processes": 1} | found.facts["identity"], identity, gone)
    refused = [phrase for key, phrase in changed.items() if key != THREADS and key not in LIMITS]
    if refused:
        raise TrainingError(
            f"{shown(folder)}: cannot resume: {'; '.join(refused)}; what it has learnt so far rests on that: undo the "
            "change, or choose another --run to begin anew"
        )
    return found, changed


def set_generator(generator: torch.Generator, found: Checkpoint, seed: int) -> str:
    """Restore a generator from a checkpoint; on another kind of device it is seeded anew.

    Returns:
        What that changes, in words; empty if nothing.
    """
    if found.tensors["generator"].shape == generator.get_state().shape:
        generator.set_state(found.tensors["generator"])
        return ""
    # Not the seed of the beginning, so that nothing is drawn twice.
    generator.manual_seed((seed + found.step) % 2**63)
    return "it goes on on another kind of device, with other random numbers"


def tell_changes(folder: Path, changes: Sequence[str]) -> None:
    """Warn about what has changed."""
    for change in changes:
        warnings.warn(f"{shown(folder)}: {change}; its recipe will not repeat the run to the bit", stacklevel=3)


def was_limited(folder: Path) -> bool:
    """Whether a run, or a stage of one, had a time limit in its last sitting."""
    recipe = checkpoints.identity(folder).get("recipe", {})
    return bool(recipe.get("minutes") or recipe.get("training", {}).get("minutes"))


def log(folder: Path, record: dict[str, Any]) -> None:
    """Add a line to the log of a run."""
    try:
        with (folder / "log.jsonl").open("a") as stream:
            stream.write(json.dumps(record) + "\n")
    except OSError as fault:
        raise TrainingError(
            f"{shown(folder)}/log.jsonl: cannot be written ({fault.strerror}); free some space"
        ) from fault


# Folders inside a run's folder: of the growth of hidden units before it, and of pre-training a layer.
GROWTH, LAYER = "growth", "layer-"


def stage_folder(folder: Path, number: int) -> Path:
    """The folder, inside a run's, for the pre-training of layer `number`, counted from 1."""
    return folder / f"{LAYER}{number}"


def epoch_records(folder: Path) -> list[dict[str, Any]]:
    """The records of all epochs in a run's log.

    Raises:
        TrainingError: if there is no intact log.
    """
    try:
        lines = (folder / "log.jsonl").read_text().splitlines()
        records = [record | {"seconds": float(record["seconds"])} for record in map(json.loads, lines)]
        if not records:
            # A checkpoint is written before its line of the log.
            raise ValueError("empty")
        return records
    except (OSError, ValueError, TypeError, KeyError) as fault:
        raise TrainingError(f"{shown(folder)}/log.jsonl: missing or damaged; train again") from fault


def epoch_seconds(folder: Path) -> list[float]:
    """Training time of a run at the end of each epoch, including growth, pre-training and all sittings, from its log.

    Raises:
        TrainingError: if there is no intact log.
    """
    before = seconds_before(folder)
    return [before + record["seconds"] for record in epoch_records(folder)]


def seconds_before(folder: Path) -> float:
    """Training time of growth or pre-training before a run, from the logs."""
    return sum(epoch_seconds(inside)[-1] for inside in _earlier(folder))


def check_earlier(folder: Path, own: str) -> None:
    """Refuse a folder with another run's growth or pre-training, which would count as this run's.

    Args:
        folder: the run's folder.
        own: how the names of this run's own such folders begin; "" if it has none.

    Raises:
        TrainingError: if there are others.
    """
    others = [inside for inside in _earlier(folder) if not own or not inside.name.startswith(own)]
    if others:
        raise TrainingError(
            f"{shown(folder)}: holds a run already, which began with {others[0].name}; give another --run, or remove it"
        )


def _earlier(folder: Path) -> list[Path]:
    """The folders of growth and pre-training before a run."""
    return [inside for inside in (folder / GROWTH, *sorted(folder.glob(f"{LAYER}*"))) if inside.is_dir()]


def cut_log(folder: Path, epochs: int) -> None:
    """Drop what was logged after the checkpoint that a run continues from: it will be logged again."""
    path = folder / "log.jsonl"
    if path.exists():
        lines = path.read_bytes().splitlines(keepends=True)[:epochs]
        write_atomically(path, b"".join(lines), TrainingError)


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
