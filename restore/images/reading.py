"""Reading pictures and masks: by content, never by name, and never more loosely than the file deserves."""

from __future__ import annotations

import contextlib
import io
import os
import re
import struct
import threading
import warnings
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO

import numpy as np
from PIL import ExifTags, Image, ImageFile, ImageOps, UnidentifiedImageError

from restore.errors import InputError, ModelError, RestoreError, shown
from restore.images.picture import Mask, Picture, check_unit_range

DEFAULT_MAX_PIXELS = 50_000_000

# Rasters only: a whitelist keeps page descriptions such as EPS, which Pillow would hand to another program, out.
_FORMATS = ("PNG", "JPEG", "TIFF", "BMP", "GIF", "WEBP", "PPM")
_PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_CHECKED_PNG_CHUNKS = (b"IHDR", b"PLTE", b"tRNS", b"IDAT", b"fdAT")
# The TIFF tag PhotometricInterpretation.
_PHOTOMETRIC = 262
# Conversions from other colour spaces round: their greys may differ by this many levels between the channels.
_CONVERTED = {"CMYK": 2, "YCbCr": 2, "LAB": 2, "HSV": 2}

# Pillow's limits and Python's warning filters belong to the whole process: one reader at a time may borrow them.
_BORROWED = threading.Lock()


def read_picture(
    source: str | os.PathLike[str] | BinaryIO,
    *,
    name: str,
    frame: int | None = None,
    max_pixels: int = DEFAULT_MAX_PIXELS,
) -> Picture:
    """Read one grey picture.

    Grey levels of 8 and 16 bits are kept as they are. Levels of 1, 2 and 4 bits, palettes and other colour spaces are
    expanded; floating-point levels in [0, 1] are rounded to 16 bits. Colour whose channels are equal is grey. An
    orientation tag is obeyed. Transparency is kept aside.

    Args:
        source: a path, or a stream opened for reading bytes.
        name: what to call it in messages.
        frame: which frame or page to read, from 0; needed where a file holds several.
        max_pixels: refuse larger images before a pixel of them is decoded.

    Raises:
        InputError: there is no such file, it is damaged, too large, empty, in no format read here, holds several
            frames and none was chosen, or levels without a defined range.
        ModelError: the image is in colour.
    """
    label = shown(name)
    raster = _decode(_content(source, label, max_pixels), label, frame, max_pixels)
    if raster.shallow:
        raise ModelError(
            f"{label}: is in 16-bit colour, and the priors know grey images; convert it to 16-bit greyscale first"
        )
    if raster.levels.ndim == 3:
        raise ModelError(f"{label}: is in colour, and the priors know grey images; convert it to greyscale first")
    return Picture(raster.levels, raster.alpha, raster.notes)


def read_mask(
    source: str | os.PathLike[str] | BinaryIO,
    *,
    name: str,
    shape: tuple[int, int],
    frame: int | None = None,
    max_pixels: int = DEFAULT_MAX_PIXELS,
) -> Mask:
    """Read which pixels of a picture are to be filled: the white ones.

    A pixel is to be filled if its grey level lies above half of white; colours count by their luminance. Where the
    mask is transparent it counts as laid over black, so that white paint on an empty layer marks what it covers.
    A mask that is not plain black and white gets a note that says so, and one without anything to fill as well.

    Args:
        shape: (H, W) of the picture the mask belongs to.
        source, name, frame, max_pixels: as in `read_picture`.

    Raises:
        InputError: the file cannot be read (as in `read_picture`), has another size than the picture, or marks every
            pixel, which leaves nothing to restore from.
    """
    label = shown(name)
    raster = _decode(_content(source, label, max_pixels), label, frame, max_pixels)
    levels, alpha = raster.levels, raster.alpha
    if levels.shape[:2] != tuple(shape):
        sizes = f"{_size(levels.shape)} pixels, but the image has {_size(shape)}"
        raise InputError(f"{label}: the mask has {sizes}; give a mask of the same width and height")
    white = np.iinfo(levels.dtype).max
    notes: tuple[str, ...] = ()
    if levels.ndim == 3:
        notes += ("the mask is in colour, and pixels brighter than half of white are to be filled",)
        levels = levels @ np.array([0.299, 0.587, 0.114])
    elif not np.isin(levels, (0, white)).all():
        notes += ("the mask has soft edges or grey levels, and pixels above half of white are to be filled",)
    if alpha is not None and (alpha < white).any():
        notes += ("the mask is transparent in places, which count as black and are not filled",)
        levels = levels * (alpha / white)
    hidden = levels > white / 2
    if hidden.all():
        raise InputError(f"{label}: the mask marks every pixel; leave black what is to be kept")
    if not hidden.any():
        notes += ("the mask marks nothing to fill, and the image stays as it is",)
    return Mask(hidden, notes)


