"""Choose where to compute."""

from __future__ import annotations

import torch

from restore.errors import UsageError, option, shown

# A GPU is worth its start, some two seconds, from so many images on: in that time a processor restores as many digits
# by TAP (benchmarks/README.md). `benchmarks/gpu.py` measures it where there is a GPU.
MANY = 256


def pick_device(name: str = "auto", images: int | None = None) -> torch.device:
    """Find the device called "auto", "cpu", "cuda" or "cuda:N".

    "auto" is CUDA if there is one, unless it is known that there are few `images` to restore.

    Raises:
        UsageError: if there is no such device; the message lists the devices there are.
    """
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if name == "auto":
        return torch.device("cuda" if count and (images is None or images >= MANY) else "cpu")
    known = ["cpu", *(["cuda"] if count else []), *(f"cuda:{index}" for index in range(count))]
    if name not in known:
        asked = option("device", shown(str(name)))
        if name == "mps":
            raise UsageError("has no double precision, which solvers need; give coreml, in onnxruntime, or cpu", asked)
        other = "another build of torch (https://pytorch.org/get-started) may know more"
        raise UsageError(f"torch finds no such device; choose one of auto, {', '.join(known)}; {other}", asked)
    return torch.device(name)


def room(device: torch.device) -> int | None:
    """Bytes that work may take on a GPU, half of what is free there; None on a processor."""
    return int(torch.cuda.mem_get_info(device)[0]) // 2 if device.type == "cuda" else None
