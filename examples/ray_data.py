"""Ray Data: folders of images that outgrow one machine.

Each worker loads the prior once and restores batch after batch, with exactly the results of `restore.denoise`. Here a
folder of damaged pages stands for the images; the same lines read from and write to a bucket.
"""

from pathlib import Path

import numpy as np
import ray
from PIL import Image

import restore

ASSETS = Path(__file__).resolve().parent.parent / "assets"


class Restored:
    """A worker: what it loads stays loaded."""

    def __init__(self, model: str) -> None:
        self.prior = restore.load(model)

    def __call__(self, batch: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        return {"path": batch["path"], "image": self.prior.denoise(batch["image"], p=0.1)}


def main() -> None:
    page = np.asarray(Image.open(ASSETS / "page.png").convert("L"))
    folder = Path("damaged")
    folder.mkdir(exist_ok=True)
    for number in range(8):
        flipped = np.random.default_rng(number).random(page.shape) < 0.1
        Image.fromarray(np.where(flipped, 255 - page, page)).save(folder / f"{number}.png")
    images = ray.data.read_images(str(folder.resolve()), mode="L", include_paths=True)
    restored = images.map_batches(
        Restored,
        fn_constructor_args=("conv-text",),
        batch_size=4,
        compute=ray.data.ActorPoolStrategy(min_size=1, max_size=64),
    )
    rows = sorted(restored.take_all(), key=lambda row: row["path"])
    print(
        *(f"{Path(row['path']).name}: {np.mean(row['image'] != page):.2%} of the pixels wrong" for row in rows),
        sep="\n",
    )
    Image.fromarray(np.concatenate([rows[0]["image"], rows[1]["image"]], 1)).save("ray_data.png")


if __name__ == "__main__":
    main()
