"""Which pictures are refused: of families that published priors should recognise, and of what is foreign to a prior.

    python benchmarks/choices/recognised.py --families 34 --own 100 --foreign 12

The level of flips is never given. A third of a family's pictures has each flip probability. `--tuning` draws text in
fonts that priors learn from, and takes digits and silhouettes of training: margins may be chosen by these alone.
"""

from __future__ import annotations

import functools
import time
import warnings
from collections.abc import Callable, Iterator, Sequence

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

# Priors of whole objects, and the data set each knows.
OWN = {"tap-mnist": "mnist", "tap-mnist-25": "mnist", "fw-caltech": "caltech101-silhouettes"}

# Sides of pages and of crops of photographs, and of sheets of objects in objects.
PAGES = ((150, 150), (320, 400), (800, 600))
CROP = 112
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


def count(kind: str, p: float, prior: str, clean: Images, draw: np.random.Generator) -> None:
    """Print how many of these images are refused after flips of probability p; without options if no prior is named."""
    started = time.process_time()
    lost = sum(refused(prior, each ^ (draw.random(each.shape) < p)) for each in clean)
    seconds = (time.process_time() - started) / len(clean)
    share = f"{100 * lost / len(clean):.1f}"
    row(kind, prior or "no options", f"{p:g}", str(len(clean)), str(lost), share, f"{seconds:.1f}")


def families(number: int, names: Sequence[str], draw: np.random.Generator) -> None:
    for name in names:
        for part, p in enumerate(FLIPS):
            clean = [FAMILIES[name](each) for each in range(part * number, (part + 1) * number)]
            count(name, p, "", clean, draw)


def own(number: int, split: str, draw: np.random.Generator) -> None:
    """Objects that priors know, by themselves and in sheets."""
    for prior, source in OWN.items():
        images = load(source, split=split).images > 127
        height, width = images.shape[1:]
        for p in FLIPS:
            chosen = images[draw.integers(0, len(images), number)]
            count(source, p, prior, list(chosen), draw)
        for p in FLIPS:
            many = images[draw.integers(0, len(images), (-(-number // 20), *SHEET))]
            sheets = many.swapaxes(2, 3).reshape(-1, SHEET[0] * height, SHEET[1] * width)
            count(f"sheets of 20 of {source}", p, prior, list(sheets), draw)


def foreign(number: int, fonts: Sequence[Family], draw: np.random.Generator) -> None:
    """What is foreign to a prior of digits: photographs in two tones, text and noise, small and large."""
    prior, small = "tap-mnist", (28, 28)
    for p in DIRT:
        for shape in PAGES:
            pages = [page(fonts, 600, each, (800, 600))[: shape[0], : shape[1]] > 127 for each in range(number)]
            count(f"text, {shape[1]}x{shape[0]}", p, prior, pages, draw)
        whole = [page(fonts, 601, each, (800, 600)) > 127 for each in range(number)]
        count("text, 28x28", p, prior, list(crops(whole, small, number, draw)), draw)
    photographs = [cut(name) for name, _ in PHOTOGRAPHS]
    for p in (0.0, *FLIPS):
        for kind, shape in {"112x112": (CROP, CROP), "28x28": small}.items():
            count(f"photographs, {kind}", p, prior, list(crops(photographs, shape, number, draw)), draw)
    for white in (0.3, 0.5):
        for kind, shape in {"112x112": (CROP, CROP), "28x28": small}.items():
            count(f"noise, {kind}", white, prior, [np.zeros(shape, bool)] * number, draw)


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
    head("images", "prior", "flip", "number", "refused", "%", "CPU seconds each", left=("prior",))
    fonts: Callable[[], list[Family]] = families_to_learn_from if asked.tuning else families_for_tests
    if asked.families:
        families(asked.families, asked.names, np.random.default_rng(1))
    if asked.foreign:
        foreign(asked.foreign, fonts(), np.random.default_rng(2))
    if asked.own:
        own(asked.own, "train" if asked.tuning else "test", np.random.default_rng(3))


if __name__ == "__main__":
    main()
