"""The GPU's kernels compiled without a GPU, and what the assembler says of them."""

from __future__ import annotations

import re
import subprocess
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

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
