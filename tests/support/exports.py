"""Priors of every kind: exported once each, or stored, and ways to rewrite their files."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from filelock import FileLock
from machines import seeded, two_patterns, with_weights
from priors import (
    SPIKED,
    TRUNCATED,
    grey_prior,
    random_conditional,
    random_convolutional_deep_prior,
    random_deep_prior,
    random_prior,
)
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor

from restore import zoo
from restore.channels import BitFlip, Occlusion
from restore.errors import ModelError
from restore.export.packing import beside_weights, standalone
from restore.fields import Fields
from restore.inference.onnx import contract
from restore.inference.onnx import contract as seal
from restore.inference.torch_engine import solve
from restore.priors import RBM, ConditionalRBM
from restore.priors.bits import pack
from restore.solvers import Solution, solver_of
from restore.zoo import GRAPH, WEIGHTS, TrainedPrior
from restore.zoo.description import Description
from restore.zoo.inference import Inference

Arrays = dict[str, np.ndarray]

# Not square, and the number of pixels no multiple of eight.
SHAPE = (5, 7)

# Of the solvers here. Rounding may decide whether it is met an iteration sooner, which moves no mean by more than that.
TOLERANCE = 1e-5


def settled(prior: TrainedPrior, weaker: float = 1.0, *, temperature: float = 1.0, **inference: Any) -> TrainedPrior:
    """A prior with other settings, by default a small tolerance, and weaker couplings."""
    header = prior.description
    inference = {"tol": TOLERANCE, "max_iter": 500} | inference
    description = replace(header, inference=replace(header.inference, **inference), temperature=temperature)
    if isinstance(prior.machine, RBM):
        return replace(prior, description=description, machine=with_weights(prior.machine, weaker))
    named = prior.machine.parameters
    named["weights.0"] = weaker * named["weights.0"]
    return replace(prior, description=description, machine=prior.machine.with_parameters(named))


def patterns() -> TrainedPrior:
    """A prior with two modes of like weight, which it carries among others that are none."""
    machine, found = two_patterns()
    noise = torch.rand(3, 12, generator=torch.Generator().manual_seed(0)) < 0.5
    modes = pack(torch.cat([noise, found > 0]))
    header = Description("pair", (3, 4), 127, "none", "none", inference=Inference(modes=5, starts=4), hidden=12)
    return settled(TrainedPrior(header, machine.to(torch.float32), torch.full((12,), 0.5), modes))


# What is exported here, each once: the prior, and how. Several starts are in two of them alone: nothing in those knows
# the solver, and they are a third of the time that a graph takes.
MADE: dict[str, tuple[Callable[[], TrainedPrior], dict[str, bool]]] = {
    "tap": (lambda: settled(random_prior(SHAPE, modes=6), clear=0.5), {}),
    "mean_field": (
        lambda: settled(random_prior(SHAPE, modes=0), 0.3, temperature=1.3, solver="mean_field", starts=1),
        {},
    ),
    "relaxed": (lambda: settled(random_prior(SHAPE, modes=0), solver="relaxed_bp", starts=0), {"float16": True}),
    "sum": (lambda: settled(random_conditional(SHAPE), 0.3), {}),
    "mixed": (lambda: settled(random_conditional(SHAPE), solver="mixed_product", damping=0.2), {"beside": True}),
    "field": (patterns, {"field": True}),
    "deep": (lambda: settled(random_deep_prior(SHAPE, deeper=(4,)), starts=0), {}),
    # The first has every law of real values: pixels with an atom, and hidden units without bounds. The second has no
    # other, under the solver, from the start and of the kinds of a published prior.
    "spiked": (lambda: grey_prior(SPIKED, "gaussian", scale=0.2, starts=0), {}),
    "truncated": (lambda: grey_prior(TRUNCATED, "gaussian", scale=0.1, solver="mean_field"), {}),
    "layers": (lambda: random_convolutional_deep_prior(family="informed_convolutional"), {"beside": True}),
    "halves": (lambda: random_convolutional_deep_prior(family="informed_convolutional", first=2), {"beside": True}),
}
LEARNT = ["sum", "mixed"]


def kinds(names: Iterable[str]) -> list[Any]:
    """Names as parameters of a test of the thorough run: to export one takes ten seconds and more."""
    return [pytest.param(name, marks=pytest.mark.thorough) for name in names]


@dataclass(frozen=True)
class Exported:
    """A prior in a folder and the file made of it."""

    folder: Path
    path: Path

    @cached_property
    def model(self) -> onnx.ModelProto:
        """As it is stored: tensors outside the file are not read."""
        return onnx.load(self.path, load_external_data=False)

    @cached_property
    def session(self) -> onnxruntime.InferenceSession:
        return onnxruntime.InferenceSession(self.path, providers=["CPUExecutionProvider"])

    @cached_property
    def trained(self) -> TrainedPrior:
        """The prior whose numbers are in the graph."""
        prior = zoo.load(self.folder)
        if not MADE[prior.description.name][1].get("float16"):
            return prior
        named = prior.machine.parameters.items()
        rounded = {name: value.half().float() if value.dim() == 2 else value for name, value in named}
        return replace(prior, machine=prior.machine.with_parameters(rounded))

    @property
    def header(self) -> Description:
        return self.trained.description

    @property
    def facts(self) -> contract.GraphFacts:
        return contract.GraphFacts.from_metadata(self.session.get_modelmeta().custom_metadata_map, "here")

    def run(self, image: np.ndarray, p: Any = 0.1, mask: Any = False, **settings: Any) -> Arrays:
        """The outputs of the graph by name; p and mask at least of rank 3, as they are."""
        inference = self.header.inference
        used = {name: settings.get(name, getattr(inference, name)) for name in ("max_iter", "tol", "damping")}
        feed = {
            "image": np.float32(image),
            "field": np.float32(image),
            "p": np.broadcast_to(np.float32(p), np.shape(p) or (1, 1, 1)),
            "mask": np.broadcast_to(mask, np.shape(mask) or (1, 1, 1)),
            "max_iter": np.array(used["max_iter"], np.int64),
            "tol": np.array(used["tol"], np.float32),
            "damping": np.array(used["damping"], np.float32),
        }
        names = [node.name for node in self.session.get_outputs()]
        wanted = {node.name: feed[node.name] for node in self.session.get_inputs()}
        return dict(zip(names, self.session.run(names, wanted), strict=True))

    def evidence(self, image: np.ndarray, p: Any = 0.1, mask: Any = False) -> Fields:
        """What the prior is told by the channels of the library."""
        if self.facts.channel == "field":
            return Fields(torch.from_numpy(np.float32(image)).flatten(1))
        ink = torch.from_numpy(image > self.header.threshold / 255).float().flatten(1)
        if self.header.task:
            return Fields(ink)
        whole = np.broadcast_to(np.float32(p), image.shape).reshape(len(image), -1)
        hidden = np.broadcast_to(mask, image.shape).reshape(len(image), -1)
        flips = BitFlip(torch.from_numpy(whole.astype(np.float64)))
        return Occlusion(torch.from_numpy(hidden.copy()), flips).evidence(ink)

    def solved(self, image: np.ndarray, p: Any = 0.1, mask: Any = False, **settings: Any) -> Solution:
        """What the library's solver finds in one try, as a graph has."""
        solver = replace(solver_of(self.header.inference), **settings)
        with torch.inference_mode(), patch("restore.solvers.starts.tracing", return_value=True):
            return solve(self.trained, solver, self.evidence(image, p, mask))


