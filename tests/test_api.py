"""The Python interface: every kind of image comes back as what it was."""

from __future__ import annotations

import base64
import copy
import io
import pickle
import re
import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from bad_images import GREY, GREY16, HOLE, SHAPE
from PIL import Image
from priors import saved_prior
from scipy.ndimage import gaussian_filter
from skimage import data

import restore
from restore import zoo
from restore.api.batch import RestoredBatch
from restore.inference.restored import Restored
from restore.status import Outcome, Status

HIDDEN = HOLE > 0


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> restore.Restorer:
    return restore.load(saved_prior(tmp_path_factory.mktemp("model"), SHAPE), device="cpu")


ARRAYS = {
    "uint8": GREY,
    "uint16": GREY16,
    "bool": GREY > 127,
    "float32": (GREY / 255).astype(np.float32),
    "float64": GREY / 255,
}


@pytest.mark.parametrize("array", ARRAYS.values(), ids=ARRAYS.keys())
def test_arrays_keep_type_shape_and_visible_pixels(array: np.ndarray, model: restore.Restorer) -> None:
    before = array.copy()
    clean = restore.denoise(array, model, p=0.1)
    whole = restore.complete(array, HIDDEN, model)
    for result in (clean, whole):
        assert isinstance(result, np.ndarray)
        assert result.dtype == array.dtype and result.shape == array.shape
    white = np.iinfo(array.dtype).max if array.dtype.kind == "u" else 1
    assert set(np.unique(clean).tolist()) <= {0, white}
    assert (whole[~HIDDEN] == array[~HIDDEN]).all()
    # Holes are filled in the picture's own black and white.
    seen = array[~HIDDEN]
    bright = seen.astype(np.float64) * 255 > 127 * white
    own = [np.median(part) for part in (seen[bright], seen[~bright])]
    assert np.abs(np.subtract.outer(whole[HIDDEN], own)).min(1).max() <= 1e-6 * white + 0.5 * (white > 1)
    assert (array == before).all()


