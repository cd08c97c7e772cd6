"""Masks of a segmentation, cleaned with their uncertainty.

A threshold cuts a noisy picture of coins into a ragged mask. `restore` is told nothing: it finds the prior and how many
pixels are wrong, and says where it is in doubt.
"""

import numpy as np
from PIL import Image
from skimage.data import coins
from skimage.filters import threshold_otsu
from skimage.measure import label

import restore


def main() -> None:
    grey = coins()[100:300, :380].reshape(100, 2, 190, 2).mean((1, 3))
    truth = grey > threshold_otsu(grey)
    noisy = grey + np.random.default_rng(0).normal(0, 45, grey.shape)
    mask = noisy > threshold_otsu(noisy)
    clean, solution = restore.denoise(mask, return_solution=True)
    doubt = solution.deviations.reshape(mask.shape)
    print(solution.notes[0])
    for name, picture in {"threshold": mask, "restored": clean}.items():
        pieces = label(picture, return_num=True)[1]
        print(f"{name}: {np.mean(picture != truth):.2%} differ from the mask without noise, {pieces} pieces")
    panels = [np.uint8(255 * panel) for panel in (noisy.clip(0, 255) / 255, mask, clean, 2 * doubt)]
    Image.fromarray(np.concatenate(panels, 1)).resize((1520, 200), 0).save("segmentation_masks.png")


if __name__ == "__main__":
    main()
