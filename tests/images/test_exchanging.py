"""Scans of a PDF exchanged in it: their pixels are new, and all else is as it was."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
from PIL import ImageCms
from scanned_books import book, images_of, page, pikepdf, same_but_for_scans

from restore.errors import InputError
from restore.images import Book, Picture, bound, encode, exchanged, read_picture
from restore.images.pdf import Document


def noise(seed: int, *shape: int) -> np.ndarray:
    return np.where(np.random.default_rng(seed).random(shape) < 0.5, 255, 0).astype(np.uint8)


pytestmark = pytest.mark.usefixtures("foreseen")


def shown(content: bytes, number: int) -> np.ndarray:
    return read_picture(io.BytesIO(content), name="x", frame=number).levels


def test_an_upright_scan_is_exchanged_in_its_place_and_one_that_is_shared_stays_elsewhere() -> None:
    old, new = noise(0, 90, 60), noise(1, 90, 60)
    content = book(old, old)
    with pikepdf.open(io.BytesIO(content)) as document:
        shared = document.make_indirect(document.pages[0].obj.Resources)
        for sheet in document.pages:
            sheet.obj.Resources = shared
        stream = io.BytesIO()
        document.save(stream)
    found = exchanged(stream.getvalue(), {0: page(new)}, "x")
    np.testing.assert_array_equal(shown(found, 0), new)
    np.testing.assert_array_equal(shown(found, 1), old)
    same_but_for_scans(found, 2)
    with pikepdf.open(io.BytesIO(found)) as document:
        (image,) = images_of(document.pages[0])
        assert (image.Width, image.Height, list(image.Filter)) == (60, 90, [pikepdf.Name.CCITTFaxDecode])
        assert len(list(document.pages[0].resources.XObject)) == 1
        with pikepdf.open(io.BytesIO(content)) as before:
            assert list(document.pages[0].mediabox) == list(before.pages[0].mediabox)
    assert found == exchanged(stream.getvalue(), {0: page(new)}, "x")


@pytest.mark.parametrize(
    ("facts", "shape"),
    [
        ({"Rotate": 90}, (60, 90)),
        pytest.param({"Rotate": 180}, (90, 60), marks=pytest.mark.thorough),
        pytest.param({"CropBox": [5, 5, 55, 80]}, (75, 50), marks=pytest.mark.thorough),
        pytest.param({"CropBox": [5, 5, 55, 80], "Rotate": 270}, (50, 75), marks=pytest.mark.thorough),
    ],
)
def test_a_turned_or_cropped_scan_is_covered_as_it_is_seen(facts: dict[str, Any], shape: tuple[int, int]) -> None:
    content, new = book(noise(0, 90, 60), **facts), noise(1, *shape)
    found = exchanged(content, {0: page(new)}, "x")
    np.testing.assert_array_equal(shown(found, 0), new)
    same_but_for_scans(found, 1)
    # What the new image hides is left out.
    with pikepdf.open(io.BytesIO(found)) as document:
        assert not images_of(document.pages[0])


@pytest.mark.thorough
def test_several_images_of_a_page_become_one() -> None:
    content = book(noise(0, 90, 60))
    with pikepdf.open(io.BytesIO(content)) as document:
        sheet = document.pages[0]
        sheet.obj.Resources.XObject["/Stamp"] = next(iter(sheet.obj.Resources.XObject.values()))
        sheet.contents_add(b"q 20 0 0 20 30 60 cm /Stamp Do Q")
        stream = io.BytesIO()
        document.save(stream)
    new = noise(1, *shown(stream.getvalue(), 0).shape)
    found = exchanged(stream.getvalue(), {0: page(new)}, "x")
    np.testing.assert_array_equal(shown(found, 0), new)
    same_but_for_scans(found, 1)


def test_grey_and_colours_come_back_with_their_profile() -> None:
    grey = np.random.default_rng(2).integers(0, 256, (30, 40), dtype=np.uint8)
    colour = np.random.default_rng(3).integers(0, 256, (30, 40, 3), dtype=np.uint8)
    profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    coloured = encode(Picture(colour, info={"icc_profile": profile}), colour / 255, format="PDF")
    found = exchanged(bound([page(grey[::-1].copy()), coloured], "PDF"), {0: page(grey)}, "x")
    np.testing.assert_array_equal(shown(found, 0), grey)
    with pikepdf.open(io.BytesIO(found)) as document:
        (image,) = images_of(document.pages[1])
        assert image.ColorSpace[1].read_bytes() == profile
    np.testing.assert_array_equal(read_picture(io.BytesIO(found), name="x", frame=1, colour=True).levels, colour)


def test_permissions_stay_and_damage_is_one_error() -> None:
    content, stream = book(noise(0, 90, 60)), io.BytesIO()
    with pikepdf.open(io.BytesIO(content)) as document:
        document.save(
            stream, encryption=pikepdf.Encryption(owner="a", user="", allow=pikepdf.Permissions(extract=False))
        )
    with pikepdf.open(io.BytesIO(exchanged(stream.getvalue(), {0: page(noise(1, 90, 60))}, "x"))) as document:
        assert document.is_encrypted and not document.allow.extract
    for broken, number in ((b"%PDF-1.7\n" + bytes(99), 0), (content, 7)):
        with pytest.raises(InputError):
            exchanged(broken, {number: page(noise(1, 90, 60))}, "x")


def scanned(content: bytes, format: str) -> list[int] | None:
    with Document(content, "x", 10**6) as source:
        return Book(source, "x", 10**6).scans(format)


def test_pages_without_scans_are_told_apart() -> None:
    document = pikepdf.open(io.BytesIO(book(noise(0, 90, 60))))
    document.add_blank_page(page_size=(60, 90))
    stream = io.BytesIO()
    document.save(stream)
    assert scanned(stream.getvalue(), "PDF") == [0]
    assert scanned(stream.getvalue(), "TIFF") is None
    del document.pages[0]
    stream = io.BytesIO()
    document.save(stream)
    with pytest.raises(InputError):
        scanned(stream.getvalue(), "PDF")
