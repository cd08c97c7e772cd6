"""Read pictures and masks by their content, never by their name, and refuse damaged ones."""

from __future__ import annotations

import contextlib
import io
import logging
import os
import re
import threading
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

import numpy as np
from PIL import ExifTags, Image, ImageChops, ImageFile, ImageOps, UnidentifiedImageError

from restore.errors import InputError, RestoreError, shown
from restore.images import jpeg, pdf, png, tiff
from restore.images.colours import picture_of
from restore.images.picture import Mask, Picture, Stored
from restore.images.raster import Raster, byte_pairs, expand, spread

DEFAULT_MAX_PIXELS = 50_000_000
# All images of a set together may have this many times as many: by default a thousand million, more than the largest
# set of small images (EMNIST, 638 million).
_SET = 20

# A mask that marks more than this share of an image may be the wrong way round.
_MUCH = 0.5

# Only raster formats: page descriptions such as EPS, which Pillow would pass to another program, are excluded.
_FORMATS = ("PNG", "JPEG", "TIFF", "BMP", "GIF", "WEBP", "PPM")
# The TIFF tag PhotometricInterpretation.
_PHOTOMETRIC = 262

# Pillow's log would go to stderr by default; what matters it raises.
logging.getLogger("PIL").addHandler(logging.NullHandler())

# Pillow's limits and Python's warning filters belong to the whole process, so only one reader at a time changes them.
_BORROWED = threading.Lock()


def check_together(pixels: int, name: str, max_pixels: int) -> None:
    """Refuse a set of images with too many pixels.

    Args:
        pixels: of all of them, as far as known.
        name: the set's name for messages.
        max_pixels: the most pixels of one image.

    Raises:
        InputError: if they have more than twenty times as many.
    """
    if pixels > _SET * max_pixels:
        raise InputError(
            f"{shown(name)}: its images have more than {_SET * max_pixels} pixels together, {_SET} times what "
            f"--max-pixels grants to one; raise --max-pixels above {-(-pixels // _SET) - 1} if this is meant"
        )


def read_picture(
    source: str | os.PathLike[str] | BinaryIO,
    *,
    name: str,
    frame: int | None = None,
    max_pixels: int = DEFAULT_MAX_PIXELS,
    colour: bool = False,
) -> Picture:
    """Read one grey picture.

    Grey levels of 8 and 16 bits are kept as they are. Levels of 1, 2 and 4 bits, palettes and other colour spaces are
    expanded. Floating-point levels in [0, 1] are rounded to 16 bits. Colours that are nearly grey, or mixtures of two,
    become grey levels, and so does transparency if it alone shows a shape; else it is kept separately. An orientation
    tag is obeyed.

    Args:
        source: a path, or a stream opened for reading bytes.
        name: its name for messages.
        frame: which frame or page to read, from 0; required if a file holds several.
        max_pixels: refuse larger images before decoding them; the frames before a chosen one count too.
        colour: keep other colours, as levels (H, W, 3).

    Raises:
        InputError: there is no such file; it is damaged, too large, empty, or in an unknown format; its levels have no
            defined range; or it holds several frames and none was chosen.
        ModelError: the image is in more than two colours, which are not to be kept.
    """
    return picture_of(read_raster(source, name=name, frame=frame, max_pixels=max_pixels), shown(name), colour=colour)


def read_raster(
    source: str | os.PathLike[str] | BinaryIO,
    *,
    name: str,
    frame: int | None = None,
    max_pixels: int = DEFAULT_MAX_PIXELS,
) -> Raster:
    """Read the pixels of a file, as `read_picture` does, without asking for their colours."""
    label = shown(name)
    return _decode(read_content(source, label, max_pixels), label, frame, max_pixels)


