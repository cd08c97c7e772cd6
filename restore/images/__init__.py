"""Read and write images and masks, and fit them to the size of a prior."""

from restore.images.formats import FORMATS as FORMATS
from restore.images.formats import IMAGE_SUFFIXES as IMAGE_SUFFIXES
from restore.images.formats import format_of as format_of
from restore.images.masks import Mask as Mask
from restore.images.masks import read_mask as read_mask
from restore.images.pages import Book as Book
from restore.images.pages import bound as bound
from restore.images.pages import check_holds as check_holds
from restore.images.pdf import exchanged as exchanged
from restore.images.picture import Picture as Picture
from restore.images.picture import check_unit_range as check_unit_range
from restore.images.picture import plain as plain
from restore.images.reading import DEFAULT_MAX_PIXELS as DEFAULT_MAX_PIXELS
from restore.images.reading import check_together as check_together
from restore.images.reading import read_picture as read_picture
from restore.images.resizing import enlarge as enlarge
from restore.images.resizing import shrink as shrink
from restore.images.writing import as_pil as as_pil
from restore.images.writing import check_format as check_format
from restore.images.writing import encode as encode
from restore.images.writing import to_levels as to_levels
