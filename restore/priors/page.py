"""Conditional convolutional machines: a grey page sets the fields of a machine over its ink (CRBM-BP, sec. 3.2)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

from torch import Tensor
from torch.nn.functional import avg_pool2d

from restore.channels.views import enlarged, views_of, whole
from restore.couplings.convolution import Convolution
from restore.fields import Fields
from restore.priors.convolutional import ConvolutionalDBM

# The side of the blocks that become a pixel at half size.
BLOCK = 2

# The least precision to divide by, so that one of 0 does no harm.
TINY = 1e-6


@dataclass(frozen=True)
class ConditionalDBM(ConvolutionalDBM):
    """A convolutional deep machine p(v, h | x) whose biases depend on a grey page x, by kernels over its views.

    As in the conditional RBM, x has weights to pixels and to hidden units: in `shared`, `inputs.0` (1, views, side,
    side) to pixels, and `inputs.L` (features, views, side, side) to the layers that are as fine as the page.

    Attributes:
        page: the evidence that it is under, if any.
        small: the machine under the page at half its size, where a solver has asked for it.

    >>> import torch
    >>> from restore.channels.views import VIEWS
    >>> shared = {"weights.0": torch.zeros(1, 1, 3, 3), "units.0.centre": torch.full((1,), 0.5)}
    >>> shared |= {f"units.{layer}.bias": torch.zeros(1) for layer in range(2)}
    >>> shared |= {f"inputs.{layer}": torch.zeros(1, VIEWS, 3, 3) for layer in range(2)}
    >>> shared["inputs.0"][0, 0, 1, 1] = -1  # darker than the paper: ink, which is 0
    >>> page = torch.full((1, 32 * 32), 0.8)
    >>> page[0, 500:506] = 0.1
    >>> machine = ConditionalDBM.of(shared, (32, 32), [(1, "spin")]).tilt(Fields(page, torch.ones_like(page)))
    >>> bias = machine.layers[0].parameters["bias"][0]
    >>> bool(bias[503] < 0 < bias[100])
    True
    """

    page: Fields | None = None
    small: ConditionalDBM | None = None

    @property
    def image_shape(self) -> tuple[int, int]:
        lowest = self.couplings[0]
        assert isinstance(lowest, Convolution)
        return lowest.image_shape

    def tilt(self, *fields: Fields | None) -> Self:
        return replace(super().tilt(*fields), page=fields[0], small=None)

    def rows(self, index: Tensor) -> Self:
        page = None if self.page is None else self.page.mapped(lambda values: _rows_of(values, index))
        small = None if self.small is None else self.small.rows(index)
        return replace(super().rows(index), page=page, small=small)

    def heard(self, evidence: Fields) -> list[Fields | None]:
        """The fields that a page, given as evidence on the image (batch, D): its grey levels, gives each layer."""
        return self.through_inputs(views_of_page(evidence, self.image_shape).flatten(1))

    @cached_property
    def halved(self) -> ConditionalDBM:
        """The same machine under the page at half its size, which has to be given."""
        if self.small is not None:
            return self.small
        assert self.page is not None
        grey, visible = levels_of(self.page)
        rows, columns = self.image_shape
        share = halved(visible, self.image_shape)
        light = halved(grey * visible, self.image_shape) / share.clamp_min(1 / BLOCK**2)
        smaller = self.of(self.shared, ((rows + 1) // BLOCK, (columns + 1) // BLOCK), self.kinds)
        seen = (share > 0).to(light)
        return smaller.tilt(Fields(light * seen, seen))


def halved(values: Tensor, image_shape: tuple[int, int]) -> Tensor:
    """The averages of an image (batch, D) over blocks of 2x2 pixels, its last row and column repeated if need be."""
    return avg_pool2d(whole(values.reshape(-1, 1, *image_shape), BLOCK), BLOCK).flatten(1)


def doubled(values: Tensor, image_shape: tuple[int, int]) -> Tensor:
    """An image at half its size (batch, D) at an image's shape again, linear between the centres of pixels."""
    rows, columns = image_shape
    grid = values.reshape(-1, 1, (rows + 1) // BLOCK, (columns + 1) // BLOCK)
    return enlarged(grid, image_shape, BLOCK).flatten(1)


def _rows_of(values: Tensor, index: Tensor) -> Tensor:
    return values.index_select(0, index) if values.dim() > 1 and len(values) > 1 else values


def views_of_page(evidence: Fields, image_shape: tuple[int, int]) -> Tensor:
    """The views (batch, VIEWS, H, W) of pages given as evidence on the image (batch, D): their grey levels.

    Hidden pixels have precision 0. Grey levels are given times their precision, so its size does not matter.
    """
    return views_of(*(values.reshape(-1, 1, *image_shape) for values in levels_of(evidence)))


def levels_of(evidence: Fields) -> tuple[Tensor, Tensor]:
    """The grey levels (batch, D) of pages given as evidence, and 1 where they are visible, else 0."""
    visible = (evidence.quadratic > 0).to(evidence.linear).expand_as(evidence.linear)
    return evidence.linear / evidence.quadratic.clamp_min(TINY), visible
