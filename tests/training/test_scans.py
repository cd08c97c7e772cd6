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
    assert (inked <= covered + 0.01).all() and covered.min() == 0 and covered.max() == 1


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


def test_real_pages_are_cut_into_some_parts_with_their_truth(tmp_path: Path) -> None:
    dice = np.random.default_rng(0)
    small, large, blank = dice.random((512, 700)) < 0.2, dice.random((2048, 2048)) < 0.2, np.zeros((512, 512), bool)
    pages = [
        ("a", str(number), np.where(ink, 60, 200).astype(np.uint8), ~ink)
        for number, ink in enumerate((small, large, blank))
    ]
    made = scans.cut(pages, tmp_path)
    assert [path.stem for path in made[:2]] == ["a-0-0", "a-0-1"]
    assert len(made) == 2 + scans.MOST_PARTS and all(path.stem.startswith("a-1") for path in made[2:])
    # The second part ends with the page.
    for path, left in zip(made[:2], (0, 188), strict=True):
        grey, truth = (np.asarray(Image.open(file).convert("L")) for file in (path, path.with_suffix(".truth.png")))
        np.testing.assert_array_equal(grey < 130, small[:, left : left + 512])
        np.testing.assert_array_equal(truth < 130, small[:, left : left + 512])


def test_groups_of_sources_are_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ink = np.random.default_rng(0).random((512, 512)) < 0.2
    for folder, source in (("dibco", "2009"), ("pages", "msi")):
        page = tmp_path / folder / source / f"{source}-1.png"
        page.parent.mkdir(parents=True)
        Image.fromarray(np.where(ink, 60, 200).astype(np.uint8)).save(page)
        Image.fromarray(~ink).save(page.with_suffix(".truth.png"))
    monkeypatch.setattr(scans, "COUNTS", {"train": 0, "test": 0})
    pytest.importorskip("matplotlib")
    for groups, sources in (("ABCD", {"2009", "msi"}), ("BCD", {"msi"}), ("B", set())):
        made = scans.write(tmp_path / "scans" / "train", "train", groups)
        assert {path.stem.split("-")[0] for path in made} == sources
    assert scans.write(tmp_path / "scans" / "test", "test") == []
