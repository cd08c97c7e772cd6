"""Read and write images and masks, and fit them to the size of a prior."""

from restore.images.colours import picture_of
from restore.images.pages import bound, check_holds, page_count, page_name
from restore.images.picture import Mask, Picture, check_unit_range, plain
from restore.images.reading import DEFAULT_MAX_PIXELS, check_together, doubted, read_mask, read_picture, read_raster
from restore.images.resizing import enlarge, shrink
from restore.images.writing import as_pil, check_format, encode, format_of, to_levels

__all__ = [
    "DEFAULT_MAX_PIXELS",
    "Mask",
    "Picture",
    "as_pil",
    "bound",
    "check_format",
    "check_holds",
    "check_together",
    "check_unit_range",
    "doubted",
    "encode",
    "enlarge",
    "format_of",
    "page_count",
    "page_name",
    "picture_of",
    "plain",
    "read_mask",
    "read_picture",
    "read_raster",
    "shrink",
    "to_levels",
]