def exporter(root: Path) -> Callable[[str], Exported]:
    """What exports a prior by its name in `MADE` into a folder, the first time that any process asks for it there.

    A test that replaces functions of `restore.export.packing` does not change what others share: they are bound here.
    """
    done: dict[str, Exported] = {}

    def call(name: str) -> Exported:
        if name not in done:
            make, options = MADE[name]
            folder, beside = root / name, options.get("beside", False)
            path = folder / GRAPH if beside else root / f"{name}.onnx"
            with FileLock(root / f"{name}.lock"):
                if not path.exists():
                    prior = make()
                    zoo.save(folder, replace(prior, description=replace(prior.description, name=name)), f"# {name}\n")
                    content = beside_weights(folder) if beside else standalone(folder, **options)
                    path.write_bytes(content)
            done[name] = Exported(folder, path)
        return done[name]

    return call


def images(count: int, shape: tuple[int, int] = SHAPE, seed: int = 0) -> np.ndarray:
    return (np.random.default_rng(seed).random((count, *shape)) < 0.4).astype(np.float32)


RATES = np.random.default_rng(3).random((4, *SHAPE)).astype(np.float32)


def resealed(model: onnx.ModelProto) -> bytes:
    """A changed file under a new checksum."""
    kept = [entry for entry in model.metadata_props if entry.key != seal.KEY]
    del model.metadata_props[:]
    model.metadata_props.extend(kept)
    return seal.sealed(model.SerializeToString())


