"""Whole images of different sizes, damaged, restored in windows and scored."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from commands import Run
from machines import seeded
from PIL import Image
from priors import grey_prior, random_prior, saved_prior
from torch import Tensor

import restore
from restore.api import Restorer
from restore.channels import Damage, parse_task
from restore.evaluation.baselines import Median
from restore.evaluation.evaluate import compare, evaluate, nothing, restorer_of
from restore.inference.torch_engine import Engine

SHAPES = [(31, 25), (12, 10), (3, 40), (25, 31)]
CPU = torch.device("cpu")


def images(grey: bool = False) -> list[Tensor]:
    """Discs: something that a median filter repairs."""
    results = []
    for height, width in SHAPES:
        y, x = torch.meshgrid(torch.arange(height), torch.arange(width), indexing="ij")
        away = ((y - height / 2) ** 2 + (x - width / 2) ** 2).sqrt()
        results.append((1 - away / 20).clamp(0, 1) if grey else (away < 7).float())
    return results


def batches(grey: bool = False) -> list[Tensor]:
    return [image[None] for image in images(grey)]


@pytest.fixture(scope="module")
def engine() -> Engine:
    return Engine.of(random_prior((12, 10)), CPU)


def perfect(observed: Tensor, damage: Damage, image_shape: tuple[int, int]) -> Tensor:
    (result,) = (image for image in images() if image.shape == image_shape)
    return result.reshape(1, -1)


def test_scores_are_over_the_pixels_of_all_images_beside_the_damaged_ones_and_the_best_median() -> None:
    truths, task = images(), parse_task("flip:0.1")
    report = compare(perfect, batches(), task, 0)
    assert (report.n, report.error_all.mean, report.psnr) == (4, 0, None)
    draw, wrong, filtered = seeded(), 0, {3: 0, 5: 0}
    for truth in truths:
        row = truth.reshape(1, -1)
        observed, damage = task.damage(row, (truth.shape[0], truth.shape[1]), draw)
        wrong += int((observed != row).sum())
        for side in filtered:
            median = Median((truth.shape[0], truth.shape[1]), side).restore(observed, damage)
            filtered[side] += int(((median > 0.5) != row).sum())
    pixels = sum(truth.numel() for truth in truths)
    best = min(filtered, key=lambda side: filtered[side])
    assert {name: one.error_all.mean for name, one in report.beside.items()} == pytest.approx(
        {"as it is": wrong / pixels, f"median of {best}x{best}": filtered[best] / pixels}
    )


@pytest.mark.filterwarnings("ignore:.*independent pixels")
def test_a_prior_restores_whole_images_as_it_does_for_callers(engine: Engine) -> None:
    truths = images()
    for text, p in (("flip:0.1", 0.1), ("holes:3:0.2", None), ("flip:0.1+holes:3:0.2", 0.1)):
        draw, task = seeded(5), parse_task(text)
        report = evaluate(restorer_of(engine), batches(), task, seeded(5))
        wrong = hidden = 0
        for truth in truths:
            image_shape = (truth.shape[0], truth.shape[1])
            observed, damage = task.damage(truth.reshape(1, -1), image_shape, draw)
            pixels = observed.reshape(image_shape).bool().numpy()
            if damage.hidden is not None:
                mask = np.asarray(damage.hidden[0])
                restored = Restorer(engine).complete(pixels, mask, p, force=True)
                hidden += int((restored != truth.bool().numpy())[mask].sum())
            else:
                restored = Restorer(engine).denoise(pixels, p, force=True)
            wrong += int((restored != truth.bool().numpy()).sum())
        assert report.error_all.mean == pytest.approx(wrong / sum(truth.numel() for truth in truths))
        assert (report.error_hidden is None) == ("holes" not in text)
        if text == "holes:3:0.2":
            assert wrong == hidden


def test_holes_of_grey_images_of_the_priors_size_are_filled_as_for_callers() -> None:
    grey, shape = Engine.of(grey_prior(), CPU), (5, 7)
    truth = torch.rand(6, 35, generator=seeded(2))
    observed, damage = parse_task("patch:2", grey=True).damage(truth, shape, seeded(5))
    masks, seen = np.asarray(damage.hidden), observed.reshape(6, *shape).numpy()
    restored = restorer_of(grey)(observed, damage, shape)
    np.testing.assert_array_equal(restored.reshape(seen.shape), Restorer(grey).complete(seen, masks, force=True))
    visible = torch.from_numpy(~masks).flatten(1)
    assert torch.equal(restored[visible], truth[visible])


def test_the_median_of_grey_images_counts_what_is_seen() -> None:
    image = torch.tensor([[0.1, 0.2, 0.3], [0.4, 0.5, 0.6], [0.7, 0.8, 0.9]])
    row = image.reshape(1, 9)
    restored = Median((3, 3), grey=True).restore(row, Damage(sigma=0.1)).reshape(3, 3)
    assert float(restored[1, 1]) == 0.5 and float(restored[0, 0]) == pytest.approx(0.2)
    hidden = np.zeros((1, 3, 3), bool)
    hidden[0, 1, 1] = True
    filled = Median((3, 3), grey=True).restore(row, Damage(hidden=hidden))
    visible = torch.from_numpy(~hidden).flatten(1)
    assert torch.equal(filled[visible], row[visible]) and float(filled[0, 4]) == pytest.approx(0.4)
    assert (Median((3, 3), grey=True).restore(row, Damage(hidden=np.ones_like(hidden))) == 0.5).all()


def test_grey_images_have_psnr_and_ssim() -> None:
    report = compare(nothing, batches(grey=True), parse_task("noise:0.2", grey=True), 0, grey=True)
    (idle, name), (filtered, median) = ((one, name) for name, one in report.beside.items())
    assert (name, idle.psnr) == ("as it is", report.psnr) and median.startswith("median of ")
    assert idle.psnr is not None and filtered.psnr is not None and filtered.ssim is not None
    assert filtered.psnr.mean > idle.psnr.mean == pytest.approx(14, abs=0.5)


# ------------------------------------------------------------------------------------------------- on the command line


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "pages").mkdir()
    for number, image in enumerate(images()):
        Image.fromarray((255 * image).byte().numpy()).save(tmp_path / "pages" / f"{number}.png")
    return tmp_path / "pages"


def test_a_folder_of_images_of_several_sizes(
    folder: Path, run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = saved_prior(tmp_path / "model")
    words = ("--data", folder, "--task", "flip:0.1", "--json")
    assert run("evaluate", model, *words) == 0
    said = capsys.readouterr()
    report = json.loads(said.out)
    expected = evaluate(restorer_of(restore.load(model).engine), batches(), parse_task("flip:0.1"), seeded())
    assert report["error_all"] == {
        "mean": pytest.approx(expected.error_all.mean),
        "standard_error": pytest.approx(expected.error_all.standard_error),
        "n": 4,
    }
    assert next(iter(report["beside"])) == "as it is" and report["solver"] == "tap"
    assert "flip:0.1: restored 100%" in said.err
    assert run("evaluate", model, *words[:-1], "--n", 2, "--quiet") == 0
    said = capsys.readouterr()
    assert said.out.startswith("flip:0.1: 2 images") and "wrong pixels, as it is" in said.out and not said.err