def test_visible_pixels_stay_where_no_noise_is_found() -> None:
    rows, columns = np.mgrid[:40, :40]
    steps = (100 + 40 * ((columns // 20 + rows // 24) % 2)).astype(np.uint8)
    same, solution = restore.denoise(steps, sigma="auto", return_solution=True)
    assert solution.level.value == 0
    np.testing.assert_array_equal(same, steps)
    dead = (rows % 16 == 5) & (columns % 16 == 7)
    observed = np.where(dead, 0, steps).astype(np.uint8)
    filled = restore.complete(observed, dead, sigma="auto")
    np.testing.assert_array_equal(filled[~dead], steps[~dead])
    assert (filled[dead] != observed[dead]).any()


def test_a_batch_is_its_images(model: restore.Restorer) -> None:
    batch = np.stack([GREY, GREY[::-1], 255 - GREY])
    together = model.denoise(batch, 0.2, soft=True)
    alone = np.stack([model.denoise(image, 0.2, soft=True) for image in batch])
    assert together.shape == batch.shape
    assert (together == alone).all()
    assert (np.stack(model.denoise(list(batch), 0.2, soft=True)) == alone).all()


def test_pil_images_and_paths_come_back_as_pil_images(model: restore.Restorer, tmp_path: Path) -> None:
    image = Image.fromarray(GREY)
    image.save(tmp_path / "image.png")
    expected = model.denoise(GREY, 0.1)
    for source in (image, tmp_path / "image.png", str(tmp_path / "image.png"), image.convert("RGB")):
        result = model.denoise(source, 0.1)
        assert isinstance(result, Image.Image)
        assert result.mode == (source.mode if isinstance(source, Image.Image) else "L")
        assert (np.asarray(result.convert("L")) == expected).all()


def test_batches_of_networks_are_batches(model: restore.Restorer) -> None:
    batch = torch.from_numpy(np.stack([GREY, GREY[::-1].copy()])).float() / 255
    one, (many, solution) = model.denoise(batch, 0.1), model.denoise(batch[:, None], 0.1, return_solution=True)
    assert torch.equal(many, one[:, None]) and solution.means.shape == (2, *SHAPE)
    assert torch.equal(model.denoise(batch[:, None], np.full((2, 1, *SHAPE), 0.1)), many)
    hidden = torch.from_numpy(np.stack([HIDDEN] * 2))
    assert torch.equal(model.complete(batch[:, None], hidden[:, None]), model.complete(batch, hidden)[:, None])


def test_the_solution_is_returned_on_request(model: restore.Restorer) -> None:
    result, solution = model.denoise(GREY, 0.1, return_solution=True)
    assert isinstance(solution, Restored) and solution.status == 0
    assert solution.means.shape == SHAPE and ((solution.means > 0.5) == (result > 0)).all()
    several, answers = model.denoise([GREY, GREY], 0.1, return_solution=True)
    assert answers.means.shape == (2, *SHAPE) and (several[0] == result).all()
    for each, first in ((solution, ()), (answers, (2,))):
        assert [layer.shape for layer in each.layers] == [(*first, model.description.hidden)]
        assert "\n" not in repr(each) and len(repr(each)) < 100 and "12x10" in repr(each)


def test_a_notebook_shows_the_picture_before_after_and_how_uncertain_it_is(model: restore.Restorer) -> None:
    _, answer = model.denoise(GREY, 0.1, return_solution=True)
    shown = []
    for name, image in re.findall(r'<img src="data:image/png;base64,([^"]+)"[^>]*alt="(\w+)">', answer._repr_html_()):
        picture = Image.open(io.BytesIO(base64.b64decode(name)))
        factor = picture.width // SHAPE[1]
        assert factor > 5
        shown.append((image, np.asarray(picture)[::factor, ::factor]))
    assert [name for name, _ in shown] == ["before", "after", "uncertainty"]
    for (_, picture), wanted in zip(shown, (GREY / 255, answer.estimate, 2 * answer.deviations), strict=True):
        np.testing.assert_allclose(picture / 255, wanted, atol=0.51 / 255)
    odd = replace(answer, notes=("<script>",), observed=None, model="")
    assert "&lt;script&gt;" in odd._repr_html_() and "before" not in odd._repr_html_()


def test_a_notebook_says_each_thing_once_and_shows_what_was_hidden(model: restore.Restorer) -> None:
    _, found = restore.denoise(STROKE ^ (np.random.default_rng(0).random((28, 28)) < 0.05), return_solution=True)
    assert found.level is not None and found.level.estimated
    assert f"p = {found.level.value:.3g}" in found._repr_html_() and found.level.sentence not in found._repr_html_()
    assert found.model in found._repr_html_() and f"{found.changed:.2%}" in found._repr_html_()
    assert "between ink and paper" not in found._repr_html_()
    _, filled = model.complete(GREY, HIDDEN, return_solution=True)
    (before,) = re.findall(r'base64,([^"]+)"[^>]*alt="before"', filled._repr_html_())
    picture = Image.open(io.BytesIO(base64.b64decode(before)))
    factor = picture.width // SHAPE[1]
    coloured = np.asarray(picture)[::factor, ::factor]
    np.testing.assert_array_equal(np.ptp(coloured, axis=-1) > 0, HIDDEN)
    known = {"outcome": Outcome.NOT_SURE, "reason": Status.UNRECOGNISED.sentence, "remedy": "name a prior"}
    refused = replace(filled, status=Status.UNRECOGNISED, **known)._repr_html_()
    assert "as it came" in refused and "name a prior" in refused and "restored with" not in refused


def test_a_notebook_shows_how_many_images_ended_how() -> None:
    with pytest.warns(restore.RestoreWarning):
        _, several = restore.denoise([STROKE, NOISE, NOISE, NOISE], "tap-mnist-25", return_solution=True)
    shown = several._repr_html_()
    assert f"1 of 4: {Status.CONVERGED.sentence}" in shown and "3 of 4: " in shown
    assert shown.count('alt="after"') == 3


def test_the_answers_about_several_images_are_arrays_and_one_by_one(model: restore.Restorer) -> None:
    _, several = restore.denoise([GREY > 127, HIDDEN], model, "auto", force=True, return_solution=True)
    for row, answer in enumerate(several.answers):
        assert isinstance(several.status[row], Status) and several.status[row] is answer.status
        assert np.shares_memory(several.means[row], answer.means) and several.changed[row] == answer.changed
        assert several.level[row] is answer.level
    one, other = several.answers
    mixed = RestoredBatch.of([replace(one, changed=None, bits=None), replace(other, bits=None)])
    assert mixed.bits is None and mixed.changed is not None and np.isnan(mixed.changed[0])
    assert str(Status.MAX_ITER) == "max_iter" in repr(RestoredBatch.of([replace(one, status=Status.MAX_ITER)]))


def test_any_sequence_of_pictures_is_a_list_of_them(model: restore.Restorer) -> None:
    class Album(Sequence):  # type: ignore[type-arg]
        def __len__(self) -> int:
            return 2

        def __getitem__(self, index: Any) -> Any:
            return [GREY, np.fliplr(GREY)][index]

    wanted = model.denoise([GREY, np.fliplr(GREY)], 0.1)
    for several in ((GREY, np.fliplr(GREY)), Album()):
        assert all(map(np.array_equal, model.denoise(several, 0.1), wanted))
    for nothing in (b"bytes", bytearray(b"bytes"), Album()[2:]):
        with pytest.raises(restore.RestoreError):
            model.denoise(nothing, 0.1)


LOOP: list[object] = []
LOOP.append(LOOP)

# The call, the error's class, and what it names: one of each place that refuses. `test_kinds.py` has what is no image
# or mask, and `test_damage.py` what is no level.
FAULTS = {
    "list-of-itself": (lambda m: m.denoise(LOOP, 0.1), restore.UsageError, "list"),
    "size": (lambda m: m.denoise(np.zeros((50, 9)), 0.1, fit="resize"), restore.ModelError, "9x50"),
    "fit": (lambda m: m.denoise(np.zeros((9, 9)), 0.1, fit="resise"), restore.UsageError, "fit"),
    "pixels": (lambda m: m.denoise(np.zeros((9, 9)), 0.1, max_pixels=0), restore.UsageError, "max_pixels"),
    "pixels-text": (lambda m: m.denoise(np.zeros((9, 9)), 0.1, max_pixels="9"), restore.UsageError, "max_pixels"),
    "p": (lambda m: m.denoise(GREY, "much"), restore.UsageError, "p is"),
    "p-of-two-for-three": (lambda m: m.denoise([GREY] * 3, np.full((2, 1, 1), 0.1)), restore.UsageError, "2 images"),
    "mask-none": (lambda m: m.complete(GREY, None), restore.UsageError, "mask"),
    "missing-path": (lambda m: m.denoise("no-such.png", 0.1), restore.InputError, "no-such.png"),
    "unknown-model": (lambda m: restore.denoise(GREY, "nonsense", p=0.1), restore.ModelError, "nonsense"),
    "device": (lambda m: restore.load("tap-mnist-25", device="warp"), restore.UsageError, "warp"),
}


@pytest.mark.parametrize(("call", "error", "subject"), FAULTS.values(), ids=FAULTS.keys())
def test_faults_are_named(call, error, subject, model: restore.Restorer) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(error) as fault:
        call(model)
    assert isinstance(fault.value, restore.RestoreError) and "\n" not in str(fault.value)
    assert subject in str(fault.value) and "--" not in str(fault.value)


@pytest.mark.thorough
def test_training_a_prior_that_learns_the_damage() -> None:
    rows = np.indices((6, 6))[0]
    bars = np.stack([rows % 2 == shift % 2 for shift in range(2)] * 60)
    learned = restore.train(bars, hidden=4, epochs=40, task="flip:0.1", seed=1)
    header = learned.description
    assert (header.family, header.task, header.inference.solver) == ("crbm", "flip:0.1", "sum_product")
    noisy = bars[:20] ^ (np.random.default_rng(0).random((20, 6, 6)) < 0.1)
    assert (learned.denoise(noisy) != bars[:20]).mean() < 0.2 * (noisy != bars[:20]).mean()
    with pytest.raises(restore.UsageError):
        learned.denoise(noisy, 0.1)
    margin = {"method": "marginal_max_margin"}
    other = restore.train(bars, hidden=4, epochs=1, task="patch:2", learner=margin, optimizer={"rate": 0.01})
    assert other.description.inference.solver == "mixed_product"


STROKE = np.zeros((28, 28), bool)
STROKE[5:23, 13:15] = True
NOISE = np.random.default_rng(0).random((28, 28)) < 0.5


def test_letters_that_are_too_small_for_black_and_white_are_told_of() -> None:
    letter = np.pad(np.ones((5, 4)), ((3, 3), (2, 2)))
    letter[4:7, 3:5] = 0
    page = np.tile(letter, (14, 18))
    for times, told in ((1, True), (3, False)):
        ink = gaussian_filter(page.repeat(times, 0).repeat(times, 1), 0.5)
        grey = 0.9 - 0.7 * ink + 0.02 * np.random.default_rng(0).standard_normal(ink.shape)
        for soft in (False, True):
            _, answer = restore.denoise(grey, soft=soft, return_solution=True)
            assert answer.model == "conv-scan"
            assert any("letters" in note for note in answer.notes) == (told and not soft)
            # Every pixel of a page is painted anew: what changed is what it shows.
            assert answer.changed is not None and answer.changed < 0.2
            assert "changed between ink and paper" in answer._repr_html_()


def test_a_picture_that_is_not_sure_comes_back_as_it_came_and_with_strict_it_is_a_fault(tmp_path: Path) -> None:
    Image.fromarray(NOISE).save(tmp_path / "noise.png")
    with pytest.warns(restore.RestoreWarning) as told:
        same, answer = restore.denoise(NOISE, "tap-mnist-25", return_solution=True)
    assert len(told) == 1 and (same == NOISE).all()
    assert (answer.outcome, answer.status) == ("not sure", Status.UNRECOGNISED) and answer.facts.lead < 1
    with pytest.raises(restore.NotRestored):
        restore.denoise(NOISE, "tap-mnist-25", strict=True)
    with pytest.raises(restore.NotRestored) as fault:
        restore.denoise(tmp_path / "noise.png", "tap-mnist-25", strict=True, return_solution=True)
    assert "noise.png" in fault.value.subject
    assert restore.denoise(NOISE, "tap-mnist-25", force=True).shape == NOISE.shape


@pytest.mark.parametrize("batch", [np.stack([STROKE, NOISE, NOISE]), [STROKE, NOISE, NOISE]], ids=["array", "list"])
def test_in_a_batch_refused_pictures_come_back_as_they_were(batch: np.ndarray | list[np.ndarray]) -> None:
    with pytest.warns(restore.RestoreWarning) as told:
        found, answers = restore.denoise(batch, "tap-mnist-25", return_solution=True)
    assert len(told) == 1 and "2 of 3" in str(told[0].message) and told[0].filename == __file__
    np.testing.assert_array_equal(found[1], NOISE)
    assert answers.means.shape == (3, 28, 28) and [bool(status >= 2) for status in answers.status] == [
        False,
        True,
        True,
    ]
    # So does one alone in a batch.
    with pytest.warns(restore.RestoreWarning):
        np.testing.assert_array_equal(restore.denoise(NOISE[None], "tap-mnist-25")[0], NOISE)


def test_a_restorer_is_pickled_by_name_and_copied() -> None:
    prior = restore.load("tap-mnist-25", engine="onnx")
    again = pickle.loads(pickle.dumps(prior))
    assert again.engine.backend == "onnx" and (again.denoise(STROKE, 0.1) == prior.denoise(STROKE, 0.1)).all()
    assert pickle.loads(pickle.dumps(restore.load("tap-mnist-25", "cpu", engine="torch"))).engine.backend == "torch"
    assert copy.deepcopy(prior).description == prior.description
    with pytest.raises(restore.UsageError):
        pickle.dumps(restore.Restorer(prior.engine))


def test_a_solver_that_does_not_converge_is_warned_of(tmp_path: Path) -> None:
    prior = zoo.load(zoo.find("tap-mnist-25"))
    impatient = replace(prior.description.inference, max_iter=20, tol=0.0)
    zoo.save(tmp_path / "m", replace(prior, description=replace(prior.description, inference=impatient)), "")
    with pytest.warns(restore.RestoreWarning) as told:
        _, solution = restore.denoise(STROKE, tmp_path / "m", 0.02, return_solution=True)
    assert solution.status == Status.MAX_ITER
    assert [Status.MAX_ITER.sentence in str(each.message) for each in told] == [True]


def test_a_good_result_warns_of_nothing() -> None:
    noisy = STROKE.copy()
    noisy[8, 20] = noisy[20, 4] = True
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not restore.denoise(noisy, "tap-mnist-25", 0.02)[20, 4]


def test_what_was_done_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "restore")
    restore.denoise(STROKE, "tap-mnist-25")
    (record,) = caplog.records
    assert record.name == "restore" and "tap-mnist-25" in record.getMessage() and "clean" in record.getMessage()


@pytest.mark.parametrize("name", ["force", "soft", "strict", "invert"])
def test_a_word_is_no_truth_value(name: str) -> None:
    with pytest.raises(restore.UsageError) as fault:
        restore.denoise(STROKE, "tap-mnist-25", **{name: "no"})  # type: ignore[arg-type]
    assert fault.value.subject == name


def test_an_option_that_does_not_exist_is_named_with_those_that_do() -> None:
    with pytest.raises(TypeError, match=r"'modl'.*sigma.*engine"):
        restore.denoise(np.zeros((30, 30)), modl="tap-mnist")
    with pytest.raises(TypeError, match=r"'epoch'.*epochs.*learner"):
        restore.train(np.zeros((30, 4, 4)), epoch=3)  # type: ignore[call-arg]


@pytest.mark.parametrize("model", ["auto", "conv-scan"])
def test_holes_of_a_page_have_its_own_ink_and_paper(model: str) -> None:
    ink = np.zeros((160, 160), bool)
    ink[np.arange(160) % 20 < 4, 20:140] = True
    page = np.where(ink, 60, 200) + np.random.default_rng(0).normal(0, 3, ink.shape)
    page, hole = np.rint(page).astype(np.uint8), np.zeros(ink.shape, bool)
    hole[70:90, 60:90] = True
    filled = restore.complete(page, hole, model=model)
    np.testing.assert_array_equal(filled[~hole], page[~hole])
    assert (np.abs(filled[hole].astype(float) - np.array([[60], [200]])).min(0) < 15).all()
    # With noise all of it is restored, hidden or not, in black and white.
    assert set(np.unique(restore.complete(page, hole, model=model, p="scan"))) == {0, 255}


def test_what_is_called_a_page_and_looks_like_none_is_read_with_a_doubt() -> None:
    photograph = data.camera()[100:260, 100:280]
    with pytest.warns(restore.RestoreWarning, match="doubtful"):
        _, answer = restore.denoise(photograph, p="scan", invert=False, return_solution=True)
    assert answer.outcome == "restored" and answer.doubt == Status.NOT_INK.sentence


def test_a_shape_after_many_flips_is_no_picture_of_squares() -> None:
    """By what is predicted while a lower level is assumed large squares are far ahead, as they average most pixels."""
    rows, columns = np.mgrid[:200, :200]
    clean = np.hypot(rows - 100, columns - 100) < 70
    flipped = clean ^ (np.random.default_rng(0).random(clean.shape) < 0.3)
    result, solution = restore.denoise(flipped, return_solution=True)
    assert solution.model == "conv-art" and solution.level.value == pytest.approx(0.3, abs=0.02)
    assert np.mean(result != clean) < 0.01


@pytest.mark.parametrize("sigma", [0.03, 0.1])
def test_the_noise_of_colours_that_a_file_cuts_off_is_found(sigma: float) -> None:
    clean = data.immunohistochemistry()[256:, 256:] / 255
    noisy = (clean + np.random.default_rng(1).normal(0, sigma, clean.shape)).clip(0, 1)
    levels = np.rint(255 * noisy).astype(np.uint8)
    _, solution = restore.denoise(levels, sigma="auto", channel_axis=-1, return_solution=True)
    assert solution.level.value == pytest.approx(sigma, rel=0.2)


def test_a_photograph_is_not_cut_as_its_level_is_given() -> None:
    photograph = data.moon()[:256, :256].copy()
    chosen = np.random.default_rng(0).random(photograph.shape)
    photograph[chosen < 0.1] = 255 * (chosen[chosen < 0.1] < 0.05)
    with pytest.raises(restore.NotRestored):
        restore.denoise(photograph, p=0.1, strict=True)
    # Soft edges and grain are no grey tones.
    code = np.kron(np.random.default_rng(1).random((30, 30)) < 0.5, np.ones((4, 4)))
    scanned = gaussian_filter(0.1 + 0.8 * code, 0.5) + np.random.default_rng(2).normal(0, 0.02, code.shape)
    restored = restore.denoise(np.rint(255 * scanned.clip(0, 1)).astype(np.uint8), p=0.1)
    np.testing.assert_array_equal(restored > 127, code > 0)


def test_a_page_that_was_resized_has_its_own_size_in_grey() -> None:
    page = np.where(np.arange(200) % 20 < 5, 60, 200).astype(np.uint8) * np.ones((200, 1), np.uint8)
    soft = restore.denoise(page, "conv-scan", p="scan", fit="resize", soft=True)
    assert soft.shape == page.shape and soft[:, 2].mean() < soft[:, 12].mean()


def test_a_small_page_is_not_left_to_the_first_prior_of_its_size() -> None:
    rows, columns = np.mgrid[:28, :28]
    ink = np.hypot(rows - 14, columns - 14) < 10
    grey = np.where(ink, 0.2, 0.8) + np.random.default_rng(1).normal(0, 0.05, ink.shape)
    for turned in (grey, 1 - grey):
        found = restore.denoise(turned.clip(0, 1), p="scan")
        assert ((found > 0.5) != (ink if turned is not grey else ~ink)).mean() < 0.01


def test_a_digit_is_turned_however_little_of_it_is_left() -> None:
    """After flips of .45 a dark one on light ground is still restored as its inverse is."""
    light = np.asarray(Image.open(Path(__file__).parents[1] / "assets" / "digit.png").convert("L")) > 127
    noisy = light ^ (np.random.default_rng(0).random(light.shape) < 0.45)
    found, of_dark = (restore.denoise(seen, "tap-mnist", 0.45) for seen in (noisy, ~noisy))
    assert (of_dark == ~found).all() and (found != light).mean() < 0.2
