"""Data sets and image folders as arrays, with splits and checksummed downloads."""

from restore.data.dataset import Dataset, Split, as_pixels, binarise, sample_binary
from restore.data.gathering import Gathered, Wanted, gather
from restore.data.loading import load
from restore.data.variations import varied

__all__ = [
    "Dataset",
    "Gathered",
    "Split",
    "Wanted",
    "as_pixels",
    "binarise",
    "gather",
    "load",
    "sample_binary",
    "varied",
]
