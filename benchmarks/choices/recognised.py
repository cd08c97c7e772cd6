"""Which pictures are refused: of families that published priors should recognise, and of what is foreign to a prior.

    python benchmarks/choices/recognised.py --families 34 --own 100 --foreign 12

The level of flips is never given. A third of a family's pictures has each flip probability. `--tuning` draws text in
fonts that priors learn from, and takes digits and silhouettes of training: margins may be chosen by these alone.
"""

from __future__ import annotations

import functools
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np
from skimage import data, filters

from benchmarks.filters.unet import families_to_learn_from
from benchmarks.measures.script import command_line, head, row
from benchmarks.pictures.kinds import FAMILIES, PHOTOGRAPHS
from restore.channels.damage import Damage, Observed
from restore.data import load
from restore.inference.open import Engines
from restore.inference.options import Options
from restore.inference.restore import restore
from restore.learning.run.card import machine_facts
from training.data.pages import Family, page
from training.data.text import families_for_tests

Images = Sequence[np.ndarray]
FLIPS = (0.05, 0.1, 0.2)
DIRT = (0.0, 0.05, 0.12, 0.2)

# Shares of white of images of noise.
WHITE = (0.3, 0.5)

# Priors of whole objects, and the data set each knows.
OWN = {"tap-mnist": "mnist", "tap-mnist-25": "mnist", "fw-caltech": "caltech101-silhouettes"}

# Sides of parts of pages and of crops of photographs, and of sheets of objects in objects.
PAGE, CROP = 150, 112
SHEET = (4, 5)


def refused(prior: str, image: np.ndarray) -> bool:
    """Whether `restore denoise` refuses an image (H, W)."""
    options, engines = opened(prior)
    (answer,) = restore([Observed(image.astype(float), Damage())], options, engines)
    return answer.not_sure


@functools.cache
def opened(prior: str) -> tuple[Options, Engines]:
    options = Options(model=prior or "auto")
    return options, Engines(options)


def count(kind: str, prior: str, damaged: Iterable[tuple[float, Images]], draw: np.random.Generator) -> None:
    """Print how many images are refused after flips with each probability; without options if no prior is named."""
    started = time.process_time()
    lost = [(refused(prior, one ^ (draw.random(one.shape) < p)), p) for p, clean in damaged for one in clean]
    seconds = (time.process_time() - started) / len(lost)
    flips = ", ".join(f"{p:g}" for p in sorted({p for _, p in lost}))
    row(kind, prior or "no options", flips, f"{sum(gone for gone, _ in lost)} of {len(lost)}", f"{seconds:.1f}")


def families(number: int, names: Sequence[str], draw: np.random.Generator) -> None:
    for name in names:
        made = ((p, range(part * number, (part + 1) * number)) for part, p in enumerate(FLIPS))
        count(name, "", ((p, [FAMILIES[name](one) for one in numbers]) for p, numbers in made), draw)


def own(number: int, split: str, draw: np.random.Generator) -> None:
    """Objects that priors know, by themselves and in sheets."""
    for prior, source in OWN.items():
        images = load(source, split=split).images > 127
        height, width = images.shape[1:]
        alone = [(p, list(images[draw.integers(0, len(images), number)])) for p in FLIPS]
        count(source, prior, alone, draw)
        sheets = []
        for p in FLIPS:
            many = images[draw.integers(0, len(images), (-(-number // 20), *SHEET))]
            sheets.append((p, list(many.swapaxes(2, 3).reshape(-1, SHEET[0] * height, SHEET[1] * width))))
        count(f"sheets of 20 of {source}", prior, sheets, draw)


def foreign(number: int, fonts: Sequence[Family], draw: np.random.Generator) -> None:
    """What is foreign to a prior of digits: photographs in two tones, text and noise, small and large."""
    prior, small = "tap-mnist", (28, 28)
    pages = [page(fonts, 600, each, (800, 600))[:PAGE, :PAGE] > 127 for each in range(number)]
    count(f"text, {PAGE}x{PAGE}", prior, [(p, pages) for p in DIRT], draw)
    whole = [page(fonts, 601, each, (800, 600)) > 127 for each in range(number)]
    count("text, 28x28", prior, [(p, list(crops(whole, small, number, draw))) for p in DIRT], draw)
    photographs = [cut(name) for name, _ in PHOTOGRAPHS]
    for kind, shape in {"112x112": (CROP, CROP), "28x28": small}.items():
        seen = [(p, list(crops(photographs, shape, number, draw))) for p in (0.0, *FLIPS)]
        count(f"photographs, {kind}", prior, seen, draw)
        count(f"noise, {kind}", prior, [(white, [np.zeros(shape, bool)] * number) for white in WHITE], draw)


def cut(name: str) -> np.ndarray:
    """A photograph of scikit-image in two tones by Otsu's threshold."""
    grey = np.asarray(getattr(data, name)(), np.float64)
    grey = grey[..., :3].mean(-1) if grey.ndim == 3 else grey
    return grey > filters.threshold_otsu(grey)


def crops(pictures: Images, shape: tuple[int, int], number: int, draw: np.random.Generator) -> Iterator[np.ndarray]:
    """Crops of a shape at random places, none of them nearly blank."""
    while number:
        chosen = pictures[draw.integers(len(pictures))]
        top, left = (draw.integers(0, there - side) for there, side in zip(chosen.shape, shape, strict=True))
        crop = chosen[top : top + shape[0], left : left + shape[1]]
        if 0.05 < crop.mean() < 0.95:
            number -= 1
            yield crop


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("--families", type=int, default=34, help="pictures of each family and flip [%(default)s]")
    parser.add_argument("--names", nargs="+", default=[*FAMILIES], choices=[*FAMILIES], help="families [all]")
    parser.add_argument("--own", type=int, default=100, help="objects of each prior and flip [%(default)s]")
    parser.add_argument("--foreign", type=int, default=12, help="images of each kind and flip [%(default)s]")
    parser.add_argument("--tuning", action="store_true", help="on what margins may be chosen by")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    print(machine_facts())
    head("images", "prior", "flips", "refused", "CPU seconds each", left=("prior", "flips"))
    fonts: Callable[[], list[Family]] = families_to_learn_from if asked.tuning else families_for_tests
    if asked.families:
        families(asked.families, asked.names, np.random.default_rng(1))
    if asked.foreign:
        foreign(asked.foreign, fonts(), np.random.default_rng(2))
    if asked.own:
        own(asked.own, "train" if asked.tuning else "test", np.random.default_rng(3))


if __name__ == "__main__":
    main()
