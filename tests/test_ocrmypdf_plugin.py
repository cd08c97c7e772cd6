"""The plugin of OCRmyPDF: what its hooks do by themselves, and what the real program reads with it."""

from __future__ import annotations

import argparse
import importlib.util
import io
import shutil
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageDraw, ImageFont
from processes import HANG
from scipy.ndimage import gaussian_filter

import restore
from restore.channels.damage import Damage, Observed
from restore.errors import ModelError
from restore.images import Picture, bound, encode
from restore.inference.options import Options
from restore.inference.restored import Restored

ocrmypdf: Any = pytest.importorskip("ocrmypdf")
pluggy: Any = pytest.importorskip("pluggy")

from restore import ocrmypdf_plugin  # noqa: E402

P = 0.1
LINES = ("In the beginning the printer", "sets his letters line by line,", "and no two pages are alike.")


def drawn(height: int, width: int, size: int) -> np.ndarray:
    """The ink of a page, boolean (H, W), in a font that Pillow carries."""
    sheet = Image.new("L", (width, height))
    font = ImageFont.load_default(size)
    for number, line in enumerate(LINES):
        ImageDraw.Draw(sheet).text((size, size + 2 * size * number), line, fill=255, font=font)
    return np.asarray(sheet) > 127


def flipped(ink: np.ndarray, p: float = P) -> np.ndarray:
    return np.asarray(ink ^ (np.random.default_rng(0).random(ink.shape) < p))


def scan(ink: np.ndarray, mode: str = "1", dpi: int = 300) -> Image.Image:
    image = Image.fromarray(np.where(ink, 0, 255).astype(np.uint8)).convert(mode)
    image.info["dpi"] = (dpi, dpi)
    return image


INK = drawn(64, 128, 22)


def hooks(*others: Any) -> Any:
    """OCRmyPDF's own manager of plugins with this one, and others that were registered before it."""
    manager = pluggy.PluginManager("ocrmypdf")
    manager.add_hookspecs(ocrmypdf.pluginspec)
    for plugin in (*others, ocrmypdf_plugin):
        manager.register(plugin)
    return manager.hook


def page(**options: Any) -> SimpleNamespace:
    return SimpleNamespace(options=SimpleNamespace(**options), pageno=0)


