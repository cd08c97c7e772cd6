"""Binary images packed eight pixels to a byte: first pixel in the highest bit, last byte filled up with zeros."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import pad

# What each bit of a byte counts for, from the highest.
BIT_VALUES = (128, 64, 32, 16, 8, 4, 2, 1)


def pack(images: Tensor) -> Tensor:
    """Pack images (..., pixels) of zeros and ones into bytes (..., bytes)."""
    places = torch.tensor(BIT_VALUES, dtype=torch.uint8, device=images.device)
    return (_bytewise(images.to(torch.uint8)) * places).sum(-1, dtype=torch.uint8)


def _bytewise(values: Tensor) -> Tensor:
    """Values of pixels (..., pixels) by eights, (..., bytes, 8); the last are filled up with zeros."""
    missing = -values.shape[-1] % 8
    return pad(values, (0, missing)).unflatten(-1, (-1, 8))


def unpack(packed: Tensor, pixels: int) -> Tensor:
    """Unpack bytes (..., bytes) into boolean images (..., pixels)."""
    places = torch.tensor(BIT_VALUES, dtype=torch.uint8, device=packed.device)
    # No comparison: onnxruntime 1.20 has none for bytes.
    return (packed[..., None] & places).bool().flatten(-2)[..., :pixels]


def inner_products(fields: Tensor, packed: Tensor) -> Tensor:
    """Sums of fields (batch, pixels) over the white pixels of packed images (images, bytes); (batch, images).

    Images stay packed: a table for each byte holds the sum for each of its 256 values. A GPU multiplies faster than it
    looks up.
    """
    if fields.is_cuda:
        return fields @ unpack(packed, fields.shape[-1]).to(fields.dtype).T
    values = torch.arange(256, dtype=torch.uint8, device=packed.device)[:, None]
    tables = _bytewise(fields) @ unpack(values, 8).to(fields.dtype).T
    entries = packed + 256 * torch.arange(packed.shape[-1], device=packed.device)
    return tables.flatten(1).index_select(1, entries.flatten()).unflatten(1, packed.shape).sum(-1)
