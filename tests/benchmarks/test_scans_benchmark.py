"""The benchmark of scans: its measures by hand, and the command on tiny pages."""

from __future__ import annotations

import numpy as np
import pytest
from contests import drd, f_measure, psnr


def test_drd_of_a_hand_computation() -> None:
    truth = np.zeros((16, 16), bool)
    truth[2:6, 3:7] = True
    # One of the four blocks is mixed. Weights of a 5x5 window without its centre, by distance: 4 of 1, 4 of 1/sqrt 2,
    # 4 of 1/2, 8 of 1/sqrt 5, 4 of 1/sqrt 8.
    total = 4 + 4 / 2**0.5 + 4 / 2 + 8 / 5**0.5 + 4 / 8**0.5
    found = truth.copy()
    found[10, 10] = True
    # All 24 around it are paper, so that ink there is wrong to the full.
    assert drd(found, truth) == pytest.approx(1.0)
    found = truth.copy()
    found[2, 3] = False
    # The corner of the square was taken for paper: within reach there are 8 more pixels of ink, below and to the right.
    ink = 2 * 1 + 1 / 2**0.5 + 2 / 2 + 2 / 5**0.5 + 1 / 8**0.5
    assert drd(found, truth) == pytest.approx(ink / total)
    assert drd(truth, truth) == 0


def test_f_measure_and_psnr() -> None:
    truth, found = np.zeros((10, 10), bool), np.zeros((10, 10), bool)
    truth[0, :4] = found[0, 2:6] = True
    # Precision and recall are one half; 4 of 100 pixels are wrong.
    assert f_measure(found, truth) == 0.5
    assert psnr(found, truth) == pytest.approx(13.9794, abs=1e-4)
    assert f_measure(truth, truth) == 1 and psnr(truth, truth) == np.inf