def read_mask(
    source: str | os.PathLike[str] | BinaryIO,
    *,
    name: str,
    shape: tuple[int, int],
    frame: int | None = None,
    max_pixels: int = DEFAULT_MAX_PIXELS,
) -> Mask:
    """Read which pixels of a picture to fill: the white ones.

    A pixel is filled if its grey level lies above half of white; colours count by their luminance. A transparent mask
    counts as laid over black, so that white paint on an empty layer marks what it covers. A mask that is not plain
    black and white, or has nothing to fill, gets a note.

    Args:
        shape: (H, W) of the picture.
        source, name, frame, max_pixels: as in `read_picture`.

    Raises:
        InputError: the file cannot be read (as in `read_picture`), has another size than the picture, marks every
            pixel, which leaves nothing to restore from, or has pixels that are not black, and none that it marks.
    """
    label = shown(name)
    raster = _decode(read_content(source, label, max_pixels), label, frame, max_pixels)
    levels, alpha = raster.levels, raster.alpha
    if levels.shape[:2] != tuple(shape):
        sizes = f"{_size(levels.shape)} pixels, but the image has {_size(shape)}"
        raise InputError(f"{label}: the mask has {sizes}; give a mask of the same width and height")
    white = np.iinfo(levels.dtype).max
    notes: tuple[str, ...] = ()
    if levels.ndim == 3 and not spread(levels).any():
        levels = levels[..., 1]
    if levels.ndim == 3:
        notes += ("the mask is in colour, and pixels brighter than half of white are to be filled",)
        levels = levels @ np.array([0.299, 0.587, 0.114])
    elif not np.isin(levels, (0, white)).all():
        notes += ("the mask has soft edges or grey levels, and pixels above half of white are to be filled",)
    if alpha is not None and (alpha < white).any():
        notes += ("the mask is transparent in places, which count as black and are not filled",)
        levels = levels * (alpha / white)
    hidden = levels > white / 2
    doubt = doubted(hidden)
    notes += (doubt,) if doubt else ()
    if hidden.all():
        raise InputError(f"{label}: the mask marks every pixel; leave black what is to be kept")
    if levels.any() and not hidden.any():
        raise InputError(
            f"{label}: no pixel of the mask is brighter than half of white; make white what is to be filled"
        )
    if not hidden.any() and alpha is not None and (alpha < white).any():
        raise InputError(
            f"{label}: the mask is transparent in places and white nowhere; make white and opaque what is to be filled"
        )
    if not hidden.any():
        notes += ("the mask marks nothing to fill, and the image stays as it is",)
    return Mask(hidden, notes)


def doubted(hidden: np.ndarray) -> str:
    """Why a mask may be the wrong way round, in a sentence; empty if it may not."""
    if hidden.mean() <= _MUCH:
        return ""
    return f"the mask marks {100 * hidden.mean():.0f} % of the image; white is what is filled, not what is kept"


def read_content(source: str | os.PathLike[str] | BinaryIO, label: str, max_pixels: int) -> bytes:
    """The bytes of a file or stream; raises InputError if it cannot be read, is empty, or longer than such an image."""
    # An image of this many pixels needs no more bytes, and an endless stream (a device, a pipe) must end somewhere.
    limit = 8 * max_pixels + 2**26
    try:
        with contextlib.ExitStack() as stack:
            stream = stack.enter_context(Path(source).open("rb")) if isinstance(source, str | os.PathLike) else source
            content = bytearray()
            while part := stream.read(2**20):
                content += part
                if len(content) > limit:
                    raise InputError(f"{label}: is longer than an image of {max_pixels} pixels; raise --max-pixels")
    except FileNotFoundError as fault:
        dangling = isinstance(source, str | os.PathLike) and Path(source).is_symlink()
        reason = "is a link to a file that does not exist" if dangling else "does not exist"
        raise InputError(f"{label}: {reason}; check the path") from fault
    except IsADirectoryError as fault:
        raise InputError(f"{label}: is a folder where a file is meant; name a file in it") from fault
    except PermissionError as fault:
        raise InputError(f"{label}: may not be read; change its permissions") from fault
    except InputError:
        raise
    except (OSError, ValueError) as fault:
        reason = shown(getattr(fault, "strerror", None) or str(fault))
        raise InputError(f"{label}: cannot be read ({reason}); check the path") from fault
    if not content:
        raise InputError(f"{label}: is empty (0 bytes); give an image file")
    return bytes(content)


