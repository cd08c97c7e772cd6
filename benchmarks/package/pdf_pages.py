"""Pages of a PDF against the same pages as PNG: what it costs to read them from a document, and to exchange them in it.

    python benchmarks/package/pdf_pages.py [--pages 100] [--repeats 3]

Pages are digits, each with other pixels inverted, 10 % of them; prior and level are named, so that little but reading
and writing is left. Both ways run in turns, as commands of their own, and have to give equal pixels.
"""

from __future__ import annotations

import io
import tempfile
from pathlib import Path
from statistics import median

import numpy as np
from PIL import Image

from benchmarks.measures.script import command_line, head, row
from benchmarks.measures.timing import COMMAND, of_process
from restore.images import bound, read_picture
from restore.images.pdf import Document
from restore.learning.run.card import machine_facts

DIGIT = Path(__file__).parents[2] / "assets" / "digit.png"
OPTIONS = ("--model", "tap-mnist", "--p", "0.1", "--force", "--quiet")


def pages_in(folder: Path, count: int) -> tuple[Path, Path]:
    """Make a folder of pages, and a PDF of them."""
    folder.mkdir()
    page = np.asarray(Image.open(DIGIT).convert("L")) > 127
    contents = list[bytes]()
    for number in range(count):
        stream = io.BytesIO()
        noisy = page ^ (np.random.default_rng(number).random(page.shape) < 0.1)
        Image.fromarray(noisy).save(stream, "PNG", dpi=(300, 300))
        contents.append(stream.getvalue())
        (folder / f"{number:04}.png").write_bytes(stream.getvalue())
    book = folder.with_suffix(".pdf")
    book.write_bytes(bound(contents, "PDF"))
    return folder, book


def compared(count: int, repeats: int) -> None:
    """Print a row of the table."""
    taken: dict[str, list[float]] = {"PNG": [], "PDF": []}
    with tempfile.TemporaryDirectory() as place:
        folder, book = pages_in(Path(place) / "pages", count)
        for turn in range(repeats):
            out = Path(place) / f"out{turn}"
            apart, together = f"{out}/", Path(place) / f"out{turn}.pdf"
            taken["PNG"].append(of_process(*COMMAND, "denoise", str(folder), *OPTIONS, "-o", apart)[0])
            taken["PDF"].append(of_process(*COMMAND, "denoise", str(book), *OPTIONS, "-o", str(together))[0])
            with Document(together.read_bytes(), together.name, 10**6) as document:
                for number, path in enumerate(sorted(out.iterdir())):
                    both = (read_picture(path, name=path.name), read_picture(document, name="", frame=number))
                    assert np.array_equal(both[0].levels, both[1].levels), path
    png, pdf = median(taken["PNG"]), median(taken["PDF"])
    row(f"{count} pages of 28x28 pixels", f"{png:.2f}", f"{pdf:.2f}", f"{pdf / png:.2f}")


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("--pages", type=int, default=100, help="[%(default)s]")
    parser.add_argument("--repeats", type=int, default=3, help="turns of each way [%(default)s]")
    asked = parser.parse_args()
    head("", "PNG, s", "PDF, s", "ratio")
    compared(asked.pages, asked.repeats)
    print(f"\n({machine_facts()})")


if __name__ == "__main__":
    main()
