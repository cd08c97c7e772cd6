"""Tiles of one size that cover an image of any size: cut out of it, and added up to it again.

Along an axis longer than a tile they are a stride apart, from before the image to behind it: each pixel lies in equally
many where the stride divides the side. A shorter axis lies in the middle of one tile.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

# What tiles hold outside the image: one value, or what its edge has.
Outside: TypeAlias = float | bool | Literal["edge"]


@dataclass(frozen=True)
class Axis:
    """Tiles of `window` pixels along an axis of `size`, `stride` apart; if `within`, the first begins with the axis."""

    size: int
    window: int
    stride: int
    within: bool = False

    @property
    def before(self) -> int:
        """Pixels of the first tile before the image."""
        if self.size <= self.window:
            return (self.window - self.size) // 2
        return 0 if self.within else self.window - self.stride

    @property
    def count(self) -> int:
        if self.size <= self.window:
            return 1
        last = self.size - self.window if self.within else self.size - 1 + self.before
        return (last + (self.stride - 1) * self.within) // self.stride + 1

    @property
    def padded(self) -> int:
        """Pixels from the first tile's begin to the last one's end."""
        return (self.count - 1) * self.stride + self.window

    @property
    def after(self) -> int:
        """Pixels of the last tile behind the image."""
        return self.padded - self.size - self.before


@dataclass(frozen=True)
class Cover:
    """The tiles that cover an image, row by row.

    >>> import numpy as np
    >>> cover = Cover.of((5, 6), window=(4, 4), overlap=2)
    >>> windows = cover.cut(np.ones((5, 6)), 0.0)
    >>> windows.shape, cover.crop(cover.add(windows))[0].tolist()
    ((16, 4, 4), [4.0, 4.0, 4.0, 4.0, 4.0, 4.0])
    """

    down: Axis
    across: Axis

    @classmethod
    def of(cls, shape: tuple[int, ...], window: tuple[int, int], overlap: int, *, within: bool = False) -> Cover:
        """Tiles with a stride of side / overlap; `within` as in `Axis`."""
        down, across = (
            Axis(size, side, -(-side // min(overlap, side)), within) for size, side in zip(shape, window, strict=True)
        )
        return cls(down, across)

    @property
    def count(self) -> int:
        return self.down.count * self.across.count

    def cut(self, image: np.ndarray, outside: Outside) -> np.ndarray:
        """The tiles of an image (H, W), (count, h, w); pixels outside it are `outside`, or like its edge."""
        margins = ((self.down.before, self.down.after), (self.across.before, self.across.after))
        options: dict[str, Any] = {"mode": "edge"} if outside == "edge" else {"constant_values": outside}
        window = (self.down.window, self.across.window)
        every = np.lib.stride_tricks.sliding_window_view(np.pad(image, margins, **options), window)
        return np.array(every[:: self.down.stride, :: self.across.stride]).reshape(-1, *window)

    def add(self, windows: np.ndarray) -> np.ndarray:
        """The sum of tiles (count, h, w) at every pixel of the image and of what lies around it."""
        down, across = self.down, self.across
        blocks = [-(-axis.window // axis.stride) for axis in (down, across)]
        cells = (down.count + blocks[0] - 1, down.stride, across.count + blocks[1] - 1, across.stride)
        total = np.zeros(cells, windows.dtype)
        tiles = windows.reshape(down.count, across.count, down.window, across.window).transpose(0, 2, 1, 3)
        for row in range(blocks[0]):
            for column in range(blocks[1]):
                part = tiles[:, row * down.stride :, :, column * across.stride :][:, : down.stride, :, : across.stride]
                rows, columns = slice(row, row + down.count), slice(column, column + across.count)
                total[rows, : part.shape[1], columns, : part.shape[3]] += part
        return total.reshape(cells[0] * cells[1], -1)[: down.padded, : across.padded]

    def mean(self, windows: np.ndarray, which: np.ndarray) -> np.ndarray:
        """The mean of some tiles at every pixel of the image and of what lies around it; NaN where there are none."""
        with np.errstate(invalid="ignore"):
            return self.add(np.where(which[:, None, None], windows, 0)) / self.counts(which)

    def counts(self, which: np.ndarray) -> np.ndarray:
        """The number of some tiles that cover each pixel of the image and of what lies around it, float32."""
        shape = (self.count, self.down.window, self.across.window)
        return self.add(np.broadcast_to(which[:, None, None].astype(np.float32), shape))

    def crop(self, padded: np.ndarray) -> np.ndarray:
        """An image without what lies around it."""
        down, across = self.down, self.across
        return padded[down.before : down.before + down.size, across.before : across.before + across.size]