def _decode(content: bytes, label: str, frame: int | None, max_pixels: int) -> Raster:
    if pdf.is_pdf(content):
        drawn = pdf.raster(content, label, _chosen(frame, pdf.count(content, label), label), max_pixels)
        if drawn is None:
            raise _too_large(label, max_pixels)
        return drawn
    paired, tagged = False, tiff.is_tiff(content)
    if content.startswith(png.SIGNATURE):
        png.check_sums(content, label)
        paired = png.has_16_bit_alpha(content)
        content = png.as_8_bit_colour(content) if paired else content
    if tagged:
        pages = tiff.pages(content, label)
        number = _chosen(frame, max(1, len(pages)), label)
        content = tiff.beginning_with(content, pages[number]) if pages else content
    with _pillow(label, max_pixels, tagged=tagged):
        image = Image.open(io.BytesIO(content), formats=_FORMATS)
        if min(image.size) < 1:
            raise InputError(f"{label}: has no pixels ({image.width}x{image.height}); give an image")
        # The pages of a TIFF are independent; frames of other formats are laid on top of each other.
        last = 0 if tagged else _chosen(frame, getattr(image, "n_frames", 1), label)
        at_once = tiff.segment_pixels(image) if tagged else 0
        if max(image.width * image.height * (last + 1), at_once) > max_pixels:
            raise _too_large(label, max_pixels)
        if image.format == "PNG":  # here, because Pillow decodes its pixels to read an orientation or a later frame
            png.check_rows(content, last, label)
        if last:
            image.seek(last)
        # Read these first: loading forgets them.
        layout = _layout_of(image)
        # Only TIFF images have such tags. Testing for their class would load its module for every other format.
        photometric = getattr(image, "tag_v2", {}).get(_PHOTOMETRIC)
        stored = Stored(image.mode == "1", _dpi(image), image.info.get("compression", "") if tagged else "")
        orientation = image.getexif().get(ExifTags.Base.Orientation, 1)
        if layout == "I;12":
            raise InputError(f"{label}: has levels of 12 bits; convert it to 8 or 16 bits first")
        _load_all_of(image, content, label)
        ImageOps.exif_transpose(image, in_place=True)
        if orientation in range(5, 9) and stored.dpi:
            stored = replace(stored, dpi=stored.dpi[::-1])
        raster = byte_pairs(image) if paired else expand(image, label)
    if image.mode.startswith("I;16") and photometric == 0:  # 0 means white; at 8 bits Pillow inverts it
        raster = replace(raster, levels=65535 - raster.levels)
    if orientation in range(2, 9):
        raster = replace(raster, notes=(*raster.notes, "it is turned upright as its orientation tag says"))
    shallow = re.search(";16[BLN]", layout) is not None and not image.mode.startswith("I")
    return replace(raster, shallow=shallow, stored=stored)


