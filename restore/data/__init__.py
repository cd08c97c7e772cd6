"""Data sets and image folders as arrays, with splits and checksummed downloads."""

from restore.data.dataset import Dataset as Dataset
from restore.data.dataset import Split as Split
from restore.data.dataset import as_pixels as as_pixels
from restore.data.dataset import binarise as binarise
from restore.data.dataset import sample_binary as sample_binary
from restore.data.gathering import Gathered as Gathered
from restore.data.gathering import Gathering as Gathering
from restore.data.gathering import gather as gather
from restore.data.loading import load as load
from restore.data.stock import Limits as Limits
from restore.data.variations import varied as varied
