"""The convolution: each feature has the same small window at every place of a grid, or at every few."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

import torch
from torch import Tensor
from torch.nn.functional import conv2d, conv_transpose2d, pad, pixel_shuffle, pixel_unshuffle
from torch.nn.grad import conv2d_weight

from restore.couplings.contract import Coupling
from restore.tracing import tracing


@dataclass(frozen=True)
class Convolution(Coupling):
    """One weight for each unit in a feature's window: (features, channels, side, side).

    The units below are channels at each place of a grid; those above are the features at every `stride`-th place. Both
    are flat, all places of a channel side by side. What lies beyond the border is absent.

    Attributes:
        image_shape: rows and columns of the grid below.
        stride: the step between windows; their side is an odd multiple of it.

    >>> coupling = Convolution(torch.ones(1, 1, 6, 6), (3, 5), stride=2)
    >>> coupling.places, coupling.up(torch.ones(1, 15)).tolist()  # how many pixels each window holds
    ((2, 3), [[12.0, 15.0, 9.0, 12.0, 15.0, 9.0]])
    """

    any_size: ClassVar[bool] = True

    image_shape: tuple[int, int]
    stride: int = 1

    @property
    def side(self) -> int:
        return self.weights.shape[-1]

    @property
    def channels(self) -> int:
        return self.weights.shape[1]

    @property
    def places(self) -> tuple[int, int]:
        rows, columns = self.image_shape
        if self.stride == 1:
            return rows, columns
        return (rows + self.stride - 1) // self.stride, (columns + self.stride - 1) // self.stride

    @property
    def sizes(self) -> tuple[int, int]:
        below, above = (size[0] * size[1] for size in (self.image_shape, self.places))
        return below * self.channels, above * len(self.weights)

    @property
    def matrix(self) -> Tensor:
        return self.up(torch.eye(self.sizes[0], dtype=self.weights.dtype, device=self.weights.device))

    @property
    def margin(self) -> int:
        """Padding on each side: the reach of windows beyond a multiple of the stride."""
        return (self.side - self.stride) // 2

    def up(self, below: Tensor) -> Tensor:
        grid = self._pixels(below)
        dtype = below.dtype
        if tracing():
            grid = grid.float()
        # Windows that do not overlap share no blocks; a graph cannot cut a batch of unknown size into any.
        if self._in_blocks and 1 < self.stride < self.side and not tracing():
            sums = conv2d(pixel_unshuffle(grid, self.stride), self._blockwise(grid.dtype), padding=self._around)
        else:
            sums = conv2d(grid, self.weights.to(grid.dtype), stride=self.stride, padding=self.margin)
        return sums.flatten(-3).to(dtype)

    def down(self, above: Tensor) -> Tensor:
        features = self._features(above)
        dtype = above.dtype
        if tracing():
            features = features.float()
        if self._in_blocks:
            weights = self._blockwise(features.dtype).transpose(0, 1).flip(-2, -1)
            sums = conv2d(features, weights, padding=self._around)
            sums = pixel_shuffle(sums, self.stride) if self.stride > 1 else sums
        else:
            weights = self.weights.to(features.dtype)
            sums = conv_transpose2d(features, weights, stride=self.stride, padding=self.margin)
        if self.stride > 1:
            rows, columns = self.image_shape
            sums = sums.narrow(-2, 0, rows).narrow(-1, 0, columns)
        return sums.flatten(-3).to(dtype)

    def interaction(self, below: Tensor, above: Tensor) -> Tensor:
        return (self.up(below) * above).sum(-1)

    def product(self, below: Tensor, above: Tensor, onto: Tensor | None = None) -> Tensor:
        shape = tuple(self.weights.shape)
        grid, features = self._pixels(below), self._features(above)
        gradient = conv2d_weight(grid, shape, features, stride=self.stride, padding=self.margin)
        return gradient if onto is None else onto.add_(gradient)

    def tap_statistics(self, means: tuple[Tensor, Tensor], variances: tuple[Tensor, Tensor]) -> Tensor:
        total = torch.addcmul(self.product(*means), self.weights, self.product(*variances))
        return total / len(means[0])

    def centred(self, below: tuple[Tensor, Tensor], above: tuple[Tensor, Tensor]) -> Self:
        (offset, slope), (offset_above, slope_above) = below, above
        outer = self.product(torch.stack([offset, slope]), torch.stack([slope_above, offset_above]))
        return self.with_weights(self.weights - outer)

    def _pixels(self, below: Tensor) -> Tensor:
        """The grid below, (..., channels, rows, columns), up to a multiple of the stride."""
        grid = below.unflatten(-1, (self.channels, *self.image_shape))
        if self.stride == 1:
            return grid
        down, right = (count * self.stride - size for count, size in zip(self.places, self.image_shape, strict=True))
        # In a graph sizes are not known yet; this form of them is the one that its exporter simplifies at once.
        return pad(grid, (0, right, 0, down)) if tracing() or down or right else grid

    def _features(self, above: Tensor) -> Tensor:
        return above.unflatten(-1, (len(self.weights), *self.places))

    # Where the pixels of a block are channels there is no stride. Graphs then take a quarter less time, and one channel
    # alone would leave a processor's vectors empty; learning several channels is faster with a stride.
    @property
    def _in_blocks(self) -> bool:
        return self.channels == 1 or tracing()

    @property
    def _around(self) -> int:
        return self.margin // self.stride

    def _blockwise(self, dtype: torch.dtype) -> Tensor:
        """(features, channels · stride², side / stride, side / stride)."""
        across = self.side // self.stride
        parts = self.weights.to(dtype).unflatten(-1, (across, self.stride)).unflatten(-3, (across, self.stride))
        return parts.permute(0, 1, 3, 5, 2, 4).flatten(1, 3)
