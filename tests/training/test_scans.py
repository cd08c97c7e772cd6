"""Grey pages drawn by code with their ink: they repeat to the bit, their truth is hard, every damage does something."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from restore.data.dataset import Split
from training.data import make, scans, text
from training.data.pages import Family
from training.data.wear import DAMAGES, Damage, Grey

SHAPE = (256, 256)


@pytest.fixture(scope="module")
def families() -> list[Family]:
    pytest.importorskip("matplotlib")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return text.families_to_learn_from()


def test_a_page_depends_on_its_seed_and_number_alone(families: list[Family]) -> None:
    first, again = (scans.scan(families, 3, 5, SHAPE) for _ in range(2))
    np.testing.assert_array_equal(first[0], again[0])
    np.testing.assert_array_equal(first[1], again[1])
    for seed, number in ((4, 5), (3, 6)):
        assert (scans.scan(families, seed, number, SHAPE)[1] != first[1]).any()


def test_ink_covers_a_part_of_every_page_and_is_mostly_darker_than_paper(families: list[Family]) -> None:
    darker = []
    for number in range(12):
        grey, ink = scans.scan(families, 0, number, SHAPE)
        assert grey.shape == ink.shape == SHAPE and grey.dtype == np.uint8 and ink.dtype == np.bool_
        assert scans.LEAST <= ink.mean() <= scans.MOST
        darker.append(grey[ink].mean() < grey[~ink].mean())
    assert all(darker)


@pytest.mark.parametrize("content", [content for content, _ in scans.CONTENTS])
def test_ink_is_never_darker_than_it_covers(content: scans.Content, families: list[Family]) -> None:
    covered, inked = content(np.random.default_rng(1), families, SHAPE)
    assert covered.shape == inked.shape == SHAPE and covered.dtype == inked.dtype == np.float32
    if content is scans.CONTENTS[1][0]:  # small print has dark soft edges beside its stems, which are no ink
        assert (inked > 0.5)[covered < 0.5].mean() < 0.05
    else:
        assert (inked <= covered + 0.01).all()
    assert covered.min() == 0 and covered.max() == 1


def test_hairlines_between_pixels_are_ink_and_soft_edges_of_stems_are_none() -> None:
    print_ = np.zeros((20, 30), np.float32)
    print_[:, 8:10] = print_[:, 20] = 0.4
    print_[:, 2:4] = 1
    print_[:, 4] = 0.4
    assert np.flatnonzero((scans.sharpened(print_) >= 0.5)[10]).tolist() == [2, 3, 8, 9, 20]


@pytest.mark.parametrize("damage", [damage for damage, _ in DAMAGES])
def test_every_damage_changes_a_page_within_black_and_white(damage: Damage, families: list[Family]) -> None:
    page: Grey = np.float32(1) - scans.CONTENTS[0][0](np.random.default_rng(2), families, SHAPE)[0]
    page = np.float32(0.1) + np.float32(0.8) * page
    before = page.copy()
    for seed in range(5):
        damaged, again = (damage(page, np.random.default_rng(seed)) for _ in range(2))
        assert damaged.shape == page.shape and damaged.dtype == np.float32
        assert damaged.min() >= 0 and damaged.max() <= 1
        assert (damaged != page).any()
        np.testing.assert_array_equal(damaged, again)
    np.testing.assert_array_equal(page, before)


def test_pairs_are_written_as_grey_pages_and_truth_of_one_bit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, families: list[Family]
) -> None:
    asked: list[int] = []

    def small(families: list[Family], seed: int, number: int) -> tuple[np.ndarray, np.ndarray]:
        asked.append(seed)
        return draw(families, seed, number, SHAPE)

    draw = scans.scan
    counts: dict[Split, int] = {"train": 2, "test": 1}
    monkeypatch.setattr(scans, "COUNTS", counts)
    monkeypatch.setattr(scans, "scan", small)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        written = make.make(["scans"], tmp_path)
    names = [path.relative_to(tmp_path).as_posix() for path in written]
    assert names == ["scans/train/0000.png", "scans/train/0001.png", "scans/test/0000.png"]
    assert asked == [scans.SEEDS["train"]] * 2 + [scans.SEEDS["test"]] and len(set(scans.SEEDS.values())) == 2
    for path in written:
        page, truth = Image.open(path), Image.open(path.with_suffix(".truth.png"))
        assert (page.mode, truth.mode) == ("L", "1") and page.size == truth.size
        # Ink is black.
        assert 0 < (~np.asarray(truth)).mean() < 0.5


def test_no_page_is_in_fonts_for_testing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Also pages for testing are drawn in the fonts to learn from: those held out are for OCR."""
    faces: list[str] = []

    def noted(families: list[Family], seed: int, number: int) -> tuple[np.ndarray, np.ndarray]:
        faces.extend(face.stem for family in families for face in family)
        return np.zeros(SHAPE, np.uint8), np.zeros(SHAPE, np.bool_)

    pytest.importorskip("matplotlib")
    monkeypatch.setattr(scans, "scan", noted)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for split in ("train", "test"):
            scans.write(tmp_path, split)
    tested = set(" ".join(text.FOR_TESTS.values()).split())
    assert faces and not set(faces) & tested
    assert not [face for face in faces if face.startswith(("Liberation", "Free"))]


def test_a_third_of_the_real_pages_is_held_out_for_choosing_and_always_the_same() -> None:
    names = [f"20{year:02}-{kind}{number:02}" for year in range(9, 19) for kind in "HP" for number in range(20)]
    held_out = [name for name in names if scans.for_choosing(name)]
    assert 0.25 < len(held_out) / len(names) < 0.42
    real = ("2009-H01", "2009-P02", "2009-P03", "2013-HW01", "2013-HW02")
    assert [name for name in real if scans.for_choosing(name)] == ["2009-P02", "2013-HW01"]


def test_real_pages_are_cut_into_parts_with_their_truth(tmp_path: Path) -> None:
    ink = np.zeros((512, 700), bool)
    ink[100:200, 300:] = True
    for name in ("2009-H01", "2009-P02"):
        page = tmp_path / "dibco" / "2009" / f"{name}.png"
        page.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.where(ink, 60, 200).astype(np.uint8)).save(page)
        Image.fromarray(np.where(ink, 0, 255).astype(np.uint8)).save(page.with_suffix(".truth.png"))
    made = scans.cut(page.parents[1], tmp_path)
    # The other is for choosing. The second part ends with the page.
    assert [path.stem for path in made] == ["2009-2009-H01-00", "2009-2009-H01-01"]
    for path, left in zip(made, (0, 188), strict=True):
        grey, truth = (np.asarray(Image.open(file)) for file in (path, path.with_suffix(".truth.png")))
        np.testing.assert_array_equal(grey < 130, ink[:, left : left + 512])
        np.testing.assert_array_equal(truth < 130, ink[:, left : left + 512])
