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
from restore.data.sets.omniglot import ink, rows_of
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
    shown = ink(pixels)
    assert (shown.shape, shown.dtype) == ((28, 28), np.uint8)
    assert (shown[:4, :8] == 255).all()
    # Ink is conserved, to the rounding of grey levels: five pixels over at most six others.
    assert shown[4:].sum() / 255 == pytest.approx(5 * (28 / 105) ** 2, abs=6 * 0.5 / 255)
    assert not shown[:4, 8:].any()
    assert not ink(np.full((105, 105), 255, dtype=np.uint8)).any()


def tall() -> bytes:
    """A picture whose header promises more than memory holds."""
    whole = bytearray(BLANK)
    whole[16:24] = (60_000).to_bytes(4, "big") * 2
    return bytes(whole)


@pytest.mark.parametrize(
    "members",
    [
        {"../../outside.png": BLANK},
        {"images_background_small1/../../character01/0394_01.png": BLANK},
        {"images_background_small1/Greek/notes.txt": b"hello"},
        {FIRST: bytes(100_000_000)},
        {FIRST: b"hello"},
        {FIRST: png(np.zeros((28, 28), dtype=np.uint8))},
        {FIRST: tall()},
        {FIRST: BLANK},
        {},
    ],
    ids=["row-48-up", "row-48-within", "other", "row-48-bomb", "text", "small", "row-48-tall", "few", "none"],
)
def test_archives_of_something_else_are_refused_and_nothing_is_written(
    tmp_path: Path, members: dict[str, bytes]
) -> None:
    folder = archives(tmp_path, members)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(InputError) as caught:
        load("omniglot", root=tmp_path)
    assert str(folder / FILES[0].name) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert sorted(tmp_path.rglob("*")) == before


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
