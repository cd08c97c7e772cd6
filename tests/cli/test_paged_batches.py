"""Files of several pages on the command line: a file in, a file out, all of it or nothing."""

from __future__ import annotations

import json
import sys
import weakref
from pathlib import Path

import numpy as np
import pytest
from bad_images import encoded
from commands import QUICK, Run, fault
from PIL import Image

from restore.cli.batch import run as running
from restore.cli.batch import work
from restore.images import Book, Picture, bound, read_picture

pytestmark = pytest.mark.usefixtures("foreseen")
SHAPE = (28, 28)


def stroke(column: int) -> np.ndarray:
    values = np.zeros(SHAPE, bool)
    values[5:23, column : column + 2] = True
    return values


NOISE = np.random.default_rng(0).random(SHAPE) < 0.5
STROKES = [stroke(column) for column in (8, 13, 18)]

# So many that more than the lowest level of flips is found.
FLIPS = np.zeros((28, 28), bool)
FLIPS[[3, 24, 25, 1], [22, 3, 24, 4]] = True


def tiff(path: Path, *pages: np.ndarray) -> Path:
    path.write_bytes(bound([encoded(Image.fromarray(page), "TIFF", dpi=(300, 300)) for page in pages], "TIFF"))
    return path


def pdf(path: Path, *pages: np.ndarray) -> Path:
    pytest.importorskip("pikepdf")
    pytest.importorskip("pypdfium2")
    path.write_bytes(bound([encoded(Image.fromarray(page), dpi=(300, 300)) for page in pages], "PDF"))
    return path


MAKERS = pytest.mark.parametrize(("make", "ending"), [(tiff, "tif"), (pdf, "pdf")], ids=["tiff", "pdf"])


def levels(path: Path, page: int) -> np.ndarray:
    return read_picture(path, name="x", frame=page).levels


