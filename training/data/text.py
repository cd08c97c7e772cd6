"""Printed text: 600x800 pages in many fonts, drawn by code; see `pages`.

Training pages use the fonts of matplotlib, and of some Debian packages if they are installed: with the same fonts a
prior can be repeated to the bit. Test pages use the fonts of two other packages. No prior is trained on these, or on
others of the same designs (Arimo, Nimbus, TeX Gyre).
"""

from __future__ import annotations

import importlib.util
import warnings
from collections.abc import Mapping
from pathlib import Path

from restore.data.dataset import Images, Split
from restore.errors import InputError
from training.data.pages import Family, pages

# Names of font files without their endings, by package; the faces of one family on a line.
FROM_MATPLOTLIB = """
    DejaVuSans DejaVuSans-Oblique DejaVuSans-Bold DejaVuSans-BoldOblique
    DejaVuSansMono DejaVuSansMono-Oblique DejaVuSansMono-Bold DejaVuSansMono-BoldOblique
    DejaVuSerif DejaVuSerif-Italic DejaVuSerif-Bold DejaVuSerif-BoldItalic
    STIXGeneral STIXGeneralItalic STIXGeneralBol STIXGeneralBolIta
    cmr10 cmti10 cmb10
    cmss10
    cmtt10
"""
FROM_DEBIAN: Mapping[str, str] = {
    "fonts-crosextra-carlito": "Carlito-Regular Carlito-Italic Carlito-Bold Carlito-BoldItalic",
    "fonts-crosextra-caladea": "Caladea-Regular Caladea-Italic Caladea-Bold Caladea-BoldItalic",
    "fonts-lato": "Lato-Regular Lato-Italic Lato-Bold Lato-Light",
    "fonts-open-sans": "OpenSans-Regular OpenSans-Italic OpenSans-Bold OpenSans-Light",
    "fonts-roboto-unhinted": "Roboto-Regular Roboto-Italic Roboto-Bold Roboto-Light\n"
    "RobotoCondensed-Regular RobotoCondensed-Italic RobotoCondensed-Bold",
    "fonts-roboto-slab": "RobotoSlab-Regular RobotoSlab-Bold RobotoSlab-Light",
    "fonts-cantarell": "Cantarell-Regular Cantarell-Bold",
    "fonts-inconsolata": "Inconsolata",
    "fonts-linuxlibertine": "LinLibertine_R LinLibertine_RI LinLibertine_RB LinLibertine_RBI\n"
    "LinBiolinum_R LinBiolinum_RI LinBiolinum_RB",
    "fonts-ebgaramond": "EBGaramond12-Regular EBGaramond12-Italic EBGaramond12-Bold",
    "fonts-gfs-didot": "GFSDidot GFSDidotItalic GFSDidotBold GFSDidotBoldItalic",
    "fonts-gfs-artemisia": "GFSArtemisia GFSArtemisiaIt GFSArtemisiaBold GFSArtemisiaBoldIt",
    "fonts-courier-prime": "CourierPrime CourierPrimeItalic CourierPrimeBold CourierPrimeBoldItalic\n"
    "CourierPrimeCode CourierPrimeCodeItalic",
    "fonts-sil-gentium-basic": "GenBasR GenBasI GenBasB GenBasBI",
    "fonts-sil-charis": "CharisSIL-Regular CharisSIL-Italic CharisSIL-Bold CharisSIL-BoldItalic",
    "fonts-vollkorn": "Vollkorn-Regular Vollkorn-Italic Vollkorn-Bold Vollkorn-BoldItalic",
    "fonts-cabin": "Cabin-Regular Cabin-Italic Cabin-Bold Cabin-BoldItalic",
    "fonts-oxygen": "Oxygen-Sans Oxygen-Sans-Bold\nOxygenMono-Regular",
}
FOR_TESTS: Mapping[str, str] = {
    "fonts-liberation": """
        LiberationSans-Regular LiberationSans-Italic LiberationSans-Bold LiberationSans-BoldItalic
        LiberationSerif-Regular LiberationSerif-Italic LiberationSerif-Bold LiberationSerif-BoldItalic
        LiberationMono-Regular LiberationMono-Italic LiberationMono-Bold LiberationMono-BoldItalic
    """,
    "fonts-freefont-ttf": """
        FreeSans FreeSansOblique FreeSansBold FreeSansBoldOblique
        FreeSerif FreeSerifItalic FreeSerifBold FreeSerifBoldItalic
        FreeMono FreeMonoOblique FreeMonoBold FreeMonoBoldOblique
    """,
}
TRAINED, TESTED = 1000, 20
SYSTEM = Path("/usr/share/fonts")


def families_to_learn_from() -> list[Family]:
    """The installed fonts to learn from, matplotlib's first; a warning names missing packages.

    Raises:
        InputError: if there are none.
    """
    found = _found({"matplotlib": FROM_MATPLOTLIB, **FROM_DEBIAN})
    missing = [package for package, families in found.items() if not families]
    if len(missing) == len(found):
        raise InputError("text: there are no fonts to draw its pages in; install matplotlib")
    if missing:
        warnings.warn(f"text: drawn without the fonts of {', '.join(missing)}, which are not installed", stacklevel=2)
    return [family for families in found.values() for family in families]


def families_for_tests() -> list[Family]:
    """The fonts on which priors are tested, but never trained.

    Raises:
        InputError: if one is missing.
    """
    found = _found(FOR_TESTS)
    missing = [package for package, names in FOR_TESTS.items() if sum(map(len, found[package])) < len(names.split())]
    if missing:
        raise InputError(
            f"text: the fonts of its pages for testing are missing; install Debian's {' and '.join(missing)}, or "
            "take pages of your own"
        )
    return [family for families in found.values() for family in families]


def _found(packages: Mapping[str, str]) -> dict[str, list[Family]]:
    """The families of each package, with their installed faces."""
    installed = _installed()
    found: dict[str, list[Family]] = {}
    for package, names in packages.items():
        faces: list[Family] = [
            [installed[face] for face in line.split() if face in installed] for line in names.splitlines()
        ]
        found[package] = [family for family in faces if family]
    return found


def _installed() -> dict[str, Path]:
    """Font files by their names without spaces and endings; matplotlib's replace others of the same name."""
    folders = [SYSTEM]
    # Located without importing it, which would take a second.
    matplotlib = importlib.util.find_spec("matplotlib")
    if matplotlib is not None and matplotlib.origin is not None:
        folders.append(Path(matplotlib.origin).parent / "mpl-data" / "fonts" / "ttf")
    paths = (path for folder in folders for path in sorted(folder.rglob("*.[ot]tf")))
    return {path.stem.replace(" ", ""): path for path in paths}


def images(split: Split) -> Images:
    """The pages of a split, (N, 800, 600), 0 = paper to 255 = ink."""
    if split == "train":
        return pages(families_to_learn_from(), TRAINED, seed=0)
    return pages(families_for_tests(), TESTED, seed=1)
