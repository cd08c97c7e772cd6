"""Real pages with their truth, by source: a folder of NAME.png and NAME.truth.png each, in `dibco/` or `pages/`.

Readers are judged on sources that they have not seen, and so the sources are in four groups, each of which can be left
out: print is only in the contests' pages of 2009, 2011 and 2013, which lie in three of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

FOLDERS = ("dibco", "pages")

GROUPS: Mapping[str, Sequence[str]] = {
    "A": ("2009", "dibco2014", "mcs"),
    "B": ("2010", "2011", "persian"),
    "C": ("2013", "msi"),
    "D": ("2012", "dibco2016", "bickley"),
}

# A real page: its source, its name, grey levels (H, W), and where paper is.
Page = tuple[str, str, NDArray[np.uint8], NDArray[np.bool_]]


def real_pages(data: Path, *, groups: Sequence[str] = tuple(GROUPS)) -> Iterator[Page]:
    """The pages of the sources in these groups, as far as the folder of the data has them."""
    sources = {source for group in groups for source in GROUPS[group]}
    for path in sorted(path for folder in FOLDERS for path in (data / folder).glob("*/*.png")):
        if path.parent.name in sources and path.suffixes == [".png"]:
            grey, truth = (np.array(Image.open(file).convert("L")) for file in (path, path.with_suffix(".truth.png")))
            yield path.parent.name, path.stem, grey, truth > 127
