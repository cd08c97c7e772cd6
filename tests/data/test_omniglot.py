"""Omniglot: its splits and how drawings are shown; archives that hold something else."""

from __future__ import annotations

import hashlib
import io
import zipfile
from pathlib import Path

import numpy as np
import pytest
from omniglot_data import FILES, needs_omniglot, omniglot
from PIL import Image

from restore.data import load, overlap
from restore.data.sets.omniglot import drawings_of, ink, rows_of
from restore.errors import InputError

FIRST = "images_background_small1/Greek/character01/0394_01.png"


def png(pixels: np.ndarray) -> bytes:
    stream = io.BytesIO()
    Image.fromarray(pixels).save(stream, "PNG")
    return stream.getvalue()


BLANK = png(np.full((105, 105), 255, dtype=np.uint8))


def archives(root: Path, members: dict[str, bytes], kind: int = zipfile.ZIP_DEFLATED) -> Path:
    """A copy of the user's own whose two archives hold these members."""
    folder = root / "omniglot"
    folder.mkdir()
    for path in FILES:
        with zipfile.ZipFile(folder / path.name, "w", kind) as archive:
            for name, content in members.items():
                archive.writestr(name, content)
    return folder


# --- what needs no data ---


def test_every_drawing_is_in_one_split_that_never_changes() -> None:
    train, test = rows_of("train"), rows_of("test")
    assert (len(train), len(test)) == (3_630, 1_210)
    np.testing.assert_array_equal(np.sort(np.concatenate([train, test])), np.arange(4_840))
    checksums = [hashlib.sha256(rows.astype("<u4").tobytes()).hexdigest()[:16] for rows in (train, test)]
    assert checksums == ["eefc43ca793e9a47", "9219ff9da1037599"]


def test_a_grey_level_is_the_share_of_ink() -> None:
    pixels = np.full((105, 105), 255, dtype=np.uint8)
    pixels[:15, :30] = 0  # four pixels by eight of the picture shown: 105 / 28 = 15 / 4
    pixels[60:65, 60] = 0
    shown = ink(png(pixels), "x")
    assert (shown.shape, shown.dtype) == ((28, 28), np.uint8)
    assert (shown[:4, :8] == 255).all()
    # Ink is conserved, to the rounding of grey levels: five pixels over at most six others.
    assert shown[4:].sum() / 255 == pytest.approx(5 * (28 / 105) ** 2, abs=6 * 0.5 / 255)
    assert not shown[:4, 8:].any()
    assert not ink(BLANK, "x").any()


@pytest.mark.parametrize(
    ("members", "says"),
    [
        ({"../../outside.png": BLANK}, "which is no drawing"),
        ({"/etc/outside.png": BLANK}, "which is no drawing"),
        ({"images_background_small1/../character01/0394_01.png": BLANK}, "which is no drawing"),
        ({"images_background_small1/Greek/notes.txt": b"hello"}, "which is no drawing"),
        ({FIRST: bytes(100_000_000)}, "larger than 65536 bytes"),
        ({FIRST: b"hello"}, "instead of 4840"),
        ({}, "hold 0 different drawings"),
    ],
    ids=["row-48-up", "row-48-root", "row-48-within", "other", "row-48-bomb", "few", "none"],
)
def test_archives_of_something_else_are_refused_and_nothing_is_written(
    tmp_path: Path, members: dict[str, bytes], says: str
) -> None:
    folder = archives(tmp_path, members)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(InputError, match=says) as caught:
        load("omniglot", root=tmp_path)
    assert str(folder / FILES[0].name) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert sorted(tmp_path.rglob("*")) == before


def test_every_truncation_and_damaged_byte_of_an_archive_is_survived(tmp_path: Path) -> None:
    path = archives(tmp_path, {FIRST: BLANK}) / FILES[0].name
    whole = path.read_bytes()
    damaged = [whole[:length] for length in range(0, len(whole), 7)]
    damaged += [whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :] for at in range(len(whole))]
    refused = 0
    for content in damaged:
        path.write_bytes(content)
        try:
            for _, drawing in drawings_of(path):
                ink(drawing, "x")
        except InputError as fault:
            refused += 1
            assert "\n" not in str(fault)
    assert refused > len(damaged) / 2


def tall() -> bytes:
    """A picture whose header promises more than memory holds."""
    whole = bytearray(BLANK)
    whole[16:24] = (60_000).to_bytes(4, "big") * 2
    return bytes(whole)


@pytest.mark.parametrize(
    "content", [b"", b"hello", BLANK[:60], png(np.zeros((28, 28), dtype=np.uint8)), tall()], ids=lambda c: str(len(c))
)
def test_what_is_no_drawing_is_refused_by_name(content: bytes) -> None:
    with pytest.raises(InputError, match=r"^where: "):
        ink(content, "where")


def test_what_cannot_be_read_is_an_input_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        list(drawings_of(tmp_path))


# --- what needs the files ---


@pytest.mark.thorough
@needs_omniglot
def test_the_drawings_never_change() -> None:
    # Whoever changes order, scaling or polarity makes the scores of every prior trained on these incomparable.
    assert [omniglot(split).fingerprint for split in ("train", "test")] == [
        "52fe073f9c021a4a15725da28ba2a293503506116be70f8f122859faa7e37f21",
        "edf23d3f37e26326d6c3240886e9276c85fdddc50ba640737d999be9d86efb33",
    ]


@pytest.mark.thorough
@needs_omniglot
def test_drawings_are_white_on_black_and_none_is_in_both_splits() -> None:
    train, test = omniglot("train"), omniglot("test")
    assert overlap(train, test) == 0
    assert train.images.shape == (3_630, 28, 28)
    assert test.images.shape == (1_210, 28, 28)
    for found in (train, test):
        assert found.images.mean() / 255 == pytest.approx(0.08, abs=0.003)
        # Strokes are about half a shown pixel wide, so that most of their pixels are grey; but black and white remain.
        assert found.images.max() == 255
        assert (found.images == 0).mean() > 0.8
    assert not any("repeat" in note for note in train.notes + test.notes)
