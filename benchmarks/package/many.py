"""Many images in one process, in two by `--jobs`, in two by `--part`, and by Ray Data with `restore.batches`.

    python benchmarks/package/many.py [--digits 2000] [--pages 12] [--repeats 3]

Digits are assets/digit.png with 10 % of its pixels inverted, by a prior and a level that are named; pages are
assets/page-scan.png four times with new noise, for which nothing is named. The ways run in turns, as commands of their
own. All have to write each image once, with equal pixels. Memory is that of the largest process. Without the library
ray its row says so.
"""

from __future__ import annotations

import os
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path
from statistics import median

import numpy as np
from memory import drawn
from PIL import Image

from benchmarks.measures.script import command_line, head, row
from benchmarks.measures.timing import COMMAND, of_process
from restore.learning.run.card import machine_facts

SCAN = Path(__file__).parents[2] / "assets" / "page-scan.png"
NAMED = ("--model", "tap-mnist", "--p", "0.1")

# Two commands at once, one of them for each part; as many threads as processes.
PARTS = """
import os, subprocess, sys
environment = os.environ | {"OMP_NUM_THREADS": "1"}
both = [subprocess.Popen([*sys.argv[1:], "--part", f"{part}/2"], env=environment) for part in (1, 2)]
sys.exit(max(one.wait() for one in both))
"""

# Reads a folder, and writes each image of another; the words after them are options of `restore.batches`.
RAY = """
import sys
from pathlib import Path
import numpy as np, ray
from PIL import Image
import restore

source, target, *options = sys.argv[1:]
Path(target).mkdir()

def write(row):
    Image.fromarray(row["image"]).save(Path(target) / f"{Path(row['path']).stem}.restored.png")
    return {"status": row["status"]}

ray.init(address="local", log_to_driver=False, logging_level="error")
restored = restore.batches(options[1], p=float(options[3])) if options else restore.batches()
images = ray.data.read_images(source, mode="L", include_paths=True).map_batches(restored, batch_size=16)
assert sum(1 for _ in images.map(write).iter_rows()) == len(list(Path(source).iterdir()))
"""


def scanned(folder: Path, count: int) -> Path:
    """Make a folder of grey pages."""
    folder.mkdir()
    with Image.open(SCAN) as image:
        page = np.tile(np.asarray(image.convert("L"), np.float64), (2, 2))
    for index in range(count):
        noisy = page + np.random.default_rng(index).normal(0, 5, page.shape)
        Image.fromarray(np.rint(noisy).clip(0, 255).astype(np.uint8)).save(folder / f"page {index:02}.png")
    return folder


def pixels(folder: Path) -> dict[str, bytes]:
    return {path.name: np.asarray(Image.open(path).convert("L")).tobytes() for path in sorted(folder.iterdir())}


def compared(source: Path, options: tuple[str, ...], repeats: int) -> None:
    """Print the table of a folder of images."""
    words = ["denoise", str(source), *options, "--quiet", "-o"]
    ways = {
        "one process": lambda target: [*COMMAND, *words, f"{target}/"],
        "`--jobs 2`": lambda target: [*COMMAND, *words, f"{target}/", "--jobs", "2"],
        "two commands with `--part`": lambda target: [sys.executable, "-c", PARTS, *COMMAND, *words, f"{target}/"],
    }
    if find_spec("ray"):
        ways["Ray Data"] = lambda target: [sys.executable, "-c", RAY, str(source), str(target), *options]
    taken: dict[str, list[tuple[float, float]]] = {way: [] for way in ways}
    first: dict[str, bytes] = {}
    for _ in range(repeats):
        for way, command in ways.items():
            with tempfile.TemporaryDirectory() as folder:
                target = Path(folder) / "out"
                if way == "two commands with `--part`":
                    target.mkdir()
                taken[way].append(of_process(*command(target)))
                results = pixels(target)
                first = first or results
                if results != first or len(results) != len(list(source.iterdir())):
                    sys.exit(f"{way}: other pixels, or not all of them")
    head(f"{len(first)} {source.name}", "s", "ratio", "MiB of the largest process")
    alone = median(seconds for seconds, _ in taken["one process"])
    for way, turns in taken.items():
        seconds, memory = (median(values) for values in zip(*turns, strict=True))
        row(way, f"{seconds:.1f}", f"{seconds / alone:.2f}", f"{memory:.0f}")
    if not find_spec("ray"):
        row("Ray Data", "not installed", "", "")


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("--digits", type=int, default=2000, help="[%(default)s]")
    parser.add_argument("--pages", type=int, default=12, help="[%(default)s]")
    parser.add_argument("--repeats", type=int, default=3, help="turns of each way [%(default)s]")
    chosen = parser.parse_args()
    os.environ.pop("OMP_NUM_THREADS", None)  # one process has a thread on each processor
    with tempfile.TemporaryDirectory() as folder:
        compared(drawn(Path(folder) / "digits", chosen.digits), NAMED, chosen.repeats)
        compared(scanned(Path(folder) / "pages", chosen.pages), (), chosen.repeats)
    print(f"({os.cpu_count()} cores; {machine_facts()})")


if __name__ == "__main__":
    main()
