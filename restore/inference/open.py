"""Open priors: in onnxruntime, which starts at once, or in torch, which knows every device."""

from __future__ import annotations

import copy
import sys
import threading
from dataclasses import replace
from functools import cached_property
from importlib.util import find_spec
from typing import TYPE_CHECKING, get_args

from restore.errors import ModelError, UsageError, extra, option, shown
from restore.inference.options import EngineName, Options
from restore.zoo import GRAPH, PARTS_PRIOR, candidates, describe, find, leave_out, reader, search
from restore.zoo.made import made_here

if TYPE_CHECKING:
    from pathlib import Path

    from restore.channels.damage import Damage, Observed
    from restore.inference.engine import PictureEngine
    from restore.zoo.description import Description

# The devices that every engine has.
EVERYWHERE = ("auto", "cpu")


def open_engine(
    model: str,
    engine: EngineName = "auto",
    device: str = "auto",
    max_memory: int | None = None,
    solver: str | None = None,
) -> PictureEngine:
    """Load a prior into an engine; see `Options`.

    The engine "auto" takes the prior's graph if there is one and no option needs torch; the device "auto" is the CPU.

    Args:
        model: name or path of a prior, or a file made by `restore export`.
        engine, device, max_memory, solver: as in `Options`; `max_memory`, `solver` and some devices need torch.

    Raises:
        UsageError: if the options do not fit each other or the prior, or a library is not installed.
        ModelError: if there is no such prior, its file is damaged, or it lacks what the engine needs.
    """
    _check_options(engine, max_memory)
    path = find(model)
    beyond = option("max_memory") if max_memory is not None else ""
    if not _device_in_onnx(device, engine, path):
        beyond = option("device", shown(device))
    if engine == "onnx" and beyond:
        remedy = f"leave it out, or give {option('engine', 'torch')}"
        raise UsageError(f"onnxruntime computes on the CPU without it; {remedy}", beyond)
    if not path.is_dir() and (engine == "torch" or beyond):
        raise ModelError("is a graph for onnxruntime alone; name the prior it was made from", path)
    if not beyond and solver is not None and engine == "auto" and path.is_dir() and _changes(path, solver):
        beyond = option("solver", solver)
    graph = device not in EVERYWHERE or not path.is_dir() or (path / GRAPH).is_file()
    if engine == "onnx" or (engine == "auto" and not beyond and graph):
        loaded = _in_onnx(path, device)
    else:
        loaded = _in_torch(model, device, max_memory, beyond)
    return loaded if solver is None else _solved_by(solver, loaded)


def _check_options(engine: str, max_memory: int | None) -> None:
    if engine not in get_args(EngineName):
        raise UsageError(f"engine must be one of {', '.join(get_args(EngineName))}, not {shown(str(engine))}")
    if max_memory is not None and (not isinstance(max_memory, int) or max_memory < 1):
        raise UsageError(f"max_memory is a number of bytes, such as {2**31}, not {max_memory!r}")


def _device_in_onnx(device: str, engine: str, path: Path) -> bool:
    """True for a device of onnxruntime, unless torch is to compute on it, as on CUDA where there is torch."""
    if device in EVERYWHERE:
        return True
    from restore.inference.onnx.engine import PROVIDERS

    in_torch = device.startswith("cuda") and engine == "auto" and path.is_dir() and find_spec("torch") is not None
    return device.partition(":")[0] in PROVIDERS and engine != "torch" and not in_torch


def _changes(path: Path, solver: str) -> bool:
    header = describe(path)
    return header.with_solver(solver) != header


def _in_onnx(path: Path, device: str) -> PictureEngine:
    if path.is_dir() and not (path / GRAPH).is_file():
        remedy = f"make it with `restore export --beside`, or give {option('engine', 'torch')}"
        raise ModelError(f"has no {GRAPH} for onnxruntime; {remedy}", path)
    from restore.inference.onnx.engine import OnnxEngine

    return OnnxEngine.load(path, device)


def _in_torch(model: str, device: str, max_memory: int | None, asker: str) -> PictureEngine:
    require_torch(asker or shown(model))
    from restore.inference.torch_engine import Engine

    return Engine.load(model, "cpu" if device == "auto" else device, max_memory)


def _solved_by(solver: str, engine: PictureEngine) -> PictureEngine:
    """An engine with another solver; raises UsageError if a graph, which holds one alone, has another."""
    header = engine.header
    if header.with_solver(solver) == header:
        return engine
    if engine.backend == "onnx":
        fault = f"{option('solver', solver)}: the graph of {shown(header.name)} holds {header.inference.solver} alone"
        raise UsageError(f"{fault}; leave it out, or give {option('engine', 'torch')} and the prior by name")
    from restore.inference.torch_engine import Engine

    assert isinstance(engine, Engine)
    return replace(engine, trained=replace(engine.trained, description=header.with_solver(solver)))


