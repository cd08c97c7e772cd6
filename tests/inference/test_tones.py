"""Pictures of which nothing is told: those with grey levels all over are not cut to black and white unasked."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from commands import Run
from mnist_data import mnist, needs_mnist
from PIL import Image
from priors import saved_prior
from restore.inference.tones import MOST, middle_tones
from skimage import data

import restore
from restore.errors import ModelError

SHAPE = (10, 12)
PHOTOGRAPH = np.linspace(0, 255, SHAPE[0] * SHAPE[1]).reshape(SHAPE).astype(np.uint8)
# Dark ink on light paper, with soft edges.
INK = np.where(np.arange(SHAPE[1]) < 6, 60, 200)[None].repeat(SHAPE[0], 0).astype(np.uint8)
INK[:, 6] = 130


def test_a_ramp_has_half_of_its_pixels_in_the_middle_whatever_its_range() -> None:
    ramp = np.linspace(0.3, 0.6, 10_000).reshape(100, 100)
    # The range leaves out a hundredth at either end.
    assert middle_tones(ramp) == pytest.approx(0.49, abs=0.001)
    assert middle_tones((ramp * 255).astype(np.uint8)) == pytest.approx(0.49, abs=0.02)
    assert middle_tones(np.full(SHAPE, 7)) == middle_tones(INK > 100) == 0
    assert 0 < middle_tones(INK) < MOST


def test_stray_pixels_and_many_change_nothing() -> None:
    ramp = np.linspace(0.3, 0.6, 4_000_000).reshape(2000, 2000)
    ramp[0, :3] = 0, 1, 0
    assert middle_tones(ramp) == pytest.approx(0.49, abs=0.001)


@needs_mnist
def test_digits_have_few_middle_tones() -> None:
    assert max(middle_tones(image) for image in mnist("test").images[:500]) < MOST / 2


@pytest.mark.parametrize("name", ["camera", "coins", "moon"])
def test_photographs_have_many_middle_tones(name: str) -> None:
    assert middle_tones(getattr(data, name)()) > 1.5 * MOST


def test_a_photograph_is_restored_only_if_its_damage_is_told(tmp_path: Path) -> None:
    prior = restore.load(str(saved_prior(tmp_path, SHAPE)))
    with pytest.raises(ModelError, match=r"neither dark nor light.*give sigma.*, or p to cut"):
        prior.denoise(PHOTOGRAPH)
    with pytest.raises(ModelError, match=r"image 1 of 2, from 0: .*neither dark nor light"):
        prior.denoise([INK, PHOTOGRAPH], force=False)
    for found in (prior.denoise(PHOTOGRAPH, 0.1, force=True), prior.denoise(PHOTOGRAPH, force=True)):
        assert found.shape == SHAPE
    assert prior.denoise(INK, force=True).shape == SHAPE


def test_a_photograph_is_not_overwritten_unasked(run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, source = saved_prior(tmp_path, SHAPE), tmp_path / "photograph.png"
    Image.fromarray(PHOTOGRAPH).save(source)
    assert run("denoise", source, "--model", model) == 4
    assert "photograph.png: " in capsys.readouterr().err
    assert not source.with_name("photograph.restored.png").exists()
    assert run("denoise", source, "--model", model, "--p", 0.1, "--force") == 0