@MAKERS
def test_pages_in_pages_out(make, ending: str, run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    book = make(tmp_path / f"book.{ending}", *STROKES)
    assert run("denoise", book, "--model", QUICK, "--p", 0.02, "--json") == 0
    records = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [record["page"] for record in records] == [1, 2, 3]
    restored = tmp_path / f"book.restored.{ending}"
    assert {record["output"] for record in records} == {str(restored)}
    for number, page in enumerate(STROKES):
        Image.fromarray(page).save(tmp_path / "one.png")
        assert run("denoise", tmp_path / "one.png", "--model", QUICK, "--p", 0.02, "--overwrite") == 0
        np.testing.assert_array_equal(levels(restored, number), levels(tmp_path / "one.restored.png", 0))
        assert read_picture(restored, name="x", frame=number).info["dpi"] == pytest.approx((300, 300), rel=1e-3)
    assert run("denoise", book, "--model", QUICK, "--p", 0.02, "--frame", 1, "-o", tmp_path / "two.png") == 0
    np.testing.assert_array_equal(levels(restored, 1), levels(tmp_path / "two.png", 0))


@MAKERS
def test_a_page_that_nothing_explains_stays_as_it_is_among_others(
    make, ending: str, run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """If nobody said how it is damaged; blank backs are usual in scans."""
    dirty = STROKES[1] ^ FLIPS
    book, maps = make(tmp_path / f"book.{ending}", dirty, NOISE, STROKES[1]), tmp_path / f"maps.{ending}"
    assert run("denoise", book, "--model", QUICK, "--uncertainty", maps, "--json") == 0
    out = capsys.readouterr()
    assert "not sure" in out.err.splitlines()[-1]
    outcomes = [json.loads(line)["outcome"] for line in out.out.splitlines()]
    assert outcomes == ["restored", "not sure", "clean"]
    assert [json.loads(line)["status"] for line in out.out.splitlines()] == ["converged", "unrecognised", "converged"]
    np.testing.assert_array_equal(levels(tmp_path / f"book.restored.{ending}", 1) > 0, NOISE)
    assert not levels(maps, 1).any() and levels(maps, 0).any()
    nothing = make(tmp_path / f"nothing.{ending}", NOISE, NOISE)
    assert run("denoise", nothing, "--model", QUICK, "--strict") == 4
    assert not (tmp_path / f"nothing.restored.{ending}").exists()
    assert run("denoise", nothing, "--model", QUICK) == 0
    assert (tmp_path / f"nothing.restored.{ending}").read_bytes() == nothing.read_bytes()
    # A page that is named is a file of its own, unless there is no other.
    single = make(tmp_path / f"single.{ending}", NOISE)
    single.write_bytes(single.read_bytes() + b"\nmore\n")
    assert run("denoise", single, "--model", QUICK, "--frame", 0) == 0
    assert (tmp_path / f"single.restored.{ending}").read_bytes() == single.read_bytes()
    assert run("denoise", nothing, "--model", QUICK, "--frame", 1, "-o", tmp_path / f"one.{ending}") == 0
    assert Book.of((tmp_path / f"one.{ending}").read_bytes(), "one", 10**6).count == 1


def test_in_a_pdf_all_but_restored_scans_stays(run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from scanned_books import book, images_of, pikepdf, same_but_for_scans

    path = tmp_path / "book.pdf"
    damaged = STROKES[1] | FLIPS
    path.write_bytes(book(*(np.where(ink, 255, 0).astype(np.uint8) for ink in (damaged, NOISE))))
    with pikepdf.open(path, allow_overwriting_input=True) as document:
        document.add_blank_page(page_size=(28, 28))
        document.save()
    assert run("denoise", path, "--model", QUICK, "--json", "--uncertainty", tmp_path / "maps.pdf") == 0
    out = capsys.readouterr()
    records = [json.loads(line) for line in out.out.splitlines()]
    assert [(record["page"], record["status"]) for record in records] == [(1, "converged"), (2, "unrecognised")]
    assert "not sure" in out.err.splitlines()[-1] and "book.pdf: left as they are" in out.err
    restored = tmp_path / "book.restored.pdf"
    with pikepdf.open(path) as before, pikepdf.open(restored) as after:
        assert len(after.pages) == 3 and str(after.docinfo.Title) == str(before.docinfo.Title)
        images = [[images_of(sheet)[0].read_raw_bytes() for sheet in each.pages[:2]] for each in (before, after)]
        assert images[0][1] == images[1][1] and images[0][0] != images[1][0]
        del after.pages[2]
        after.save(tmp_path / "scans.pdf")
    same_but_for_scans((tmp_path / "scans.pdf").read_bytes(), 2)
    np.testing.assert_array_equal(levels(restored, 0) > 0, STROKES[1])
    with pikepdf.open(tmp_path / "maps.pdf") as maps:
        assert len(maps.pages) == 2
    with pikepdf.open(path, allow_overwriting_input=True) as document:
        del document.pages[:2]
        document.save()
    assert run("denoise", path, "--model", QUICK, "--overwrite") == 3
    assert "book.pdf: " in fault(capsys)


def test_a_damaged_page_is_named(run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    book = tiff(tmp_path / "book.tif", *STROKES)
    book.write_bytes(book.read_bytes()[:-200])
    assert run("denoise", book, "--model", QUICK, "--p", 0.02) == 3
    assert "book.tif" in fault(capsys)
    assert [path.name for path in tmp_path.iterdir()] == ["book.tif"]


@pytest.mark.parametrize("words", [("-o", "out.png"), ("-o", "-"), ("--uncertainty", "map.png")], ids=" ".join)
def test_what_holds_no_pages_is_refused_before_work(
    words: tuple[str, str],
    run: Run,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    tiff(tmp_path / "book.tif", *STROKES)
    assert run("denoise", "book.tif", "--model", QUICK, "--p", 0.02, *words) == 3
    assert "book.tif" in fault(capsys)
    assert [path.name for path in tmp_path.iterdir()] == ["book.tif"]


def test_masks_and_maps_have_pages_too(run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    holes = [np.zeros(SHAPE, bool) for _ in STROKES]
    for row, hole in enumerate(holes):
        hole[8 + row : 11 + row, 6:22] = True
    book, masks = tiff(tmp_path / "book.tif", *STROKES), tiff(tmp_path / "masks.tif", *holes)
    words = ("complete", book, "--mask", masks, "--model", QUICK, "-o", tmp_path / "whole.tif")
    assert run(*words, "--uncertainty", tmp_path / "map.tif") == 0
    for number, (page, hole) in enumerate(zip(STROKES, holes, strict=True)):
        assert ((levels(tmp_path / "whole.tif", number) > 0) == page)[~hole].all()
        assert levels(tmp_path / "map.tif", number).shape == SHAPE
    # Of one page alone.
    one = ("complete", book, "--mask", masks, "--model", QUICK, "--frame", 1, "-o", tmp_path / "one.png")
    assert run(*one) == 0
    np.testing.assert_array_equal(levels(tmp_path / "one.png", 0), levels(tmp_path / "whole.tif", 1))
    # One mask for all pages; and masks of another number.
    assert run(*words[:2], "--mask", tiff(tmp_path / "m.tif", holes[0]), *words[4:], "--overwrite") == 0
    assert run(*words[:2], "--mask", tiff(tmp_path / "m.tif", *holes[:2]), *words[4:], "--overwrite") == 3
    assert "m.tif: " in fault(capsys)


@pytest.mark.thorough
def test_only_a_few_pages_are_held(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    book = tiff(tmp_path / "book.tif", *STROKES * 20)
    alive: weakref.WeakSet[Picture] = weakref.WeakSet()
    most = 0

    def reading(*given, **options):
        nonlocal most
        alive.add(picture := read_picture(*given, **options))
        most = max(most, len(alive))
        return picture

    monkeypatch.setattr(work, "read_picture", reading)
    monkeypatch.setattr(running, "CHUNK_PIXELS", 4 * 28 * 28)
    assert run("denoise", book, "--model", QUICK, "--p", 0.02) == 0
    # Four at a time, and those that are read ahead.
    assert 4 <= most <= 8 + running.READ_AHEAD
    assert levels(tmp_path / "book.restored.tif", 59).shape == SHAPE


def test_without_the_extra_a_pdf_is_answered_in_one_line(
    run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    book = pdf(tmp_path / "book.pdf", *STROKES)
    Image.fromarray(STROKES[0]).save(tmp_path / "one.png")
    for missing, source in (("pypdfium2", book), ("pikepdf", tmp_path / "one.png")):
        with monkeypatch.context() as without:
            without.setitem(sys.modules, missing, None)
            words = ("--model", QUICK, "--p", 0.02, "-o", tmp_path / "out.pdf")
            assert run("denoise", source, *words) == 2
        said = fault(capsys)
        assert missing in said and '"restore-prior[pdf]"' in said
    assert not (tmp_path / "out.pdf").exists()


def test_a_page_that_cannot_be_decoded_stays_and_is_named(
    run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    book = pdf(tmp_path / "book.pdf", *STROKES)
    pikepdf = pytest.importorskip("pikepdf")

    def raw(path: Path) -> list[bytes]:
        with pikepdf.open(path) as document:
            return [image.read_raw_bytes() for page in document.pages for image in page.get_images().values()]

    with pikepdf.open(book, allow_overwriting_input=True) as document:
        (image,) = document.pages[1].get_images().values()
        image.write(b"no picture", filter=pikepdf.Name.DCTDecode)
        document.save(book)
    before = raw(book)
    assert run("denoise", book, "--model", QUICK, "--p", 0.02) == 0
    said, after = capsys.readouterr().err, raw(tmp_path / "book.restored.pdf")
    (line,) = (line for line in said.splitlines() if "page 2 of 3" in line)
    assert "not sure" in line and "decoded" in line and "3 pages: 2 restored" in said
    assert after[1] == before[1] and after[0] != before[0]
    assert run("denoise", book, "--model", QUICK, "--p", 0.02, "-o", tmp_path / "pages.tif") == 3
    with pikepdf.open(book, allow_overwriting_input=True) as document:
        del document.pages[2], document.pages[0]
        document.save(book)
    assert run("denoise", book, "--model", QUICK, "--p", 0.02, "--overwrite") == 3