class Engines:
    """The priors of a run, each opened once, when it is first needed."""

    def __init__(self, options: Options, only: PictureEngine | None = None) -> None:
        """Open what `options` names, or use an engine that is open already."""
        self._options = options
        self._only = only if only is None or options.solver is None else _solved_by(options.solver, only)
        self._opened: dict[tuple[str, EngineName, str | None], PictureEngine | ModelError] = {}
        self._turn = threading.Lock()
        # One prior was named, so that there is none to choose.
        self.named = only is not None or options.model != "auto"

    def for_picture(self, picture: Observed, grey: bool | None = None) -> tuple[PictureEngine, ...]:
        """The priors to choose among for a picture: one if it was named, else those that may suit it.

        Those of grey pictures if it is `grey`; by default it is if its damage says so.

        Raises:
            ModelError: if none can be opened; one of several that cannot is left out with a warning.
        """
        if (only := self.only) is not None:
            return (only,)
        grey = picture.damage.sigma is not None if grey is None else grey
        opened: list[PictureEngine] = []
        faults: list[ModelError] = []
        for name in candidates(picture.shape[:2], grey, self._options.fit):
            try:
                opened.append(self.open(name))
            except ModelError as fault:
                faults.append(fault)
        if not opened:
            raise faults[0]
        for text in map(str, faults):
            leave_out(text)
        return _able(tuple(opened), picture.damage) if len(opened) > 1 else tuple(opened)

    @property
    def only(self) -> PictureEngine | None:
        """The prior that was named, None for `auto`; raises ModelError if it cannot be opened."""
        return self._only or (self.open(self._options.model) if self.named else None)

    def in_colour(self, damage: Damage) -> bool:
        """True if the prior restores colours; if none is named, True for Gaussian noise. Else luminance is read."""
        only = self.only
        return damage.sigma is not None if only is None else only.header.kind.photographs

    @cached_property
    def reader(self) -> PictureEngine:
        """The prior that reads grey pages, which may be the one that was named; raises ModelError if there is none."""
        only = self.only
        return only if only is not None and only.header.kind.pages else self._for_pages(reader())

    @cached_property
    def parts(self) -> PictureEngine:
        """The prior that tells which parts of a picture are a page; raises ModelError if there is none."""
        return self._for_pages(PARTS_PRIOR)

    def _for_pages(self, name: str) -> PictureEngine:
        """A prior with its own solver, whatever the one that was named has."""
        if not name:
            raise ModelError(f"no prior reads grey pages; give {option('p')}")
        return self.with_options(replace(self._options, solver=None)).open(name)

    def open(self, name: str) -> PictureEngine:
        """A prior by its name; raises ModelError, each time the same, if it cannot be opened.

        A graph is a program: of a prior that nobody named, only a published one, or one made here, is run. The prior
        needs torch without it, which takes seconds to load: nobody asked for that.
        """
        options = self._options
        folder = find(name)
        trusted = self.named or search.is_published(folder) or made_here(folder)
        key = name, options.engine if trusted else "torch", options.solver
        with self._turn:
            if key not in self._opened:
                try:
                    if not trusted:
                        self._check_torch(folder)
                    self._opened[key] = open_engine(*key[:2], options.device, options.max_memory, options.solver)
                except ModelError as fault:
                    self._opened[key] = fault
            opened = self._opened[key]
        if isinstance(opened, ModelError):
            raise opened
        return opened

    def _check_torch(self, folder: Path) -> None:
        """Raise ModelError for a prior that `auto` would need torch for, unless torch is wanted or at hand."""
        if find_spec("torch") is None:
            named = f"name it with {option('model')}, or {extra('torch')}"
            raise ModelError(f"without torch its graph runs only if it is named; {named}", folder.name)
        if "torch" not in sys.modules and self._options.engine != "torch":
            words = "--beside --overwrite" if (folder / GRAPH).exists() else "--beside"
            makes = f"`restore export {folder.name} {words}` makes one"
            raise ModelError(f"has no graph that was made here, and torch takes seconds to load; {makes}", folder.name)

    def with_options(self, options: Options) -> Engines:
        """The same open priors, for other options of one engine, device, memory and solver; threads may share them."""
        again = copy.copy(self)
        again._options = options
        again.named = options.model != "auto"
        return again


def assumed(damage: Damage, header: Description) -> Damage:
    """The damage with a level to be found if the caller says nothing and the prior has to know."""
    if header.kind.pages and not damage.touched:
        return replace(damage, p="scan")
    if damage.touched or damage.hidden is not None or header.task:
        return damage
    return replace(damage, sigma="auto") if header.grey else replace(damage, p="auto")


def _able(engines: tuple[PictureEngine, ...], damage: Damage) -> tuple[PictureEngine, ...]:
    """The priors that take such damage; all if none does, of which the first says why."""

    def takes(engine: PictureEngine) -> bool:
        try:
            engine.header.check_damage(assumed(damage, engine.header))
        except UsageError:
            return False
        return True

    return tuple(filter(takes, engines)) or engines


def require_torch(asker: str) -> None:
    """Raise UsageError, which names what needs torch, if it is not installed."""
    if find_spec("torch") is None:
        raise UsageError(f"needs torch; {extra('torch')}", asker)
