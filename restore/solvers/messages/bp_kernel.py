"""The C kernel of belief propagation for processors: built on first use, if there is a C compiler.

If there is none, or the kernel does not fit the machine at hand, `BeliefPropagation` uses its plain form.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import os
import platform
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad

SOURCE = Path(__file__).with_suffix(".c")
KIND_CODES = {"sum": 0, "max": 1, "mixed": 2}

# With larger weights the odds of a weight and a belief cannot be multiplied in single precision; see the kernel.
LARGEST_WEIGHT = 30.0

# Fields are limited so that exponents, and sums of them, fit into 32 bits.
LARGEST_FIELD = 1e8

# The kernel takes visible units in multiples of this, as in its source.
ROW_MULTIPLE = 4

# And hidden units: the numbers in single precision of a vector register of 512 bits.
LANES = 16

# Its arrays are aligned to this many bytes, which are such a register and a line of the cache.
ALIGNMENT = 4 * LANES

# The field of units added to reach such a multiple.
OFF = -1000.0

# Products of messages stay below this, in nats, before their exponents are split off.
HEADROOM = 80.0


@dataclass(frozen=True)
class KernelResult:
    """The result of the kernel; see `restore.solvers.Solution`.

    `pairs` is a sum over the batch; `log_partition` is None except for sum-product.
    """

    visible: Tensor
    hidden: Tensor
    pairs: Tensor | None
    log_partition: Tensor | None
    iterations: Tensor
    residual: Tensor


def compilers() -> list[str]:
    """The C compilers of this machine, the user's choice first."""
    names = (os.environ.get("CC", "cc"), "cc", "gcc", "clang")
    return list(dict.fromkeys(path for path in map(shutil.which, names) if path))


@lru_cache(maxsize=1)
def library() -> ctypes.CDLL | None:
    """The kernel, built if needed; None if that is impossible."""
    import platformdirs

    kept = _loaded(Path(platformdirs.user_cache_dir("restore")) / "kernels")
    if kept is not None:
        return kept
    # If the cache is read-only, or may not hold programs, building takes a second per process. Once loaded, the kernel
    # does not need its file.
    with contextlib.suppress(OSError), tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        return _loaded(Path(folder))
    return None


def _loaded(folder: Path) -> ctypes.CDLL | None:
    """The kernel from a folder, by the first compiler and options that work."""
    for compiler, options in product(compilers(), (["-O3", "-march=native"], ["-O3"])):
        try:
            return ctypes.CDLL(str(_built(compiler, options, folder)))
        except (OSError, subprocess.SubprocessError):
            continue
    return None


def _built(compiler: str, options: list[str], folder: Path, source: Path = SOURCE) -> Path:
    """Build the library in a folder; its name depends on source, compiler and processor."""
    version = subprocess.run([compiler, "--version"], capture_output=True, check=True, timeout=60).stdout
    digest = hashlib.sha256(source.read_bytes() + version + " ".join([compiler, *options, _processor()]).encode())
    target = folder / f"{source.stem}-{digest.hexdigest()[:32]}.so"
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    if not _ours_alone(folder, stat.S_ISDIR):
        raise PermissionError(f"{folder}: others may change what is in it")
    if not _ours_alone(target, stat.S_ISREG):
        with tempfile.TemporaryDirectory(dir=folder) as temporary:
            made = Path(temporary) / target.name
            command = [compiler, *options, "-std=gnu11", "-shared", "-fPIC", "-o", str(made), str(source), "-lm"]
            subprocess.run(command, capture_output=True, check=True, timeout=300)
            # Flushed to disk before it has its name: loading half a library would crash every process.
            with made.open("r+b") as stream:
                os.fsync(stream.fileno())
            made.chmod(0o700)
            made.replace(target)
    return target


def _ours_alone(path: Path, kind: Callable[[int], bool]) -> bool:
    """True if a path is of this kind, no link, and nobody but this user can change it."""
    try:
        state = path.lstat()
    except FileNotFoundError:
        return False
    # Windows has no owners.
    owned = not hasattr(os, "getuid") or (state.st_uid == os.getuid() and not state.st_mode & 0o022)
    return kind(state.st_mode) and owned


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.exists() else []
    flags = next((line for line in lines if line.startswith(("flags", "Features"))), "")
    return f"{platform.machine()} {platform.processor()} {flags}"


def usable(device: torch.device) -> bool:
    """True if a kernel for this kind of device can be built here: this one, or that of `bp_triton.py`."""
    if device.type == "cuda":
        # Triton builds the launchers of its kernels with a C compiler.
        return find_spec("triton") is not None and bool(compilers())
    return device.type == "cpu" and library() is not None


