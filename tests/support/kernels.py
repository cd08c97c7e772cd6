"""The GPU's kernels without a GPU: on a device that is not there, in Triton's interpreter, and compiled.

`FakeTensorMode` follows devices through every operation and raises where they mix, but knows no values, so that it
cannot take a branch. Here each of its tensors has its values beside it, on the processor. What code computes on "cuda"
can then be compared with what it computes without, number by number.
"""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import fields, is_dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
import pytest
import torch
from safetensors.torch import save
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import _disable_current_modes
from torch.utils._pytree import tree_map_only

from restore.learning.run import checkpoint
from restore.solvers.messages import bp_kernel

CUDA = torch.device("cuda", 0)

aten = torch.ops.aten

IMPLICIT = "CompositeImplicitAutograd"

# These may read from another device than that of their first tensor, and are meant to.
MOVING = {aten._to_copy, aten.copy_, aten._local_scalar_dense, aten.set_}

# Their indices may be on the processor.
INDEXED = {aten.index, aten.index_put, aten.index_put_, aten._index_put_impl_}

# The devices of generators; operations see another Python object than the caller's.
_places: dict[int, torch.device] = {}


class Generator(torch.Generator):
    """A generator that says it is on "cuda", of numbers from the processor."""

    def __new__(cls, device: Any = "cpu") -> Generator:
        made = super().__new__(cls)
        _places[made._cdata] = torch.device(device)
        return made

    def __init__(self, device: Any = "cpu") -> None:
        pass

    @property
    def device(self) -> torch.device:  # type: ignore[override]
        return _places[self._cdata]

    def set_state(self, state: Tensor) -> torch.Generator:
        assert state.device.type == "cpu", "the state of a generator is on the processor"
        return super().set_state(_values(state) if isinstance(state, FakeTensor) else state)


class MixedDevices(AssertionError):
    """Code has given an operation things of several devices, which a GPU would refuse."""


class Card(FakeTensorMode):
    """See this file."""

    # Where there is a GPU, too.
    avoid_device_init = True  # type: ignore[assignment]

    def __init__(self) -> None:
        super().__init__(allow_non_fake_inputs=True, static_shapes=True)

    def held(self, values: Tensor, device: torch.device) -> FakeTensor:
        """A tensor of these values that says it is on a device."""
        with torch._C._DisableTorchDispatch(), torch.inference_mode(values.is_inference()):
            like = torch.empty_strided(values.shape, values.stride(), dtype=values.dtype, device="meta")
            made = FakeTensor(self, like, device)
        made.real_tensor = values
        return made

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func is torch.ops.prim.device.default:
            # Asked by what is not Python, which would make the device current, or start a stream there.
            return torch.device("meta") if args[0].fake_device == CUDA else args[0].fake_device
        if func is torch.ops.aten.lift_fresh.default or func is torch.ops.aten.lift.default:
            return args[0] if isinstance(args[0], FakeTensor) else self.held(args[0], torch.device("cpu"))

        if _composite(func):
            # In inference mode operations come as they were called.
            with self:
                return func.decompose(*args, **kwargs)

        given: list[FakeTensor] = []

        def real(value: Tensor) -> Tensor:
            given.append(value if isinstance(value, FakeTensor) else self.held(value, value.device))
            return _values(given[-1])

        real_args, real_kwargs = _mapped(args, real), _mapped(kwargs, real)
        asked = kwargs.get("device")
        generator = kwargs.get("generator")
        if generator is not None:
            target = asked or given[0].fake_device
            place = _places.get(generator._cdata, torch.device("cpu"))
            if torch.device(target).type != place.type:
                raise MixedDevices(f"{func} on {target} with a generator on {place}")
        where = self._device(func, given, asked)
        if "device" in kwargs:
            real_kwargs["device"] = torch.device("cpu")
        # What an operation changes in place and returns is the caller's own.
        own = {id(each.real_tensor): each for each in given}
        return _mapped(
            func(*real_args, **real_kwargs), lambda each: own[id(each)] if id(each) in own else self.held(each, where)
        )

    def _device(self, func: Any, tensors: list[FakeTensor], asked: Any) -> torch.device:
        """Where the result of an operation is; an error if what it is given is on several devices."""
        packet = func.overloadpacket
        if asked is not None and torch.device(asked).type == "meta":  # the card, as what is not Python knows it
            asked = CUDA
        if not tensors or (packet is aten._to_copy and asked is not None):
            return FakeTensor._normalize_fake_device(torch.device(asked or "cpu"))
        if packet in MOVING:
            return tensors[0].fake_device
        if packet in INDEXED:
            # A processor may say which rows of a GPU's tensor are meant.
            index, tensors = tensors[1:], [*tensors[:1], *(each for each in tensors[-1:] if packet is not aten.index)]
            if tensors[0].fake_device.type == "cpu" and any(each.fake_device.type != "cpu" for each in index):
                raise MixedDevices(f"{func} of a tensor on cpu by indices on cuda")
        try:
            return FakeTensor._find_common_device(func, tensors)[0]
        except RuntimeError as fault:
            raise MixedDevices(str(fault)) from fault


