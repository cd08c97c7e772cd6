"""Binary images in bytes: the same as numpy's packing, and sums over packed pixels as over spread ones."""

from __future__ import annotations

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from restore.priors.bits import inner_products, pack, unpack

SHAPES = st.tuples(st.integers(0, 5), st.integers(1, 40), st.integers(0, 2**32 - 1))


def drawn(count: int, pixels: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).random((count, pixels)) < 0.5


@settings(max_examples=80)
@given(SHAPES)
def test_packing_is_numpys_and_unpacking_undoes_it(shape: tuple[int, int, int]) -> None:
    images = drawn(*shape)
    for values in (images, images.astype(np.uint8), images.astype(np.float32), images.astype(np.int64)):
        packed = pack(torch.from_numpy(values))
        assert packed.dtype == torch.uint8
        np.testing.assert_array_equal(packed, np.packbits(images, axis=-1))
        spread = unpack(packed, shape[1])
        assert spread.dtype == torch.bool
        np.testing.assert_array_equal(spread, images)


@settings(max_examples=60)
@given(SHAPES, st.integers(1, 4), st.sampled_from([torch.float32, torch.float64]))
def test_inner_products_are_those_of_spread_images(shape: tuple[int, int, int], batch: int, dtype: torch.dtype) -> None:
    images = torch.from_numpy(drawn(*shape))
    fields = torch.randn(batch, shape[1], generator=torch.Generator().manual_seed(shape[2]), dtype=dtype)
    products = inner_products(fields, pack(images))
    assert products.dtype == dtype and products.shape == (batch, shape[0])
    room = 1e-5 if dtype == torch.float32 else 1e-13
    torch.testing.assert_close(products, fields @ images.to(dtype).T, rtol=room, atol=room)


def test_inner_products_of_whole_numbers_are_exact() -> None:
    """Evidence of one flip probability is: ties stay ties."""
    images = torch.from_numpy(drawn(200, 784, 1))
    fields = torch.where(torch.from_numpy(drawn(5, 784, 2)), 1.0, -1.0)
    assert torch.equal(inner_products(fields, pack(images)), (fields.double() @ images.double().T).float())