# --- small priors of every kind to store, and ways to damage what was stored ---


def prior_of(name: str = "small", shape: tuple[int, int] = (3, 5), hidden: int = 4, modes: int = 6) -> TrainedPrior:
    return random_prior(shape, hidden, modes, name)


def conditional_prior(name: str = "small") -> TrainedPrior:
    """A conditional prior; its inputs, unlike its weights, are exact in half precision."""
    plain = prior_of(name, modes=0)
    draw = torch.randn(15 + 4, 15, generator=seeded(3)).half().float()
    header = replace(
        plain.description,
        family="crbm",
        task="patch:2:0.5",
        inference=Inference("mixed_product", 9, 1e-3, 0.0, modes=0, starts=0),
    )
    assert isinstance(plain.machine, RBM)
    return replace(plain, description=header, machine=ConditionalRBM(plain.machine, draw[:15], draw[15:]))


# --- round trips ---


GENERAL: dict[str, Callable[[], TrainedPrior]] = {
    "spiked": lambda: grey_prior(SPIKED, shape=(3, 5)),
    "gaussian": lambda: grey_prior(TRUNCATED, "gaussian", shape=(3, 5)),
    "deep": lambda: grey_prior(SPIKED, "gauss-bernoulli", shape=(3, 5), deeper=(3, 2)),
    "deep-binary": lambda: grey_prior(deeper=(3,), shape=(3, 5), visible="bernoulli"),
}


# --- damage ---


Header = dict[str, Any]
Tensors = dict[str, Tensor]


def refused(call: Callable[[], object]) -> str:
    """The message of a prior that is refused: one printable line that one can read, with exit code 4."""
    with pytest.raises(ModelError) as caught:
        call()
    text = str(caught.value)
    assert caught.value.exit_code == 4 and text.isprintable() and len(text) < 1000
    return text


def rewritten(folder: Path, tensors: Callable[[Tensors], Tensors] = lambda t: t, **header: str | None) -> None:
    """Write the prior's file again with other tensors, or other header fields (None removes one)."""
    path = folder / WEIGHTS
    with safe_open(path, framework="numpy") as stored:
        old = stored.metadata()
    new = {key: value for key, value in (old | header).items() if value is not None}
    save_file({name: value.clone() for name, value in tensors(load_file(path)).items()}, path, new)


def reheaded(folder: Path, change: Callable[[Header], str | Header | None]) -> None:
    """Write a weights file with another header, its tensors as they are."""
    content = (folder / WEIGHTS).read_bytes()
    start = 8 + int.from_bytes(content[:8], "little")
    header = json.loads(content[8:start])
    changed = change(header)
    text = (changed if isinstance(changed, str) else json.dumps(changed or header)).encode()
    (folder / WEIGHTS).write_bytes(len(text).to_bytes(8, "little") + text + content[start:])


def inference(**settings: str) -> dict[str, str]:
    """The solver's settings as in a header, some of them other JSON."""
    whole = {"solver": '"tap"', "max_iter": "1000", "modes": "6", "starts": "3", **settings}
    return {"inference": "{" + ", ".join(f'"{key}": {value}' for key, value in whole.items()) + "}"}