@dataclass(frozen=True, eq=False)
class _Raster:
    """What a file holds: levels, (H, W) or for true colour (H, W, 3), alpha, (H, W) or None, and notes.

    `shallow` means that Pillow has cut 16-bit colour to 8 bits.
    """

    levels: np.ndarray
    alpha: np.ndarray | None = None
    notes: tuple[str, ...] = ()
    shallow: bool = False


def _content(source: str | os.PathLike[str] | BinaryIO, label: str, max_pixels: int) -> bytes:
    # No image of so few pixels fills more, and an endless stream (a device, a pipe) must end somewhere.
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


def _decode(content: bytes, label: str, frame: int | None, max_pixels: int) -> _Raster:
    paired = False
    if content.startswith(_PNG_SIGNATURE):
        _check_png(content, label)
        paired = _has_16_bit_alpha(content)
        content = _as_8_bit_colour(content) if paired else content
    with _pillow(label, max_pixels, tagged=content[:2] in (b"II", b"MM")):
        image = Image.open(io.BytesIO(content), formats=_FORMATS)
        _choose_frame(image, frame, label)
        if min(image.size) < 1:
            raise InputError(f"{label}: has no pixels ({image.width}x{image.height}); give an image")
        if image.width * image.height > max_pixels:
            raise _too_large(label, max_pixels)
        # All this has to be asked first: loading forgets it.
        stored = _stored_as(image)
        # Only TIFF images have such tags; not by their class, which would load its module for every other kind.
        photometric = getattr(image, "tag_v2", {}).get(_PHOTOMETRIC)
        turned = image.getexif().get(ExifTags.Base.Orientation, 1) in range(2, 9)
        if stored == "I;12":
            raise InputError(f"{label}: has levels of 12 bits; convert it to 8 or 16 bits first")
        image.load()
        ImageOps.exif_transpose(image, in_place=True)
        raster = _byte_pairs(image) if paired else _expand(image, label)
    if image.mode.startswith("I;16") and photometric == 0:  # white is 0; at 8 bits Pillow sees to it
        raster = replace(raster, levels=65535 - raster.levels)
    if turned:
        raster = replace(raster, notes=(*raster.notes, "it is turned upright as its orientation tag says"))
    shallow = re.search(";16[BLN]", stored) is not None and not image.mode.startswith("I")
    return replace(raster, shallow=shallow)


@contextlib.contextmanager
def _pillow(label: str, max_pixels: int, *, tagged: bool) -> Iterator[None]:
    """Let Pillow work under our limit, strictly and without its warnings, and turn its faults into `InputError`."""
    with _BORROWED, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", Image.DecompressionBombWarning)
        if tagged:  # In a TIFF the tags say where the pixels are; elsewhere they are decoration.
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
            known = "PNG, JPEG, TIFF, BMP, GIF, WebP or PPM"
            raise InputError(
                f"{label}: is not an image of a kind read here ({known}), or is damaged; save it as PNG"
            ) from fault
        except Exception as fault:  # Decoders of damaged files raise nearly anything.
            reason = shown(str(fault)) or type(fault).__name__
            raise InputError(f"{label}: cannot be decoded ({reason}); get an intact copy") from fault
        finally:
            Image.MAX_IMAGE_PIXELS, ImageFile.LOAD_TRUNCATED_IMAGES = borrowed


def _choose_frame(image: ImageFile.ImageFile, frame: int | None, label: str) -> None:
    count = getattr(image, "n_frames", 1)
    if frame is None:
        if count > 1:
            raise InputError(f"{label}: holds {count} frames or pages; choose one with --frame 0 to {count - 1}")
    elif not 0 <= frame < count:
        fault = f"has no frame {frame}, only {'0' if count == 1 else f'0 to {count - 1}'}"
        raise InputError(f"{label}: {fault}; choose another --frame")
    else:
        image.seek(frame)


