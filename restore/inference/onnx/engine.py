"""The onnxruntime engine: restores with an exported graph. It needs no torch and starts much faster."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import onnxruntime

from restore.channels.damage import Damage
from restore.errors import ModelError, UsageError, option, pip, reason, shown
from restore.inference import threads
from restore.inference.engine import Posterior
from restore.inference.onnx.contract import OBSERVED, SHARED, GraphFacts, Kind, read_intact
from restore.inference.tiles.blocks import PART_SIDE
from restore.registry import LEVELS
from restore.status import Status
from restore.zoo import GRAPH, WEIGHTS
from restore.zoo.description import Description
from restore.zoo.inference import Effort, calmer

if TYPE_CHECKING:
    from onnxruntime import InferenceSession

# onnxruntime's level of log that says nothing: its exceptions say the same.
FATAL_ONLY = 4

# Bytes that all graphs together may take: half of the machine's memory. One that needs more is damaged or too large.
# Windows does not say how much there is; 0 is no limit.
GRAPHS_MEMORY = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2 if hasattr(os, "sysconf") else 0
# They take what they need, not the next power of two.
onnxruntime.create_and_register_allocator(
    onnxruntime.OrtMemoryInfo(
        "Cpu", onnxruntime.OrtAllocatorType.ORT_ARENA_ALLOCATOR, 0, onnxruntime.OrtMemType.DEFAULT
    ),
    onnxruntime.OrtArenaCfg({"max_mem": GRAPHS_MEMORY, "arena_extend_strategy": 1}),
)

# Says that a run gives the memory back that all runs have taken, which else stays for the next one.
GIVE_BACK = ("memory.enable_memory_arena_shrinkage", "cpu:0")

# Where tensors may lie that are not in the graph. onnxruntime reads them nowhere else, and through no link.
FOLDER = "session.model_external_initializers_file_folder_path"

# Computing constants in advance saves no time here, and takes seconds and gigabytes where a shape is damaged.
NOT_BEFORE = ["ConstantFolding"]

# Units, of all starts: batches of fewer take as long, and where images have any size, batches of several have no more:
# images of 28x28 take half the time, by tens, that they take by fives.
SMALL_BATCH = 2**15
LARGE_BATCH = 2**20

# The execution provider of the processor, which does what others cannot.
CPU = "CPUExecutionProvider"


@dataclass(frozen=True)
class Provider:
    """An execution provider.

    Attributes:
        name: what onnxruntime calls it.
        package: the build of onnxruntime that has it; another one is removed before it is installed.
        settings: its options. Those of Core ML let it take the body of a loop, where all iterations are.
        numbered: there may be several such devices.
    """

    name: str
    package: str
    settings: dict[str, str] = field(default_factory=dict)
    numbered: bool = True


PROVIDERS = {
    "cuda": Provider("CUDAExecutionProvider", "onnxruntime-gpu"),
    "coreml": Provider("CoreMLExecutionProvider", "onnxruntime on macOS", {"EnableOnSubgraphs": "1"}, numbered=False),
    "directml": Provider("DmlExecutionProvider", "onnxruntime-directml on Windows"),
}


@dataclass(frozen=True, eq=False)
class OnnxEngine:
    """A prior with its solver in onnxruntime: a `restore.inference.engine.PictureEngine`.

    Attributes:
        facts: what the graph says about itself.
        session: the graph.
        device: where the graph runs: "cpu", or one of `PROVIDERS`.
    """

    backend: ClassVar[str] = "onnx"
    part: ClassVar[int] = PART_SIDE

    facts: GraphFacts
    session: InferenceSession
    device: str = "cpu"

    @classmethod
    def load(cls, source: Path, device: str = "cpu") -> OnnxEngine:
        """Load the graph in a prior's folder, or a file made by `restore export`, on a device.

        Raises:
            UsageError: if onnxruntime has no such device.
            ModelError: if it is damaged, none of our exports, or not made from the weights beside it.
        """
        preferred = providers(device)
        path = source / GRAPH if source.is_dir() else source
        content = read_intact(path)
        # A file that refers to weights, or is the graph of a folder, must have been made from the weights beside it.
        weights = path.parent / WEIGHTS if source.is_dir() or WEIGHTS.encode() in content else None
        options = onnxruntime.SessionOptions()
        options.log_severity_level = FATAL_ONLY
        options.intra_op_num_threads = 1  # each batch has a thread; see `solve`
        options.add_session_config_entry("session.use_env_allocators", "1")  # see `GRAPHS_MEMORY`
        options.enable_mem_pattern = False  # it takes more memory, saves no time, and DirectML refuses it
        try:
            if weights:
                options.add_session_config_entry(FOLDER, str(path.parent))
            digest = hashlib.sha256(weights.read_bytes()).hexdigest() if weights else None
            session = onnxruntime.InferenceSession(
                content,
                options,
                providers=preferred,
                disabled_optimizers=NOT_BEFORE,
                enable_fallback=False,  # which prints
            )
            metadata = session.get_modelmeta().custom_metadata_map
            ports = [_ports(nodes) for nodes in (session.get_inputs(), session.get_outputs())]
        except Exception as fault:  # onnxruntime's exceptions have no base of their own
            raise ModelError(f"cannot be run as a graph ({_one_line(fault)}); get the file again", path) from fault
        if preferred[0][0] not in session.get_providers():  # its libraries, or the device itself
            raise _missing(device)
        facts = GraphFacts.from_metadata(metadata, shown(path))
        _check_interface(ports, facts, shown(path))
        if digest is not None and digest != facts.weights:
            anew = f"make it anew with `restore export {shown(path.parent)} --beside --overwrite`"
            raise ModelError(f"was made for another {WEIGHTS} than lies beside it; get both again, or {anew}", path)
        return cls(facts, session, "cpu" if preferred[0][0] == CPU else device)

    @property
    def header(self) -> Description:
        return self.facts.header

    @property
    def light_ground(self) -> bool:
        return self.facts.light_ground

    def solve(self, pictures: np.ndarray, damage: Damage, effort: Effort = "full") -> Posterior:
        self._check(damage)
        header = self.header.at(effort, pictures.shape[1:], touched=damage.touched)
        # A value shared by all pixels or images has size 1 there.
        inputs = {
            "image": pictures.astype(np.float32),
            **{name: np.array(damage.known(name), np.float32, ndmin=3) for name in LEVELS},
            "mask": np.array(False if damage.hidden is None else damage.hidden, ndmin=3),
        }
        batches = self._batches(inputs, header)
        observed = [self._of_batch(inputs, rows) for rows in batches]
        # Threads gain more from a batch each than from a share of every operation, which is small. Other devices take
        # one batch after another.

        def run(batch: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
            return self.run(header, batch, patient=effort == "full", last=batch is observed[-1])

        parts = threads.run_all(run, observed) if self.device == "cpu" else list(map(run, observed))
        order = np.argsort(np.concatenate(batches))
        outputs = {name: np.concatenate([part[name] for part in parts])[order] for name in parts[0]}
        # A residual that is not finite says that the solver diverged.
        ended = np.where(outputs["converged"], Status.CONVERGED, Status.MAX_ITER)
        status = np.where(np.isfinite(outputs["residual"]), ended, Status.DIVERGED)
        outcome = status, outputs["iterations"], outputs["residual"]
        return Posterior.solved(pictures, damage, _layers(outputs, header), outcome, outputs["inversion"])

    def _check(self, damage: Damage) -> None:
        """Raise RestoreError for damage that is no input of the graph."""
        if self.facts.channel == "field":
            raise ModelError("exported with --no-channel it takes no images", self.header.name)
        known = OBSERVED[self.facts.channel]
        for name in LEVELS:
            if getattr(damage, name) is not None and name not in known:
                fault = f"the graph of {shown(self.header.name)} does not know it"
                raise UsageError(f"{fault}; give {option('engine', 'torch')}", option(name))

    def _batches(self, inputs: Mapping[str, np.ndarray], header: Description) -> list[np.ndarray]:
        """The images that the graph takes at a time, by number: what caches hold, and a batch for every thread."""
        count = len(inputs["image"])
        size = sum(header.sizes) * max(1, header.inference.starts)
        most = max(1, LARGE_BATCH // size) if header.kind.any_size else self.facts.at_once
        if self.device == "cpu":
            most = min(most, max(-(-count // threads.count()), SMALL_BATCH // size))
        groups = _alike(inputs) if self.facts.channel == SHARED else [np.arange(count)]
        return [rows[first : first + most] for rows in groups for first in range(0, len(rows), most)]

    def _of_batch(self, inputs: Mapping[str, np.ndarray], rows: np.ndarray) -> dict[str, np.ndarray]:
        """The inputs for some images; of those that are alike but for their pixels the damage of one."""
        one = {name for name in inputs if len(inputs[name]) == 1 or (self.facts.channel == SHARED and name != "image")}
        return {name: value[rows[:1] % len(value) if name in one else rows] for name, value in inputs.items()}

    def run(
        self, header: Description, observed: Mapping[str, np.ndarray], *, patient: bool = True, last: bool = False
    ) -> dict[str, np.ndarray]:
        """The outputs of the graph, for its inputs by name, with the settings in a header.

        If it is `patient`, what has not converged is solved again with more damping. After the `last` of several runs
        the memory between layers is given back.
        """
        settings = header.inference
        outputs = self._run_once(header, observed, last)
        left = ~outputs["converged"]
        if left.any() and patient and header.tries_again:
            rows = {name: value if len(value) == 1 else value[left] for name, value in observed.items()}
            damping, tol = calmer(settings.damping, settings.tol)
            calm = replace(settings, damping=damping, tol=tol)
            again = self._run_once(replace(header, inference=calm), rows)
            again["iterations"] += outputs["iterations"][left]
            for name, value in outputs.items():
                value[left] = again[name]
        return outputs

    def _run_once(
        self, header: Description, observed: Mapping[str, np.ndarray], last: bool = False
    ) -> dict[str, np.ndarray]:
        settings = header.inference
        feed = {name: observed[name] for name in OBSERVED[self.facts.channel]}
        feed["max_iter"] = np.array(settings.max_iter, np.int64)
        feed |= {name: np.array(getattr(settings, name), np.float32) for name in ("tol", "damping")}
        outputs = self.facts.interface(header)[1]
        images = max(map(len, observed.values()))
        options = onnxruntime.RunOptions()
        if last and self.device == "cpu":
            options.add_run_config_entry(*GIVE_BACK)
        try:
            results = dict(zip(outputs, self.session.run(list(outputs), feed, options), strict=True))
            for name, (_, shape) in outputs.items():
                # onnxruntime lets other sizes pass.
                if results[name].shape != (images, *shape[1:]):
                    raise ValueError(f"{name} is not what the graph promises")
        except Exception as fault:  # see `load`
            remedy = f"give {option('engine', 'torch')}, or make it anew with `restore export`"
            name = shown(header.name)
            raise ModelError(f"its graph cannot be run ({_one_line(fault)}); {remedy}", name) from fault
        return results


def providers(device: str) -> list[tuple[str, dict[str, str]]]:
    """The providers for a device, the best first, with their options; the processor does what others cannot.

    Raises:
        UsageError: if the onnxruntime here has no such device; the message names the build that has.
    """
    kind, _, number = device.partition(":")
    if kind not in PROVIDERS:
        return [(CPU, {})]
    provider = PROVIDERS[kind]
    if device != kind and not (provider.numbered and number.isdecimal()):
        raise UsageError(
            "names no device; give its kind, or kind and number such as cuda:0", option("device", shown(device))
        )
    if provider.name not in onnxruntime.get_available_providers():
        raise _missing(device)
    return [(provider.name, provider.settings | ({"device_id": number} if number else {})), (CPU, {})]


def _missing(device: str) -> UsageError:
    """The fault of a device that is not there."""
    package = PROVIDERS[device.partition(":")[0]].package
    remedy = f"{pip('uninstall onnxruntime')}, then {pip(f'install {package}')}"
    return UsageError(f"onnxruntime finds no such device; {remedy}, or leave it out", option("device", shown(device)))


def _alike(inputs: Mapping[str, np.ndarray]) -> list[np.ndarray]:
    """The images that have the same noise and the same mask, by number."""
    count = len(inputs["image"])
    hidden = np.packbits(inputs["mask"].reshape(len(inputs["mask"]), -1), axis=1)
    sigma = inputs["sigma"].reshape(-1, 1)
    both = [np.broadcast_to(part, (count, part.shape[1])) for part in (hidden, sigma.view(np.uint8))]
    rows = np.ascontiguousarray(np.concatenate(both, 1))
    _, kind = np.unique(rows.view(np.dtype((np.void, rows.shape[1]))).ravel(), return_inverse=True)
    return np.split(np.argsort(kind, kind="stable"), np.cumsum(np.bincount(kind))[:-1])


def _layers(outputs: Mapping[str, np.ndarray], header: Description) -> list[list[np.ndarray]]:
    """Means and variances of each layer, (N, units); for images of any size, of pixels alone."""
    above = range(1, 1 if header.kind.any_size else len(header.sizes))
    return [
        [outputs[name].reshape(len(outputs[name]), -1) for name in (kind, *(f"{kind}.{n}" for n in above))]
        for kind in ("means", "variances")
    ]


def _one_line(fault: Exception) -> str:
    """What onnxruntime says, without the part about its own source code."""
    return reason(Exception(str(fault).split("/onnxruntime_src")[0]))


def _ports(nodes: Sequence[Any]) -> dict[str, Kind]:
    """Types and shapes of inputs or outputs; reading names that are not UTF-8 fails."""
    return {
        node.name: (node.type, tuple(size if isinstance(size, int) else None for size in node.shape)) for node in nodes
    }


def _check_interface(ports: Sequence[dict[str, Kind]], facts: GraphFacts, where: str) -> None:
    """Refuse a graph whose inputs or outputs are not what its metadata promise."""
    wrong = set[str]()
    for promised, actual in zip(facts.interface(facts.header), ports, strict=True):
        if facts.header.kind.any_size:  # for images of any size
            promised = {name: (kind, (None,) * len(shape)) for name, (kind, shape) in promised.items()}
        wrong |= {name for name in promised.keys() | actual.keys() if promised.get(name) != actual.get(name)}
    if wrong:
        listed = ", ".join(shown(name) for name in sorted(wrong))
        raise ModelError(f"inputs or outputs missing, extra or of wrong type or shape: {listed}", where)
