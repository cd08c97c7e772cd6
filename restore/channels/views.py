"""What a grey page shows at each pixel, beside its own surroundings: darkness below the paper, contrast, ink nearby.

Paper and ink are measured by greyscale closings and dilations of the page at a quarter of its size (Serra, 1982; as for
the background in Gatos et al., Pattern Recognition 2006), so that light, stains and fading, which change slowly, shift
no view. Sums, maxima and a bilinear enlargement are all it takes: a graph holds them, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

# The number of views of grey pages, and of the log-odds of black and white pixels, and the side of the square window in
# which a machine sees them.
VIEWS, ODDS_VIEWS, SIDE = 8, 2, 3

# Pixels by which the surroundings are measured more coarsely.
COARSE = 4

# Sides of windows, in coarse pixels: of the closing that leaves the paper beside thin and beside thick strokes, of the
# dilations that find the darkest ink nearby and further away, and of averages.
THIN, THICK, INK, FAR, AVERAGED = 7, 25, 11, 41, 7

# The least difference of ink from paper that counts as ink, and of grey levels that counts as contrast.
LEAST_INK, LEAST_CONTRAST = 0.05, 0.01


def views_of(grey: Tensor, visible: Tensor) -> Tensor:
    """The views of grey pages.

    Args:
        grey: levels from 0 to 1, (N, 1, H, W); any where they are not visible.
        visible: 1 where a pixel is seen, else 0, in the same shape. Others are taken for the average around them.

    Returns:
        (N, VIEWS, H, W), mostly between -1 and 1: depth below the paper as a share of that of the ink nearby, and of
        ink further away, where 1 is as dark; difference from the average in standard deviations; depth below the paper
        beside thin and beside thick strokes; grey level; depth of the ink nearby; whether it is hidden.

    >>> import torch
    >>> page = torch.full((1, 1, 48, 48), 0.8)
    >>> page[..., 20:23, 8:40] = 0.2
    >>> depth = views_of(page, torch.ones_like(page))[0, 0]
    >>> bool(depth[21, 24] > 0.7), bool(depth[40, 24] < -0.9)
    (True, True)
    """
    import torch
    from torch.nn.functional import avg_pool2d, max_pool2d

    coarse, level = _levels(grey, visible)
    shape = grey.shape[-2:]
    papers = [enlarged(_blurred(_closed(coarse, side), side // 2 | 1), shape) for side in (THIN, THICK)]
    near, wide = ((paper - level).clamp(0, 1) for paper in papers)
    deepest = max_pool2d(whole(near), COARSE)
    ink, far = (enlarged(_blurred(_largest(deepest, side), side // 4 * 2 + 1), shape) for side in (INK, FAR))
    mean, square = (_blurred(avg_pool2d(whole(power), COARSE), AVERAGED) for power in (level, level.square()))
    deviation = (square - mean.square()).clamp_min(LEAST_CONTRAST**2).sqrt()
    mean, deviation = enlarged(mean, shape), enlarged(deviation, shape)
    return torch.cat(
        [
            2 * near / (ink + LEAST_INK) - 1,
            2 * near / (far + LEAST_INK) - 1,
            ((mean - level) / (3 * deviation)).clamp(-2, 2),
            4 * near,
            4 * wide,
            2 * level - 1,
            2 * ink,
            2 * (1 - visible),
        ],
        1,
    )


def _levels(grey: Tensor, visible: Tensor) -> tuple[Tensor, Tensor]:
    """Averages of visible pixels over coarse ones; and grey levels, those not visible being the average around them."""
    import torch
    from torch.nn.functional import avg_pool2d

    share = avg_pool2d(whole(visible), COARSE)
    light = avg_pool2d(whole(grey * visible), COARSE)
    around = _blurred(light, THIN) / _blurred(share, THIN).clamp_min(LEAST_CONTRAST)
    coarse = torch.where(share > 0, light / share.clamp_min(1 / COARSE**2), around)
    return coarse, torch.where(visible > 0, grey, enlarged(coarse, grey.shape[-2:]))


def views_of_odds(odds: Tensor) -> Tensor:
    """How far pixels are known to be white (-1 ... 1), and how well they are known (0 ... 1), of log-odds (..., D).

    >>> import torch
    >>> views_of_odds(torch.tensor([0.0, 20.0, -20.0])).tolist()
    [0.0, 1.0, -1.0, 0.0, 1.0, 1.0]
    """
    import torch

    mean = torch.tanh(odds / 2)
    return torch.cat([mean, mean.abs()], -1)


def whole(grid: Tensor, block: int = COARSE) -> Tensor:
    """A grid (N, 1, H, W) continued to whole blocks of so many pixels a side."""
    from torch.nn.functional import pad

    # Not `-size % COARSE`, which the exporter of graphs cannot simplify.
    down, right = ((size + block - 1) // block * block - size for size in grid.shape[-2:])
    return pad(grid, (0, right, 0, down), mode="replicate")


def enlarged(coarse: Tensor, shape: Sequence[int], block: int = COARSE) -> Tensor:
    """A grid (N, 1, h, w) of blocks at the height and width of all pixels, linear between the centres of blocks."""
    from torch.nn.functional import interpolate

    height, width = shape
    larger = interpolate(coarse, scale_factor=block, mode="bilinear", align_corners=False)
    return larger.narrow(-2, 0, height).narrow(-1, 0, width)


def _blurred(grid: Tensor, side: int) -> Tensor:
    """Averaged twice over windows of an odd side."""
    from torch.nn.functional import avg_pool2d, pad

    margin = side // 2
    for _ in range(2):
        grid = avg_pool2d(pad(grid, (margin,) * 4, mode="replicate"), side, 1)
    return grid


def _largest(grid: Tensor, side: int) -> Tensor:
    """The largest value in the window of an odd side around each pixel."""
    from torch.nn.functional import max_pool2d

    rows = max_pool2d(grid, (side, 1), 1, (side // 2, 0))
    return max_pool2d(rows, (1, side), 1, (0, side // 2))


def _closed(grid: Tensor, side: int) -> Tensor:
    return -_largest(-_largest(grid, side), side)