def _stored_as(image: ImageFile.ImageFile) -> str:
    """The layout of the stored pixels, in Pillow's words; it tells where `image.mode` holds less than the file."""
    if not image.tile:
        return ""
    layout = image.tile[0][3]
    if image.format == "PPM" and image.mode == "RGB" and isinstance(layout, tuple) and int(layout[-1]) > 255:
        return "RGB;16B"
    return str(layout[0] if isinstance(layout, tuple) else layout)


def _byte_pairs(image: Image.Image) -> _Raster:
    words = np.array(image).view(">u2").astype(np.uint16)
    return _Raster(words[..., 0], words[..., 1])


def _expand(image: Image.Image, label: str) -> _Raster:
    if image.mode.startswith("I;16") or (image.mode == "I" and image.format == "PPM"):
        levels = np.asarray(image).astype(np.uint16)
        clear = image.info.get("transparency")
        return _Raster(levels, None if clear is None else np.where(levels == clear, 0, 65535).astype(np.uint16))
    if image.mode == "F":
        values = np.asarray(image)
        check_unit_range(values, name=label)
        levels = np.rint(values * np.float64(65535)).astype(np.uint16)
        return _Raster(levels, notes=("its floating-point levels are rounded to 16 bits",))
    if image.mode == "I":
        raise InputError(f"{label}: has integer levels whose white is not defined; convert it to 8 or 16 bits first")
    return _expand_8_bit(image)


def _expand_8_bit(image: Image.Image) -> _Raster:
    notes: tuple[str, ...] = ()
    if image.mode == "1":
        notes += ("its 1-bit pixels are written back as grey levels 0 and 255",)
    elif image.mode in ("P", "PA"):
        notes += ("its palette is expanded to grey levels",)
    elif image.mode in _CONVERTED:
        notes += (f"it is converted from {image.mode} to grey levels",)
    grey = image.mode in ("1", "L", "LA", "La")
    transparent = image.has_transparency_data
    # From 1 to L is a plain expansion to 0 and 255; dithering only happens the other way.
    bands = np.array(image.convert(("L" if grey else "RGB") + ("A" if transparent else "")))
    alpha = bands[..., -1] if transparent else None
    if grey:
        return _Raster(bands[..., 0] if transparent else bands, alpha, notes)
    colour = bands[..., :3]
    if (colour.max(axis=-1) - colour.min(axis=-1)).max() > _CONVERTED.get(image.mode, 0):
        return _Raster(colour, alpha, notes)
    return _Raster(colour[..., 1], alpha, notes or ("its colour channels are equal and are read as one grey channel",))


def _check_png(content: bytes, label: str) -> None:
    """Check the checksums of the chunks that make the pixels; Pillow does not, and may return altered pixels."""
    view = memoryview(content)
    start = len(_PNG_SIGNATURE)
    while start + 8 <= len(content):
        length, kind = struct.unpack_from(">I4s", content, start)
        end = start + 8 + length
        if kind == b"IEND":
            return
        if kind in _CHECKED_PNG_CHUNKS and zlib.crc32(view[start + 4 : end]) != int.from_bytes(
            view[end : end + 4], "big"
        ):
            raise InputError(f"{label}: is damaged (wrong checksum of its {kind.decode()} chunk); get an intact copy")
        start = end + 4


def _has_16_bit_alpha(content: bytes) -> bool:
    # Animations blend their frames, which only works on true colours.
    return content[24:26] == b"\x10\x04" and b"acTL" not in content[: content.find(b"IDAT")]


def _as_8_bit_colour(content: bytes) -> bytes:
    """Relabel a PNG of 16-bit grey and alpha as one of 8-bit red, green, blue and alpha.

    Pillow would cut its levels to 8 bits. The pixels of both kinds have four bytes and are filtered byte by byte, so
    that under the other label every byte comes through.
    """
    header = content[12:24] + b"\x08\x06" + content[26:29]
    return content[:12] + header + struct.pack(">I", zlib.crc32(header)) + content[33:]


def _too_large(label: str, max_pixels: int) -> InputError:
    return InputError(f"{label}: has more than {max_pixels} pixels; raise --max-pixels if this is meant")


def _size(shape: tuple[int, ...]) -> str:
    return f"{shape[1]}x{shape[0]}"
