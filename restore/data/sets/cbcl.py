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
from restore.data.gathering.archive import grey_levels, members_of
from restore.data.sets.download import RemoteFile
from restore.data.sets.named import NamedSet
from restore.errors import InputError, shown

_ORIGIN = "zip the {} of the MIT CBCL Face Database #1, http://cbcl.mit.edu/software-datasets/FaceData2.html"
_FILES: dict[Split, RemoteFile] = {
    "train": RemoteFile(
        "train_faces.zip",
        1_213_475,
        "1873aa51e82474353ace91999c3d276942842ffac19ff17bd697ed3660f4a471",
        (),
        _ORIGIN.format("folder train/face"),
    ),
    "test": RemoteFile(
        "test_faces.zip",
        208_053,
        "639e848ca0a546c8f3d3cd146dc757691de0103a2f03a49d886ed1e2c7eb565e",
        (),
        _ORIGIN.format("folder test/face"),
    ),
}
_FACES = {"train": 2_429, "test": 472}
_SIDE = 19

# A face within an archive, in any folder; those for testing are from pictures of CMU.
_FACE = re.compile(r"(?:\w[\w.-]*/)*((?:face|cmu_)\d+)\.(?:png|pgm)")


def _read(split: Split, paths: tuple[Path, ...]) -> Images:
    (path,) = paths
    found = {name[1]: content for name, content in members_of(path, _FACE, "face of CBCL")}
    if len(found) != _FACES[split]:
        raise InputError(
            f"{shown(path)}: holds {len(found)} different faces instead of {_FACES[split]}; {_FILES[split].origin}"
        )
    return np.stack([grey_levels(found[name], _SIDE, f"{shown(path)}: {name}", "face") for name in sorted(found)])


CBCL = NamedSet("cbcl", {split: (file,) for split, file in _FILES.items()}, _read)