def largest_weight(weights: Tensor) -> float | None:
    """The size of the largest weight, or None if no kernel can handle a machine with these weights."""
    if weights.dtype != torch.float32 or weights.numel() == 0:
        return None
    # One pass; `abs` would copy the weights first.
    smallest, largest = map(float, torch.aminmax(weights))
    size = max(-smallest, largest)
    return size if size <= LARGEST_WEIGHT and usable(weights.device) else None


class KernelSettings(NamedTuple):
    """Kind of messages and limits of the iteration; see `BeliefPropagation`."""

    kind: str
    max_iter: int
    tol: float


def memory(weights: Tensor, pairs: bool) -> int:
    """Bytes that the kernel takes per thread, for any size of the batch."""
    rows, columns = _padded(weights)
    return 4 * (_work(rows, columns) + pairs * rows * columns)


def run(
    weights: Tensor,
    visible_fields: Tensor,
    hidden_fields: Tensor,
    settings: KernelSettings,
    *,
    largest: float,
    threads: int,
    pairs: bool,
) -> KernelResult:
    """Solve a batch, with its images divided among threads.

    Args:
        weights: (D, H), float32, accepted by `largest_weight`.
        visible_fields: (batch, D), float32, at most `LARGEST_FIELD` in size.
        hidden_fields: (batch, H), float32, at most `LARGEST_FIELD` in size.
        settings: kind of messages and limits of the iteration.
        largest: the largest weight.
        threads: at most this many.
        pairs: True to sum P(v = h = 1) over the batch.
    """
    kernel = library()
    assert kernel is not None
    (visible, hidden) = weights.shape
    (rows, columns) = _padded(weights)
    batch = len(visible_fields)
    exponentials = _aligned(rows, columns)
    torch.exp(weights, out=exponentials[:visible, :hidden])
    exponentials[visible:] = exponentials[:, hidden:] = 1
    fields = _filled(visible_fields, rows), _filled(hidden_fields, columns)
    means, answers = torch.empty(batch, rows), torch.empty(batch, columns)
    residual = torch.empty(batch)
    iterations = torch.empty(batch, dtype=torch.int64)
    log_z = torch.empty(batch, dtype=torch.float64) if settings.kind == "sum" else None
    every = max(1, min(16, int(HEADROOM / max(largest, 1e-3))))

    def part(first: int, last: int) -> Tensor | None:
        work = _aligned(1, _work(rows, columns))
        own_pairs = _aligned(rows, columns).zero_() if pairs else None
        kernel.bp_solve(
            _at_row(exponentials, 0),
            _at_row(fields[0], first),
            _at_row(fields[1], first),
            ctypes.c_int64(last - first),
            ctypes.c_int64(rows),
            ctypes.c_int64(columns),
            ctypes.c_int(KIND_CODES[settings.kind]),
            ctypes.c_int(min(settings.max_iter, 2**31 - 1)),
            ctypes.c_float(settings.tol),
            ctypes.c_int(every),
            _at_row(work, 0),
            _at_row(means, first),
            _at_row(answers, first),
            _at_row(own_pairs, 0),
            _at_row(log_z, first),
            _at_row(iterations, first),
            _at_row(residual, first),
        )
        return own_pairs

    shares = torch.arange(batch).tensor_split(max(1, min(threads, batch)))
    bounds = [(int(share[0]), int(share[-1]) + 1) for share in shares]
    if len(bounds) == 1:
        sums = [part(*bounds[0])]
    else:
        with ThreadPoolExecutor(len(bounds)) as pool:
            sums = list(pool.map(lambda pair: part(*pair), bounds))
    both = torch.stack([value[:visible, :hidden] for value in sums if value is not None]).sum(0) if pairs else None
    return KernelResult(means[:, :visible], answers[:, :hidden], both, log_z, iterations, residual)


def _work(rows: int, columns: int) -> int:
    """Floats of working memory; see the kernel."""
    return rows * columns + 2 * rows + 11 * columns


def _padded(weights: Tensor) -> tuple[int, int]:
    """The numbers of units, rounded up to multiples."""
    visible, hidden = weights.shape
    return -(-visible // ROW_MULTIPLE) * ROW_MULTIPLE, -(-hidden // LANES) * LANES


def _filled(fields: Tensor, units: int) -> Tensor:
    return pad(fields, (0, units - fields.shape[-1]), value=OFF).contiguous()


def _aligned(rows: int, columns: int) -> Tensor:
    """An uninitialised matrix, aligned for the kernel's vectors."""
    buffer = torch.empty(rows * columns + ALIGNMENT // 4)
    offset = (-buffer.data_ptr() % ALIGNMENT) // 4
    return buffer[offset : offset + rows * columns].view(rows, columns)


def _at_row(values: Tensor | None, row: int) -> ctypes.c_void_p:
    return ctypes.c_void_p(0 if values is None else values[row:].data_ptr())
