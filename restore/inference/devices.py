"""Choose where to compute."""

from __future__ import annotations

import torch

from restore.errors import UsageError, option, shown


def pick_device(name: str = "auto") -> torch.device:
    """Find the device called "auto", which is CUDA if there is one, "cpu", "cuda" or "cuda:N".

    Raises:
        UsageError: if there is no such device; the message lists the devices there are.
    """
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if name == "auto":
        return torch.device("cuda" if count else "cpu")
    known = ["cpu", *(["cuda"] if count else []), *(f"cuda:{index}" for index in range(count))]
    if name not in known:
        device = option("device", shown(str(name)))
        if name == "mps":
            raise UsageError("has no double precision, which solvers need; give coreml, in onnxruntime, or cpu", device)
        other = "another build of torch (https://pytorch.org/get-started) may know more"
        raise UsageError(f"torch finds no such device; choose one of auto, {', '.join(known)}; {other}", device)
    return torch.device(name)


def room(device: torch.device) -> int | None:
    """Bytes that work may take on a GPU, half of what is free there; None on a processor."""
    return int(torch.cuda.mem_get_info(device)[0]) // 2 if device.type == "cuda" else None