@contextlib.contextmanager
def _pillow(label: str, max_pixels: int, *, tagged: bool) -> Iterator[None]:
    """Run Pillow strictly, under our limit and without warnings, and turn its faults into `InputError`."""
    with _BORROWED, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", Image.DecompressionBombWarning)
        if tagged:  # in a TIFF tags say where the pixels are; elsewhere they are decoration
            warnings.filterwarnings("error", message="Corrupt EXIF data")
        borrowed = Image.MAX_IMAGE_PIXELS, ImageFile.LOAD_TRUNCATED_IMAGES
        Image.MAX_IMAGE_PIXELS, ImageFile.LOAD_TRUNCATED_IMAGES = max_pixels, False
        try:
            yield
        except RestoreError:
            raise
        except (Image.DecompressionBombError, Image.DecompressionBombWarning) as fault:
            raise _too_large(label, max_pixels) from fault
        except UnidentifiedImageError as fault:
            known = "PNG, JPEG, TIFF, BMP, GIF, WebP, PPM or PDF"
            raise InputError(
                f"{label}: is not an image of a kind read here ({known}), or is damaged; save it as PNG"
            ) from fault
        except Exception as fault:  # decoders of damaged files raise nearly anything
            reason = shown(str(fault)) or type(fault).__name__
            raise InputError(f"{label}: cannot be decoded ({reason}); get an intact copy") from fault
        finally:
            Image.MAX_IMAGE_PIXELS, ImageFile.LOAD_TRUNCATED_IMAGES = borrowed


def _chosen(frame: int | None, count: int, label: str) -> int:
    if frame is None:
        if count > 1:
            raise InputError(f"{label}: holds {count} frames or pages; choose one with --frame 0 to {count - 1}")
        return 0
    if not 0 <= frame < count:
        fault = f"has no frame {frame}, only {'0' if count == 1 else f'0 to {count - 1}'}"
        raise InputError(f"{label}: {fault}; choose another --frame")
    return frame


def _load_all_of(image: ImageFile.ImageFile, content: bytes, label: str) -> None:
    """Load the pixels; refuse an image that lacks some, which Pillow would fill with black, white or grey."""
    if image.format == "TIFF":
        tiff.check_segments(image, label)
        others: list[bytes | None] = [*tiff.padded(content, image)]
        with tiff.silenced():
            image.load()
            _check_equal(image, others, label)
    elif image.format in ("JPEG", "MPO"):
        stream = content[getattr(image, "offset", 0) :]
        if jpeg.scans(stream) > jpeg.MAX_SCANS:
            raise InputError(f"{label}: is decoded in more than {jpeg.MAX_SCANS} passes; save it anew")
        if jpeg.lacks_scans(stream):
            raise InputError(f"{label}: ends before its last scan; get an intact copy")
        image.load()
        _check_equal(image, [jpeg.padded(stream, noise) for noise in jpeg.NOISES], label)
    else:
        image.load()


def _check_equal(image: ImageFile.ImageFile, others: list[bytes | None], label: str) -> None:
    """Refuse an image that changes, or breaks, when noise follows its data: then data are missing."""
    for content in others:
        if content is None:
            continue
        try:
            with Image.open(io.BytesIO(content), formats=_FORMATS) as other:
                other.load()
                same = ImageChops.difference(image, other).getbbox(alpha_only=False) is None
        except (OSError, ValueError, SyntaxError):
            same = False
        if not same:
            raise InputError(f"{label}: ends before its last row; get an intact copy")


def _layout_of(image: ImageFile.ImageFile) -> str:
    """The layout of the stored pixels, in Pillow's words; it shows if `image.mode` holds less than the file."""
    if not image.tile:
        return ""
    layout = image.tile[0][3]
    if image.format == "PPM" and image.mode == "RGB" and isinstance(layout, tuple) and int(layout[-1]) > 255:
        return "RGB;16B"
    return str(layout[0] if isinstance(layout, tuple) else layout)


def _dpi(image: ImageFile.ImageFile) -> tuple[float, float] | None:
    """The resolution of an image; None if its file has none, or one that cannot be."""
    try:
        across, down = map(float, image.info["dpi"])
    except (KeyError, TypeError, ValueError, ZeroDivisionError, OverflowError):
        return None
    return (across, down) if 1 <= across <= 1e5 and 1 <= down <= 1e5 else None


def _too_large(label: str, max_pixels: int) -> InputError:
    return InputError(f"{label}: has more than {max_pixels} pixels; raise --max-pixels if this is meant")


def _size(shape: tuple[int, ...]) -> str:
    return f"{shape[1]}x{shape[0]}"