class Halving:
    """Another plugin, which makes pages smaller."""

    @ocrmypdf.hookimpl
    def filter_ocr_image(self, page: Any, image: Image.Image) -> Image.Image:
        return image.resize((image.width // 2, image.height // 2))


def test_it_is_found_by_its_entry_point() -> None:
    (entry,) = (each for each in entry_points(group="ocrmypdf") if each.value == "restore.ocrmypdf_plugin")
    assert entry.load() is ocrmypdf_plugin


@pytest.mark.parametrize("mode", ["1", *(pytest.param(mode, marks=pytest.mark.thorough) for mode in ("L", "RGB"))])
def test_ocr_sees_the_probability_of_paper_in_the_size_and_resolution_of_the_page(mode: str) -> None:
    image = scan(flipped(INK), mode)
    result = hooks().filter_ocr_image(page=page(restore_model="conv-text", restore_p=str(P)), image=image)
    assert (result.mode, result.size, result.info["dpi"]) == ("L", image.size, image.info["dpi"])
    paper = np.asarray(result) > 127
    assert (paper == INK).mean() < P / 2
    _, solution = restore.denoise(image, "conv-text", P, return_solution=True)
    smooth = gaussian_filter(solution.means.astype(float), ocrmypdf_plugin.RESULT_BLUR, mode="nearest")
    # Pillow's Gaussian is made of box filters.
    assert np.abs(np.asarray(result) / 255 - smooth).max() < 0.1


def test_ocr_sees_a_grey_page_with_white_paper_and_its_own_ink() -> None:
    ink, rng = drawn(160, 320, 20), np.random.default_rng(0)
    light = np.linspace(0.9, 0.5, 320)[None]
    grey = light * (1 - 0.7 * gaussian_filter(ink.astype(float), 0.7)) + 0.02 * rng.standard_normal(ink.shape)
    image = Image.fromarray(np.rint(255 * grey.clip(0, 1)).astype(np.uint8))
    result = np.asarray(hooks().filter_ocr_image(page=page(restore_model="auto"), image=image)) / 255
    soft = restore.denoise(image, soft=True)
    np.testing.assert_array_equal(result, np.asarray(soft) / 255)
    # Level paper, and edges that stay soft.
    away = ~(gaussian_filter(ink.astype(float), 2) > 0.01)
    assert result[away].mean() > 0.98 and grey[away].std() > 0.1 > result[away].std()
    assert ((result > 0.3) & (result < 0.9)).mean() > 0.02


@pytest.mark.parametrize(
    "ink",
    [
        INK,
        np.zeros((64, 128), bool),
        pytest.param(np.random.default_rng(1).random((64, 128)) < 0.5, marks=pytest.mark.thorough),
    ],
    ids=["clean", "blank", "noise"],
)
def test_clean_and_refused_pages_are_the_very_image(ink: np.ndarray) -> None:
    image = scan(ink)
    assert hooks().filter_ocr_image(page=page(restore_model="conv-text"), image=image) is image
    np.testing.assert_array_equal(np.asarray(image), ~ink)


def test_without_its_options_it_does_nothing() -> None:
    image = scan(flipped(INK))
    assert hooks().filter_ocr_image(page=page(), image=image) is None
    assert hooks(Halving()).filter_ocr_image(page=page(restore_model=None), image=image).size == (64, 32)


def test_it_repairs_what_other_plugins_have_made() -> None:
    image = scan(flipped(INK.repeat(2, 0).repeat(2, 1), 0))
    result = hooks(Halving()).filter_ocr_image(page=page(restore_model="conv-text", restore_p="0.1"), image=image)
    assert result.size == (128, 64)


def test_options_are_read_and_checked() -> None:
    parser = argparse.ArgumentParser()
    hooks().add_options(parser=parser)
    names = ("restore_model", "restore_p", "restore_remove", "restore_specks")
    assert vars(parser.parse_args([])) == dict.fromkeys(names)
    for words in ([], ["--restore-model", "conv-text"], ["--restore-p", "scan"], ["--restore-specks", "20"]):
        ocrmypdf_plugin.check_options(parser.parse_args(words))
    # The last one is conditional: it has learnt its damage.
    wrong = (
        ["--restore-model", "no-such"],
        ["--restore-p", "2"],
        ["--restore-p", "crbm"],
        ["--restore-remove", "dust"],
    )
    conditional = ["--restore-model", "crbm-bp-mnist-flip10", "--restore-p", "0.1"]
    for words in (*wrong, conditional, ["--restore-specks", "0"]):
        with pytest.raises(ocrmypdf.exceptions.BadArgsError):
            ocrmypdf_plugin.check_options(parser.parse_args(words))


def test_a_level_alone_takes_the_best_prior() -> None:
    how, damage = ocrmypdf_plugin._settings(SimpleNamespace(restore_p="0.1"))
    assert how is not None and (how.model, how.marks, damage.p) == ("auto", (), 0.1)


def test_marks_are_what_is_removed_if_they_are_given(monkeypatch: pytest.MonkeyPatch) -> None:
    given = []

    def noted(pictures: list[Observed], options: Options) -> list[Restored]:
        given.append((pictures[0].damage.p, options.marks, options.specks, options.model))
        return restore_pictures([Observed(pictures[0].pixels, Damage(P))], Options("conv-text"))

    restore_pictures = ocrmypdf_plugin.restore
    monkeypatch.setattr(ocrmypdf_plugin, "restore", noted)
    wanted = page(restore_specks=20, restore_remove="dots")
    assert hooks().filter_ocr_image(page=wanted, image=scan(flipped(INK))).mode == "L"
    assert given == [(None, ("dots", "specks"), 20, "auto")]


@pytest.mark.parametrize("wrong", [ModelError("cannot be run"), MemoryError(), RuntimeError("of a library")], ids=str)
def test_a_fault_leaves_the_page_as_it_is_with_a_warning(
    wrong: Exception, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*given: Any) -> None:
        raise wrong

    monkeypatch.setattr(ocrmypdf_plugin, "restore", fail)
    image = scan(flipped(INK))
    assert hooks().filter_ocr_image(page=page(restore_model="conv-text"), image=image) is None
    assert hooks(Halving()).filter_ocr_image(page=page(restore_model="conv-text"), image=image).size == (64, 32)
    assert [record.levelname for record in caplog.records] == ["WARNING"] * 2
    assert "page 1" in caplog.text and (str(wrong) or type(wrong).__name__) in caplog.text


@pytest.mark.thorough
def test_it_loads_no_torch() -> None:
    code = (
        "import sys; from PIL import Image; from restore.channels.damage import Damage\n"
        "from restore.ocrmypdf_plugin import repaired\n"
        "repaired(Image.new('1', (64, 64)), 'auto', Damage(0.1), 0); assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=HANG)


def read(folder: Path, image: Image.Image, *options: str) -> tuple[str, bytes]:
    """What OCRmyPDF reads on a page, and the PDF that it makes."""
    if shutil.which("tesseract") is None:
        pytest.skip("tesseract is not installed")
    image.save(folder / "page.png", dpi=image.info["dpi"])
    words = [sys.executable, "-m", "ocrmypdf", "--quiet", "--output-type", "pdf", "--optimize", "0", *options]
    names = [str(folder / name) for name in ("text.txt", "page.png", "read.pdf")]
    subprocess.run([*words, "--sidecar", *names], check=True, timeout=HANG)
    return " ".join((folder / "text.txt").read_text().split()), (folder / "read.pdf").read_bytes()


@pytest.mark.thorough
def test_tesseract_reads_through_it_what_it_cannot_read_without(tmp_path: Path) -> None:
    image = scan(flipped(drawn(300, 640, 40)))
    words = set(" ".join(LINES).split())
    without, _ = read(tmp_path, image)
    result, content = read(tmp_path, image, "--restore-model", "conv-text")
    assert len(words & set(result.split())) > 0.8 * len(words) > 2 * len(words & set(without.split()))
    # The page itself is as it was, in its resolution.
    pypdfium2 = pytest.importorskip("pypdfium2")
    sheet = pypdfium2.PdfDocument(io.BytesIO(content))[0]
    assert sheet.get_size() == pytest.approx((72 * 640 / 300, 72 * 300 / 300), abs=0.1)
    (placed,) = sheet.get_objects(filter=[pypdfium2.raw.FPDF_PAGEOBJ_IMAGE])
    levels = np.asarray(placed.get_bitmap().to_pil().convert("L"))
    np.testing.assert_array_equal(levels > 127, np.asarray(image))


@pytest.mark.thorough
def test_a_clean_page_is_read_as_without_it(tmp_path: Path) -> None:
    image = scan(drawn(300, 640, 40))
    assert read(tmp_path, image, "--restore-model", "conv-text")[0] == read(tmp_path, image)[0] != ""


@pytest.mark.thorough
def test_the_guide_can_be_followed(tmp_path: Path) -> None:
    for program in ("tesseract", "gs"):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed")
    pytest.importorskip("pikepdf")
    pypdfium2 = pytest.importorskip("pypdfium2")
    docs = Path(__file__).parents[1] / "docs"
    spec = importlib.util.spec_from_file_location("tutorial", docs / "tutorial.py")
    assert spec is not None and spec.loader is not None
    sys.modules[spec.name] = tutorial = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tutorial)
    levels = np.where(flipped(drawn(150, 320, 20), 0.05), 0, 255).astype(np.uint8)
    picture = Picture(levels, info={"dpi": (150, 150)})
    (tmp_path / "scan.pdf").write_bytes(bound([encode(picture, picture.pixels, format="PDF")], "PDF"))
    work = [
        block for block in tutorial.blocks((docs / "ocr.md").read_text()) if block.code.split()[-1] == "searchable.pdf"
    ]
    results = []
    for block, _ in zip(work, tutorial.run(work, tmp_path), strict=True):
        made = pypdfium2.PdfDocument(tmp_path / block.code.split()[-1])
        results.append(set(made[0].get_textpage().get_text_range().split()))
    words = set(" ".join(LINES).split())
    assert len(results) == 2 and all(len(words & each) > len(words) / 2 for each in results)
