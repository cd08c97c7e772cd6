"""Makes the README's before-after pictures: `python assets/gallery.py [--model NAME_OR_FOLDER]`.

Runs the very commands that README.md and docs/ show, and sets what went in and what came out side by side, enlarged so
that every pixel is seen; of large pictures a part. Pixels to fill are shown in grey.
"""

from __future__ import annotations

import argparse
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image

HERE = Path(__file__).parent
ROOT = HERE.parent

COMMANDS = {
    "before-after-old.png": "restore denoise assets/old-page.png",
    "before-after-code.png": "restore denoise assets/code-noisy.png",
    "before-after-noisy.png": "restore denoise assets/digit-noisy.png --model tap-mnist --p 0.1",
    "before-after-very-noisy.png": "restore denoise assets/digit-very-noisy.png --model tap-mnist --p 0.3",
    "before-after-torn.png": "restore complete assets/digit-torn.png --mask assets/digit-hole.png --model tap-mnist",
    "before-after-patched.png": "restore denoise assets/digit-patched.png --model crbm-bp-mnist-patch12",
    "before-after-grey-noisy.png": "restore denoise assets/digit-grey-noisy.png --model tap-mnist-real --sigma 0.3",
    "before-after-mask.png": "restore denoise assets/mask-noisy.png",
    "before-after-page.png": "restore denoise assets/page-noisy.png --model conv-text --p 0.1",
    "before-after-spots.png": "restore denoise assets/page-spots.png",
    "before-after-dots.png": "restore denoise assets/page-dots.png --remove dots",
    "before-after-rules.png": "restore denoise assets/page-rules.png --remove lines",
    "before-after-scan.png": "restore denoise assets/page-scan.png",
    "before-after-large.png": "restore complete assets/digit-large-torn.png --mask assets/digit-large-hole.png"
    " --model tap-mnist --fit resize",
}
SMALL = 28
ENLARGED = 6
GAP = 8
TO_FILL = 110
# Height and width of the part that is shown of a large picture.
PART = 200, 320


def option(arguments: list[str], name: str) -> str | None:
    """The value that follows an option in a command."""
    return arguments[arguments.index(name) + 1] if name in arguments else None


def restored(arguments: list[str], folder: Path) -> Image.Image:
    """What a `restore` command makes of its image."""
    output = folder / "restored.png"
    program = [sys.executable, "-c", "from restore.cli import main; main()"]
    command = [*program, *arguments[1:], "--output", str(output), "--overwrite"]
    subprocess.run(command, cwd=ROOT, check=True)
    with Image.open(output) as image:
        return image.convert("L")


def damaged(arguments: list[str]) -> Image.Image:
    """The image a command starts from, its pixels to fill in grey."""
    image = Image.open(ROOT / arguments[2]).convert("L")
    mask = option(arguments, "--mask")
    if mask is not None:
        image.paste(TO_FILL, mask=Image.open(ROOT / mask).convert("L"))
    return image


def side_by_side(before: Image.Image, after: Image.Image) -> Image.Image:
    """Both panels enlarged without smoothing, a transparent gap between them."""
    part = (0, 0, min(before.width, PART[1]), min(before.height, PART[0]))
    before, after = (image.crop(part) for image in (before, after))
    factor = max(1, round(SMALL * ENLARGED / before.width))
    width, height = factor * before.width, factor * before.height
    picture = Image.new("LA", (2 * width + GAP, height))
    for left, panel in ((0, before), (width + GAP, after)):
        picture.paste(panel.resize((width, height), Image.Resampling.NEAREST), (left, 0))
    return picture


def main() -> None:
    parser = argparse.ArgumentParser(description="Make the README's before-after pictures.")
    parser.add_argument("--model", help="use this prior instead of the published ones")
    parser.add_argument("--output", type=Path, default=HERE, help="folder for the pictures [assets]")
    options = parser.parse_args()
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    shown = "".join(page.read_text(encoding="utf-8") for page in pages)
    for name, command in COMMANDS.items():
        if command not in shown:
            print(f"no page shows: {command}", file=sys.stderr)
        arguments = shlex.split(command)
        if options.model:
            # Commands run in the repository, a path is meant from here.
            own = Path(options.model)
            arguments[arguments.index("--model") + 1] = str(own.resolve()) if own.is_dir() else options.model
        with tempfile.TemporaryDirectory() as folder:
            picture = side_by_side(damaged(arguments), restored(arguments, Path(folder)))
        picture.save(options.output / name, optimize=True)
        print(f"{options.output / name}: {command}")


if __name__ == "__main__":
    main()
