"""Photographs to learn from: those of scikit-image, and more where Debian's packages have them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from training.data import photographs
from training.data.photographs import LEAST_SIDE, PHOTOGRAPHS_OF, photograph, to_learn_from


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setattr(photographs, "BACKGROUNDS", tmp_path)
    to_learn_from.cache_clear()
    yield tmp_path
    to_learn_from.cache_clear()


def test_more_photographs_are_learnt_from_where_they_are_installed(installed: Path) -> None:
    ours = [photograph(name) for name in PHOTOGRAPHS_OF["train"]]
    assert all(map(np.array_equal, to_learn_from(), ours)) and len(to_learn_from()) == len(ours)
    (installed / "mate" / "nature").mkdir(parents=True)
    levels = np.random.default_rng(0).integers(256, size=(900, 1800, 3), dtype=np.uint8)
    for name in ("mate/nature/Dune.jpg", "sea_by_somebody.jpg", "mate/logo.jpg", "drawn.jpg"):
        Image.fromarray(levels).save(installed / name)
    to_learn_from.cache_clear()
    found = to_learn_from()
    assert [one.shape for one in found[len(ours) :]] == [(LEAST_SIDE, 2 * LEAST_SIDE)] * 2
