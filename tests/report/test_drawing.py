"""Charts and sheets of images on the page of a report."""

from __future__ import annotations

import io
import math
import re

import numpy as np
import pytest
from PIL import Image

from restore.report.chart import Chart, svg, ticks
from restore.report.pictures import GAP, grey, png, signed, tiled


@pytest.mark.parametrize(
    ("low", "high"), [(0.0, 1.0), (-3.2, 7.9), (4.44e-2, 4.45e-2), (100.0, 100.0), (0.0, 0.0), (-5.0, -5.0), (1e9, 3e9)]
)
def test_lines_of_a_chart_are_few_and_hold_the_curve(low: float, high: float) -> None:
    marks = ticks(low, high)
    assert 2 <= len(marks) <= 7
    assert marks[0] <= low + 1e-9 * abs(low) and marks[-1] >= high - 1e-9 * abs(high)
    gaps = np.diff(marks)
    np.testing.assert_allclose(gaps, gaps[0])


def test_the_curve_goes_through_its_points() -> None:
    drawn = svg(Chart("c", [(1, 0.0), (2, 1.0), (3, 0.5)], "epoch", 2.0))
    way = re.search(r'points="([^"]+)"', drawn)
    assert way is not None
    (x1, y1), (x2, y2), (x3, y3) = (map(float, pair.split(",")) for pair in way[1].split())
    assert x2 - x1 == pytest.approx(x3 - x2, abs=0.2)
    assert y3 - y2 == pytest.approx((y1 - y2) / 2, abs=0.2) and y2 < y1
    assert f'class="kept" x1="{x2}"' in drawn


def test_images_come_side_by_side_as_they_are() -> None:
    images = np.random.default_rng(0).random((5, 3, 4))
    sheet = np.asarray(Image.open(io.BytesIO(png(tiled(grey(images), 2), 3))))
    assert sheet.shape == (3 * (3 * (3 + GAP) + GAP), 3 * (2 * (4 + GAP) + GAP), 3)
    for number, image in enumerate(images):
        row, column = divmod(number, 2)
        top, left = GAP + row * (3 + GAP), GAP + column * (4 + GAP)
        found = sheet[::3, ::3][top : top + 3, left : left + 4, 0]
        np.testing.assert_allclose(found / 255, image, atol=0.5 / 255)


def test_weights_are_red_above_zero_and_blue_below() -> None:
    colours = signed(np.array([[[0.0, 2.0, -2.0, math.nan]], [[0.0, 0.0, 0.0, 0.0]]]))
    white, red, blue = colours[0, 0, :3].astype(int)
    assert (white == 255).all() and red[0] > red[2] and blue[2] > blue[0]
    assert (colours[1] == 255).all()
