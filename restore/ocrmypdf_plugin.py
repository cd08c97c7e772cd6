"""Repair page images before OCR, as a plugin that OCRmyPDF loads by itself.

    ocrmypdf --restore-model auto scan.pdf searchable.pdf

Needs the extra `restore-prior[ocrmypdf]`. It does nothing unless one of its options is given. OCR alone sees the
repaired pages, as with OCRmyPDF's `--clean`; the pages of the result stay as they are.
"""

from __future__ import annotations

import logging
from argparse import ArgumentParser
from collections.abc import Generator
from typing import Any

import numpy as np
from ocrmypdf import hookimpl
from ocrmypdf.exceptions import BadArgsError
from PIL import Image, ImageFilter

from restore.channels.damage import Damage, Observed
from restore.errors import RestoreError, reason
from restore.images.colours import picture_of
from restore.inference.options import Options
from restore.inference.restore import restore
from restore.zoo import describe, find

_LOG = logging.getLogger(__name__)

# A page is clean if a smaller share of its pixels would change: OCR then gains nothing. The other is the standard
# deviation, in pixels, of the Gaussian that smooths a repaired page of black and white. Both were chosen on pages in
# the fonts for training (benchmarks/README.md, "OCR of damaged pages").
CLEAN = 0.001
RESULT_BLUR = 1.0


@hookimpl
def add_options(parser: ArgumentParser) -> None:
    """Add the options, which OCRmyPDF takes on the command line and in Python."""
    group = parser.add_argument_group("restore", "Undo flipped pixels and noise of scans before OCR")
    group.add_argument("--restore-model", metavar="NAME", help="prior to repair pages with; auto takes the best")
    group.add_argument("--restore-p", metavar="P", help="share of flipped pixels, such as 0.05, if known; or scan")
    group.add_argument("--restore-remove", metavar="KINDS", help="remove marks: specks, dots, lines, border, or all")
    group.add_argument("--restore-specks", metavar="PIXELS", type=int, help="remove specks of at most so many pixels")


@hookimpl
def check_options(options: Any) -> None:
    """Raise BadArgsError, before any page is read, for an unknown prior, or damage that it does not know."""
    try:
        how, damage = _settings(options)
        if how is not None and how.model != "auto":
            header = describe(find(how.model))
            if damage.touched:
                header.check_damage(damage)
    except RestoreError as fault:
        raise BadArgsError(f"--restore-model, --restore-p, --restore-remove, --restore-specks: {fault}") from fault


@hookimpl(wrapper=True)
def filter_ocr_image(page: Any, image: Image.Image) -> Generator[None, Image.Image | None, Image.Image | None]:
    """Repair the image of a page for OCR, after other plugins; size and resolution stay the same.

    A page that cannot be repaired stays as it is, with a warning: OCRmyPDF ends without output where a hook fails.
    """
    filtered = yield
    try:
        how, damage = _settings(page.options)
        return filtered if how is None else repaired(filtered or image, how, damage, page.pageno)
    except Exception as fault:  # of a library, too
        _LOG.warning("page %d: left as it is: %s", page.pageno + 1, reason(fault) or type(fault).__name__)
        return filtered


def repaired(image: Image.Image, how: Options, damage: Damage, number: int) -> Image.Image:
    """The repaired image of a page, counted from 0; the image itself if it is clean, or no repair can be trusted.

    It is grey, as the images are that OCR has learnt from. A grey page keeps the levels of its ink, on white paper. In
    one of black and white doubtful pixels are grey, and edges are smoothed.
    """
    picture = picture_of(image, "the page")
    (answer,) = restore([Observed(picture, damage, picture.colours)], how)
    clean = answer.changed is not None and answer.changed < CLEAN
    came = [f"as it came, {answer.outcome}: {answer.objection}"] if answer.unchanged else []
    for note in (*picture.notes, *answer.notes, *came):
        _LOG.info("page %d: %s", number + 1, note)
    if answer.unchanged or clean:
        return image
    result = Image.fromarray(np.rint(255 * answer.picture(soft=True).clip(0, 1)).astype(np.uint8))
    if answer.lightened is None:
        result = result.filter(ImageFilter.GaussianBlur(RESULT_BLUR))
    result.info = dict(image.info)
    return result


def _settings(options: Any) -> tuple[Options | None, Damage]:
    """How to restore, and the damage, in the options; None if no option is given."""
    model, p, remove, specks = (
        getattr(options, f"restore_{name}", None) for name in ("model", "p", "remove", "specks")
    )
    if model is p is remove is specks is None:
        return None, Damage()
    return Options(model or "auto", soft=True, remove=remove, specks=specks), Damage.of(p)
