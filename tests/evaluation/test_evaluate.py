"""The evaluation as a whole, with restorers whose scores are known."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
import torch
from skimage.metrics import structural_similarity
from torch import Tensor

from restore.channels import parse_task
from restore.errors import ModelError, UsageError
from restore.evaluation.evaluate import Report, Restorer, evaluate, nothing

SHAPE = (8, 9)
TRUTH = (torch.rand(40, 72, generator=torch.Generator().manual_seed(0)) < 0.3).float()


def run(restorer: Restorer, task: str, *, truth: Tensor = TRUTH, grey: bool = False) -> Report:
    batch, generator = truth.reshape(-1, *SHAPE), torch.Generator().manual_seed(1)
    return evaluate(restorer, [batch], parse_task(task), generator, grey=grey)


def test_the_share_of_changed_pixels_is_pooled() -> None:
    report = run(lambda observed, channel, shape: torch.zeros_like(observed), "flip:0.1")
    changed = parse_task("flip:0.1").damage(TRUTH, SHAPE, torch.Generator().manual_seed(1)).observed != TRUTH
    pooled = float((changed & (TRUTH == 1)).sum() / changed.sum())
    shares = (changed & (TRUTH == 1)).sum(dim=1) / changed.sum(dim=1)
    assert report.error_changed.mean == pytest.approx(pooled, rel=1e-6)
    kept = float((~changed & (TRUTH == 1)).sum() / (~changed).sum())
    assert report.error_unchanged.mean == pytest.approx(kept, rel=1e-6)
    assert abs(pooled - float(shares.nanmean())) > 1e-3  # so the test can tell the two apart


def test_grey_reports_have_psnr_and_ssim() -> None:
    truth = torch.rand(5, 72, generator=torch.Generator().manual_seed(3))
    report = run(lambda observed, channel, shape: truth * 0.9, "patch:3", truth=truth, grey=True)
    assert report.grey
    assert report.psnr is not None
    assert report.ssim is not None
    decibels = -10 * np.log10(((0.1 * truth.double().numpy()) ** 2).mean(axis=1))
    assert report.psnr.mean == pytest.approx(decibels.mean(), rel=1e-6)
    pairs = [(image.reshape(SHAPE), (image * 0.9).reshape(SHAPE)) for image in truth.double().numpy()]
    expected = np.mean([structural_similarity(a, b, data_range=1) for a, b in pairs])
    assert report.ssim.mean == pytest.approx(expected, abs=1e-6)
    perfect = run(lambda observed, channel, shape: truth, "patch:3", truth=truth, grey=True)
    assert json.loads(perfect.as_json())["psnr"]["mean"] is None


def test_the_forms_of_a_report() -> None:
    report = run(nothing, "patch:4:1")
    plain = json.loads(report.as_json())
    scores = ["error_all", "error_changed", "error_unchanged", "error_hidden", "mcc"]
    assert list(plain) == ["task", "mask", "solver", "n", *scores, "seconds"]
    assert (plain["task"], plain["mask"], plain["n"]) == ("patch:4:1", "known", 40)
    assert plain["mcc"] == {"mean": report.mcc.mean, "standard_error": report.mcc.standard_error, "n": 40}
    assert plain["error_all"]["mean"] == report.error_all.mean
    # A patch painted white shows ink rightly and paper wrongly.
    assert 0 < plain["error_hidden"]["mean"] < 1 and plain["error_changed"]["mean"] == 1
    assert "error_hidden" not in json.loads(run(nothing, "flip:0.1").as_json())
    text = report.as_text()
    assert text.startswith("patch:4:1, mask known: 40 images in ")
    assert f"{100 * report.error_all.mean:.3f} ± " in text
    assert "PSNR" not in text


def test_restorers_that_fail() -> None:
    with pytest.raises(ModelError):
        run(lambda observed, channel, shape: observed[:, 1:], "flip:0.1")
    with pytest.raises(ModelError):
        run(lambda observed, channel, shape: observed * math.nan, "flip:0.1")
    with pytest.raises(UsageError):
        run(nothing, "patch:9")