def _values(tensor: FakeTensor) -> Tensor:
    values = tensor.real_tensor
    assert values is not None, "a tensor without values"
    return values


def _mapped(thing: Any, change: Callable[[Tensor], Tensor]) -> Any:
    """What an operation takes or returns, with its tensors changed; `tree_map` takes ten times as long."""
    if isinstance(thing, Tensor):
        return change(thing)
    if isinstance(thing, tuple | list):
        return type(thing)([_mapped(each, change) for each in thing])
    if isinstance(thing, dict):
        return {name: _mapped(each, change) for name, each in thing.items()}
    return thing


@cache
def _composite(func: Any) -> bool:
    """Whether an operation is made of others on every device."""
    return func._can_decompose() and torch._C._dispatch_has_kernel_for_dispatch_key(func.name(), IMPLICIT)


class Words(TorchFunctionMode):
    """What Python asks of a tensor without an operation, or what an operation would ask of its device."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is Tensor.to:
            # Without a number it would ask which card is the present one.
            args = tuple(
                CUDA if isinstance(each, str | torch.device) and str(each) == "cuda" else each for each in args
            )
        if args and isinstance(args[0], FakeTensor):
            tensor = args[0]
            if func in (Tensor.numpy, Tensor.__array__):
                if tensor.device.type != "cpu":
                    raise TypeError("can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu()")
                return self._alone(lambda: _values(tensor).detach().numpy())
            if func is Tensor.tolist:
                return self._alone(_values(tensor).tolist)
            if func == Tensor.is_cuda.__get__:
                return tensor.fake_device.type == "cuda"
        return func(*args, **(kwargs or {}))

    @staticmethod
    def _alone(work: Any) -> Any:
        with _disable_current_modes():
            return work()


def _written(tensors: dict[str, Tensor], metadata: dict[str, str] | None = None) -> bytes:
    """The content of a file; safetensors reads memory, which must be that of the processor."""
    assert all(value.device.type == "cpu" for value in tensors.values())
    plain = {name: _values(each) if isinstance(each, FakeTensor) else each for name, each in tensors.items()}
    with _disable_current_modes():
        return save({name: value.contiguous() for name, value in plain.items()}, metadata)


@contextmanager
def card(free: int = 2**32) -> Iterator[Card]:
    """As if the machine had a GPU with this much free memory that torch alone uses: no triton, nothing compiled."""
    mode = Card()
    with (
        patch.object(torch.cuda, "is_available", lambda: True),
        patch.object(torch.cuda, "device_count", lambda: 1),
        patch.object(torch.cuda, "mem_get_info", lambda device=None: (free, 2**40)),
        patch.object(torch.cuda, "device_of", lambda tensor: nullcontext()),
        patch.object(torch, "Generator", Generator),
        patch.object(bp_kernel, "usable", lambda device: False),
        patch.object(checkpoint, "to_bytes", _written),
        patch("safetensors.torch.save", _written),
        mode,
        Words(),
    ):
        yield mode


def on_card(mode: Card, values: Tensor) -> Tensor:
    """A copy of a tensor on the card."""
    values = _values(values) if isinstance(values, FakeTensor) else values
    with _disable_current_modes():
        return mode.held(values.detach().clone(), CUDA)


def values_of(tensor: Tensor) -> Tensor:
    """The values of a tensor that must be on the card."""
    assert isinstance(tensor, FakeTensor) and tensor.fake_device.type == "cuda", f"left the card: {tensor.device}"
    return _values(tensor)


def compared(work: Callable[[Callable[[Any], Any]], Any], *, rtol: float = 1e-5, atol: float = 1e-6) -> None:
    """Check that work comes to the same on the card and without it.

    Args:
        work: given a function that brings tensors, in whatever holds them, to where it shall compute, returns what it
            has found, in tuples, dictionaries, data classes, ... Every tensor in it must be on the card.
        rtol, atol: how far values may be apart: on a processor some are computed in parts, or by another program.
    """
    wanted = _listed(work(lambda thing: thing))
    with card() as mode:
        found = _listed(work(lambda thing: _moved(thing, lambda each: on_card(mode, each))))
    assert len(found) == len(wanted) > 0
    for one, other in zip(found, wanted, strict=True):
        if isinstance(other, Tensor):
            torch.testing.assert_close(values_of(one), other, rtol=rtol, atol=atol, equal_nan=True)
        else:
            assert one == pytest.approx(other, rel=1e-4, abs=1e-6, nan_ok=True)


def _moved(thing: Any, move: Callable[[Tensor], Tensor]) -> Any:
    if isinstance(thing, Tensor):
        return move(thing)
    if hasattr(thing, "with_parameters"):  # units or a machine
        return thing.with_parameters({name: move(value) for name, value in thing.parameters.items()})
    return tree_map_only(Tensor, move, thing)


def _listed(thing: Any) -> list[Any]:
    """All tensors and numbers in something."""
    if isinstance(thing, Tensor | float | int):
        return [thing]
    if is_dataclass(thing):
        return [each for field in fields(thing) for each in _listed(getattr(thing, field.name))]
    if isinstance(thing, Mapping):
        return [each for name in sorted(thing) for each in _listed(thing[name])]
    if isinstance(thing, tuple | list):
        return [each for part in thing for each in _listed(part)]
    return []


class Launched:
    """In the place of a kernel: sees that what it is given is on the card, and laid out row by row."""

    def __init__(self) -> None:
        self.grids: list[tuple[int, ...]] = []

    def __getitem__(self, grid: tuple[int, ...]) -> Any:
        def launch(*arguments: Any, **options: Any) -> None:
            self.grids.append(grid)
            tensors = [each for each in arguments if isinstance(each, Tensor)]
            assert tensors
            for tensor in tensors:
                assert values_of(tensor).is_contiguous() and tensor.dtype in (torch.float32, torch.int32)

        return launch


needs_triton = pytest.mark.skipif(
    importlib.util.find_spec("triton") is None, reason="triton is not installed; pip install 'restore-prior[gpu]'"
)


@cache
def interpreted(name: str) -> ModuleType:
    """A copy of a module of kernels whose kernels the interpreter runs."""
    from triton import knobs
    from triton.runtime.interpreter import ReduceOps

    ReduceOps.generic_reduce = _reduced
    found = importlib.util.find_spec(name)
    assert found is not None and found.loader is not None
    spec = importlib.util.spec_from_file_location(f"interpreted_{name.rpartition('.')[2]}", found.origin)
    assert spec is not None and spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = made
    with patch.object(type(knobs.runtime), "interpret", True):
        spec.loader.exec_module(made)
    return made


def _reduced(self: Any, given: Any) -> Any:
    """What the interpreter does one number at a time, a half of them with the other half at a time."""
    assert self.axis is not None and not self.keep_dims
    types = [each.dtype for each in given]
    parts = [np.moveaxis(each.handle.data, self.axis, 0) for each in given]
    while len(parts[0]) > 1:
        half = len(parts[0]) // 2
        both = [part[:half] for part in parts], [part[half:] for part in parts]
        pairs = [self.to_tensor(part, kind) for each in both for part, kind in zip(each, types, strict=True)]
        found = self.combine_fn.fn(*pairs)
        parts = [each.handle.data for each in (found if isinstance(found, tuple) else (found,))]
    return [self.to_tensor(part[0], kind) for part, kind in zip(parts, types, strict=True)]


NUMBERS = ("height", "width", "tiles", "max_iter", "images", "count", "stride", "length", "spans")
COUNTED = ("powers", "sum_powers", "exponents", "iterations", "active", "ratio_powers")

# A multiprocessor of sm_80 and sm_90: registers, threads, programs, bytes of shared memory that programs may take.
REGISTERS, THREADS, PROGRAMS = 65536, 2048, 32
SHARED = {80: 164 * 1024, 90: 228 * 1024}


class Compiled(NamedTuple):
    """What one program takes, and the assembler's text.

    Attributes:
        registers: per thread.
        spilled: bytes of registers stored and loaded because there were not enough.
        shared: bytes.
        warps: of a program.
        ptx: the text.
    """

    registers: int
    spilled: int
    shared: int
    warps: int
    ptx: str

    def programs(self, architecture: int) -> int:
        """How many programs a multiprocessor holds at once."""
        # Registers are given to warps by 256.
        warp = -(-32 * self.registers // 256) * 256
        by_registers = REGISTERS // (warp * self.warps)
        by_shared = SHARED[architecture] // max(1, self.shared + 1024)
        return min(by_registers, by_shared, THREADS // (32 * self.warps), PROGRAMS)

    def occupancy(self, architecture: int) -> float:
        return self.programs(architecture) * 32 * self.warps / THREADS


def _kind(name: str) -> str:
    if name in ("tol", "damping"):
        return "fp32"
    return "i32" if name in NUMBERS else "*i32" if name.startswith(COUNTED) else "*fp32"


@cache
def compiled(kernel: Any, architecture: int, warps: int, **constants: int) -> Compiled:
    """Compile a kernel whose arrays begin, and whose rows end, at multiples of 16."""
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    constants = {name: value for name, value in constants.items() if name in kernel.arg_names}
    signature = {name: "constexpr" if name in constants else _kind(name) for name in kernel.arg_names}
    attributes = {
        (index,): [["tt.divisibility", 16]]
        for index, name in enumerate(kernel.arg_names)
        if signature[name].startswith("*") or name in ("width", "height")
    }
    source = ASTSource(kernel, signature, constexprs=constants, attrs=attributes)
    made = triton.compile(source, target=GPUTarget("cuda", architecture, 32), options={"num_warps": warps})
    folder = Path(next(iter(made.metadata_group.values()))).parent
    text = folder / "checked.ptx"
    text.write_text(made.asm["ptx"])
    assembler = Path(triton.__file__).parent / "backends/nvidia/bin/ptxas"
    name = re.search(r"^\.target (\w+)", made.asm["ptx"], re.MULTILINE)[1]  # type: ignore[index]
    words = [assembler, "-v", "--regAllocOptLevel=2", f"--gpu-name={name}", text, "-o", folder / "checked.cubin"]
    said = subprocess.run(words, capture_output=True, text=True, check=True).stderr
    registers = int(re.search(r"Used (\d+) registers", said)[1])  # type: ignore[index]
    spilled = sum(int(count) for count in re.findall(r"(\d+) bytes spill", said))
    return Compiled(registers, spilled, made.metadata.shared, warps, made.asm["ptx"])
