"""Windows of one size that cover an image of any: cut out of it, and added up to it again.

Along an axis that is longer than a window they are a stride apart, and begin before the image and end behind it: every
pixel lies in equally many of them where the stride divides the window. A shorter axis lies in the middle of one window.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np


@dataclass(frozen=True)
class Axis:
    """Windows along one axis of an image: `size` pixels in windows of `window`, `stride` apart."""

    size: int
    window: int
    stride: int

    @property
    def before(self) -> int:
        """Pixels by which the first window begins before the image."""
        return (self.window - self.size) // 2 if self.size <= self.window else self.window - self.stride

    @property
    def count(self) -> int:
        """Number of windows."""
        return 1 if self.size <= self.window else (self.size - 1 + self.before) // self.stride + 1

    @property
    def padded(self) -> int:
        """Length from the begin of the first window to the end of the last."""
        return (self.count - 1) * self.stride + self.window

    @property
    def after(self) -> int:
        """Pixels by which the last window ends behind the image."""
        return self.padded - self.size - self.before


@dataclass(frozen=True)
class Cover:
    """The windows that cover an image, row by row.

    >>> import numpy as np
    >>> cover = Cover.of((5, 6), window=(4, 4), overlap=2)
    >>> windows = cover.cut(np.ones((5, 6)), 0.0)
    >>> windows.shape, cover.crop(cover.add(windows))[0].tolist()
    ((16, 4, 4), [4.0, 4.0, 4.0, 4.0, 4.0, 4.0])
    """

    down: Axis
    across: Axis

    @classmethod
    def of(cls, shape: tuple[int, ...], window: tuple[int, int], overlap: int) -> Cover:
        """The windows of an image, of which `overlap` begin within the length of one, along either axis."""
        down, across = (
            Axis(size, side, -(-side // min(overlap, side))) for size, side in zip(shape, window, strict=True)
        )
        return cls(down, across)

    @property
    def count(self) -> int:
        """Number of windows."""
        return self.down.count * self.across.count

    def cut(self, image: np.ndarray, outside: float | bool | Literal["edge"]) -> np.ndarray:
        """The windows of an image (H, W), (count, h, w); those outside it are `outside`, or like its edge."""
        margins = ((self.down.before, self.down.after), (self.across.before, self.across.after))
        options: dict[str, Any] = {"mode": "edge"} if outside == "edge" else {"constant_values": outside}
        return self.cut_padded(np.pad(image, margins, **options))

    def cut_padded(self, padded: np.ndarray) -> np.ndarray:
        """The windows of an image with what lies around it."""
        window = (self.down.window, self.across.window)
        every = np.lib.stride_tricks.sliding_window_view(padded, window)
        return np.array(every[:: self.down.stride, :: self.across.stride]).reshape(-1, *window)

    def add(self, windows: np.ndarray) -> np.ndarray:
        """The sum of windows (count, h, w) at every pixel of the image and of what lies around it."""
        down, across = self.down, self.across
        blocks = [-(-axis.window // axis.stride) for axis in (down, across)]
        cells = (down.count + blocks[0] - 1, down.stride, across.count + blocks[1] - 1, across.stride)
        total = np.zeros(cells, windows.dtype)
        each = windows.reshape(down.count, across.count, down.window, across.window).transpose(0, 2, 1, 3)
        for row in range(blocks[0]):
            for column in range(blocks[1]):
                part = each[
                    :,
                    row * down.stride : (row + 1) * down.stride,
                    :,
                    column * across.stride : (column + 1) * across.stride,
                ]
                rows, columns = slice(row, row + down.count), slice(column, column + across.count)
                total[rows, : part.shape[1], columns, : part.shape[3]] += part
        return total.reshape(cells[0] * cells[1], -1)[: down.padded, : across.padded]

    def crop(self, padded: np.ndarray) -> np.ndarray:
        """An image without what lies around it."""
        down, across = self.down, self.across
        return padded[down.before : down.before + down.size, across.before : across.before + across.size]


def blocks(size: int, largest: int, stride: int) -> list[tuple[int, int]]:
    """Equal parts of an axis, none longer than `largest` but for rounding up to strides: where they begin and end."""
    count = -(-size // largest)
    step = -(-size // (count * stride)) * stride
    return [(first, min(first + step, size)) for first in range(0, size, step)]
