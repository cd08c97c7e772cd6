"""MIT CBCL Face Database #1: faces of 19x19 pixels (Heisele, Poggio & Pontil, 2000), grey.

Only the faces are read, 2,429 for training and 472 for testing, from one archive each. MIT publishes them in an archive
of archives with other pictures, and no address is certain to provide it; so users pack the two folders of faces
themselves.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from restore.data.dataset import Images, Split
from restore.data.sets.download import RemoteFile
from restore.data.sets.named import NamedSet
from restore.data.stock import pictures_in

_ORIGIN = "zip the folder {} of the MIT CBCL Face Database #1, http://cbcl.mit.edu/software-datasets/FaceData2.html"
_TRAIN, _TEST = (
    RemoteFile(f"{part}_faces.zip", sha256, (), _ORIGIN.format(f"{part}/face"))
    for part, sha256 in (
        ("train", "1873aa51e82474353ace91999c3d276942842ffac19ff17bd697ed3660f4a471"),
        ("test", "639e848ca0a546c8f3d3cd146dc757691de0103a2f03a49d886ed1e2c7eb565e"),
    )
)
# The side of a face in pixels, and how many there are.
_SIDE = 19
_FACES = {"train": 2_429, "test": 472}

# A face, in any folder of the archive; those for testing are from pictures of CMU.
_FACE = re.compile(r"(?:.*/)?((?:face|cmu_)\d+)\.(?:png|pgm)")


def _read(split: Split, paths: tuple[Path, ...]) -> Images:
    return np.stack([*pictures_in(paths, _FACE, _FACES[split], (_SIDE, _SIDE)).values()])


CBCL = NamedSet("cbcl", {"train": (_TRAIN,), "test": (_TEST,)}, _read)
