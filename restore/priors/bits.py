"""Binary images, eight pixels to a byte: the first pixel in the highest bit, the last byte filled up with zeros."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import pad

PLACES = (128, 64, 32, 16, 8, 4, 2, 1)


def pack(images: Tensor) -> Tensor:
    """Bytes (..., bytes) of images (..., pixels) whose values are 0 and 1."""
    places = torch.tensor(PLACES, dtype=torch.uint8, device=images.device)
    bits = pad(images.to(torch.uint8), (0, -images.shape[-1] % 8)).unflatten(-1, (-1, 8))
    return (bits * places).sum(-1, dtype=torch.uint8)


def unpack(packed: Tensor, pixels: int) -> Tensor:
    """Images (..., pixels), boolean, of bytes (..., bytes)."""
    places = torch.tensor(PLACES, dtype=torch.uint8, device=packed.device)
    # Not a comparison, which onnxruntime 1.20 does not know for bytes.
    return (packed[..., None] & places).bool().flatten(-2)[..., :pixels]


def inner_products(fields: Tensor, packed: Tensor) -> Tensor:
    """Sums of fields (batch, pixels) over the pixels that are 1 in images (images, bytes); shape (batch, images).

    The images stay packed: for every byte there is a table of what its 256 values add.
    """
    bytewise = pad(fields, (0, -fields.shape[-1] % 8)).unflatten(-1, (-1, 8))
    values = torch.arange(256, dtype=torch.uint8, device=packed.device)[:, None]
    tables = bytewise @ unpack(values, 8).to(fields.dtype).T
    entries = packed + 256 * torch.arange(packed.shape[-1], device=packed.device)
    return tables.flatten(1).index_select(1, entries.flatten()).unflatten(1, packed.shape).sum(-1)
