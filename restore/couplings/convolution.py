"""The convolution: each feature has the same small window at every position of an image."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

import torch
from torch import Tensor
from torch.nn.functional import conv2d, conv_transpose2d, pad, pixel_shuffle, unfold

from restore.couplings.contract import Coupling
from restore.tracing import tracing

# The fields on a block of pixels, a square of this side, are the channels of one convolution: a convolution into one
# channel would leave a processor's vectors empty.
SQUARE = 4


@dataclass(frozen=True)
class Convolution(Coupling):
    """One weight for each pixel of a feature's window: (features, 1, side, side).

    The units below are the pixels of an image; those above are the features at each place where their window holds a
    pixel, (features, H + side - 1, W + side - 1). Both are flat.

    Attributes:
        image_shape: (H, W).

    >>> coupling = Convolution(torch.tensor([[[[1.0, 2.0], [0.0, 0.0]]]]), (1, 2))  # to the left, and to the right
    >>> coupling.up(torch.tensor([[1.0, 1.0]])).reshape(2, 3).tolist()  # the lower row of windows, and the upper
    [[0.0, 0.0, 0.0], [2.0, 3.0, 1.0]]
    """

    any_size: ClassVar[bool] = True

    image_shape: tuple[int, int]

    @property
    def side(self) -> int:
        return self.weights.shape[-1]

    @property
    def places(self) -> tuple[int, int]:
        """Rows and columns of positions of a window."""
        return self.image_shape[0] + self.side - 1, self.image_shape[1] + self.side - 1

    @property
    def sizes(self) -> tuple[int, int]:
        pixels, places = (size[0] * size[1] for size in (self.image_shape, self.places))
        return pixels, len(self.weights) * places

    @property
    def matrix(self) -> Tensor:
        return self.up(torch.eye(self.sizes[0], dtype=self.weights.dtype, device=self.weights.device))

    def up(self, below: Tensor) -> Tensor:
        sums = _convolved(self._pixels(below), self.weights, self.side - 1)
        return sums.flatten(-3)

    def down(self, above: Tensor) -> Tensor:
        features = self._features(above)
        sums = _transposed_in_graph(features, self.weights) if tracing() else self._transposed(features)
        return sums.flatten(-3)

    def _transposed(self, features: Tensor) -> Tensor:
        """The fields on pixels from all features, a block at a time."""
        height, width = self.image_shape
        padded = pad(features, (0, -width % SQUARE, 0, -height % SQUARE))
        return pixel_shuffle(conv2d(padded, _blockwise(self.weights), stride=SQUARE), SQUARE)[..., :height, :width]

    def interaction(self, below: Tensor, above: Tensor) -> Tensor:
        return (self.up(below) * above).sum(-1)

    def product(self, below: Tensor, above: Tensor, onto: Tensor | None = None) -> Tensor:
        windows = unfold(self._pixels(below), self.side, padding=self.side - 1)
        gradient = torch.einsum("nwp,nfp->fw", windows, self._features(above).flatten(2)).reshape(self.weights.shape)
        return gradient if onto is None else onto.add_(gradient)

    def tap_statistics(self, means: tuple[Tensor, Tensor], variances: tuple[Tensor, Tensor]) -> Tensor:
        total = torch.addcmul(self.product(*means), self.weights, self.product(*variances))
        return total / len(means[0])

    def centred(self, below: tuple[Tensor, Tensor], above: tuple[Tensor, Tensor]) -> Self:
        (offset, slope), (offset_above, slope_above) = below, above
        outer = self.product(torch.stack([offset, slope]), torch.stack([slope_above, offset_above]))
        return self.with_weights(self.weights - outer)

    def _pixels(self, below: Tensor) -> Tensor:
        return below.unflatten(-1, (1, *self.image_shape))

    def _features(self, above: Tensor) -> Tensor:
        return above.unflatten(-1, (len(self.weights), *self.places))


def _blockwise(weights: Tensor) -> Tensor:
    """Weights of each pixel of a block from the features around it: (BLOCK², features, reach, reach)."""
    reach = weights.shape[-1] + SQUARE - 1
    windows = unfold(pad(weights.flip(2, 3), (SQUARE - 1,) * 4), reach)
    # The first pixel's weights come last.
    return windows.flip(2).permute(2, 0, 1).reshape(SQUARE**2, len(weights), reach, reach)


def _convolved(images: Tensor, weights: Tensor, margin: int) -> Tensor:
    """Convolve images (N, 1, H, W), with a margin of zeros, with features (features, 1, side, side)."""
    if tracing():
        # ONNX Runtime has convolutions in single precision only. The later sums over positions are in double.
        return conv2d(images.float(), weights.float(), padding=margin).to(images.dtype)
    return conv2d(images, weights, padding=margin)


def _transposed_in_graph(features: Tensor, weights: Tensor) -> Tensor:
    """The same as `Convolution._transposed`, in the operation that is fastest in ONNX Runtime, and not in torch."""
    return conv_transpose2d(features.float(), weights.float(), padding=weights.shape[-1] - 1).to(features.dtype)
