"""Ray Data: folders of images that outgrow one machine.

Each worker loads the prior once and restores batch after batch, with exactly the results of `restore.denoise`. Images
stream through, so few of them are in memory, and those that are not sure come back as they came with the reason. Here a
folder of damaged pages stands for the images; the same lines read from a bucket.
"""

import io
from pathlib import Path

import numpy as np
import ray
from PIL import Image

import restore
from restore.files import write_atomically

ASSETS = Path(__file__).resolve().parent.parent / "assets"


class Writer:
    """Writes each image into a folder as the worker has it; what goes on are its name and what became of it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(self, row: dict[str, object]) -> dict[str, object]:
        name, content = Path(row["path"]).name, io.BytesIO()
        Image.fromarray(row["image"]).save(content, "PNG")
        write_atomically(self.folder / name, content.getvalue())
        return {"name": name, "status": row["status"], "notes": row["notes"]}


def main() -> None:
    page = np.asarray(Image.open(ASSETS / "page.png").convert("L"))
    damaged, clean = Path("damaged").resolve(), Path("clean").resolve()
    for folder in (damaged, clean):
        folder.mkdir(exist_ok=True)
    for number in range(8):
        flipped = np.random.default_rng(number).random(page.shape) < 0.1
        Image.fromarray(np.where(flipped, 255 - page, page)).save(damaged / f"{number}.png")
    noise = np.random.default_rng(8).integers(0, 2, (200, 300), dtype=np.uint8)
    Image.fromarray(255 * noise).save(damaged / "noise.png")  # no prior recognises it
    images = ray.data.read_images(str(damaged), mode="L", include_paths=True)
    restored = images.map_batches(restore.batches("conv-text"), batch_size=4).map(Writer(clean))
    for row in restored.iter_rows():
        print(f"{row['name']}: {row['status']}: {row['notes']}")
    wrong = [np.mean(np.asarray(Image.open(clean / f"{number}.png")) != page) for number in range(8)]
    print(f"{np.mean(wrong):.2%} of the pixels are wrong")
    pair = [np.asarray(Image.open(folder / "0.png")) for folder in (damaged, clean)]
    Image.fromarray(np.concatenate(pair, 1)).save("ray_data.png")


if __name__ == "__main__":
    main()
