"""A U-Net of 117,000 weights that repairs binary pages: what learning without a prior makes of the same minutes."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import torch
from filters import Seen
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits, max_pool2d, pad

from training.data.pages import Family, pages

# Log-odds beyond this are as good as known.
STRONGEST = 5.0
BATCH, CROP, RATE = 16, 64, 4e-3
# Drawn to learn from.
PAGES = 1000
WEAKEST_FLIPS, STRONGEST_FLIPS, HOLED = 0.03, 0.35, 0.3


def _pair(inside: int, outside: int) -> nn.Sequential:
    layers: list[nn.Module] = []
    for channels in (inside, outside):
        layers += [nn.Conv2d(channels, outside, 3, padding=1, bias=False), nn.BatchNorm2d(outside), nn.ReLU()]
    return nn.Sequential(*layers)


class UNet(nn.Module):
    """Three scales. Its two channels are the log-odds of ink, scaled, and whether a pixel is hidden."""

    def __init__(self, width: int = 16) -> None:
        super().__init__()
        self.down = nn.ModuleList([_pair(2, width), _pair(width, 2 * width), _pair(2 * width, 4 * width)])
        self.rise = nn.ModuleList([nn.ConvTranspose2d(2 * size, size, 2, stride=2) for size in (width, 2 * width)])
        self.up = nn.ModuleList([_pair(2 * size, size) for size in (width, 2 * width)])
        self.last = nn.Conv2d(width, 1, 1)

    def forward(self, seen: Tensor) -> Tensor:
        """Log-odds of ink (N, 1, H, W) of pages (N, 2, H, W); sides are multiples of four."""
        fine = self.down[0](seen)
        middle = self.down[1](max_pool2d(fine, 2))
        coarse = self.down[2](max_pool2d(middle, 2))
        middle = self.up[1](torch.cat([middle, self.rise[1](coarse)], dim=1))
        return self.last(self.up[0](torch.cat([fine, self.rise[0](middle)], dim=1)))

    def repair(self, seen: Seen, _: float) -> np.ndarray:
        height, width = seen.ink.shape
        with torch.inference_mode():
            wide = pad(_channels([seen]), (0, -width % 4, 0, -height % 4), mode="replicate")
            return (self(wide)[0, 0, :height, :width] > 0).numpy()


def _channels(seen: list[Seen]) -> Tensor:
    evidence = np.stack([each.evidence for each in seen]).clip(-STRONGEST, STRONGEST) / STRONGEST
    hidden = np.stack([each.hidden for each in seen])
    return torch.from_numpy(np.stack([evidence, hidden.astype(np.float32)], axis=1))


def holes(draw: np.random.Generator, shape: tuple[int, ...], side: int = 8, share: float = 0.1) -> np.ndarray:
    """A mask of square holes, none over another, that hides about such a share of a page."""
    mask = np.zeros(shape, bool)
    cell = 2 * side
    for top in range(0, shape[0] - cell + 1, cell):
        for left in range(0, shape[1] - cell + 1, cell):
            if draw.random() < share * (cell / side) ** 2:
                down, right = draw.integers(0, cell - side + 1, 2)
                mask[top + down : top + down + side, left + right : left + right + side] = True
    return mask


def lessons(clean: np.ndarray, draw: np.random.Generator) -> Iterator[tuple[Tensor, Tensor]]:
    """Batches of damaged crops and the same undamaged, for ever."""
    height, width = clean.shape[1:]
    while True:
        truth, seen = [], []
        for _ in range(BATCH):
            top, left = draw.integers(0, (height - CROP + 1, width - CROP + 1))
            crop = clean[draw.integers(len(clean)), top : top + CROP, left : left + CROP]
            if draw.random() < HOLED:
                hidden, p = holes(draw, crop.shape), 0.0
            else:
                hidden = np.zeros(crop.shape, bool)
                p = float(np.exp(draw.uniform(np.log(WEAKEST_FLIPS), np.log(STRONGEST_FLIPS))))
            truth.append(crop)
            seen.append(Seen((crop ^ (draw.random(crop.shape) < p)) & ~hidden, p, hidden))
        yield _channels(seen), torch.from_numpy(np.stack(truth))[:, None].float()


def trained(clean: np.ndarray, minutes: float, seed: int) -> UNet:
    """A network that has learnt for so many minutes of processor time from pictures (N, H, W)."""
    torch.manual_seed(seed)
    network = UNet().train()
    optimizer = torch.optim.Adam(network.parameters(), RATE)
    began, used = time.process_time(), 0.0
    for seen, truth in lessons(clean, np.random.default_rng(seed)):
        used = (time.process_time() - began) / (60 * minutes)
        if used >= 1:
            break
        optimizer.param_groups[0]["lr"] = RATE * min(1.0, used / 0.05, 1.02 - used)
        optimizer.zero_grad()
        hidden = seen[:, 1:] > 0
        # Of a page with holes only they are asked.
        weight = torch.where(hidden.amax(dim=(2, 3), keepdim=True), hidden.float() * 4, 1.0)
        binary_cross_entropy_with_logits(network(seen), truth, weight).backward()
        optimizer.step()
    return network.eval()


def kept(folder: Path, learnt: str, draw: Callable[[], np.ndarray], minutes: float, seed: int) -> UNet:
    """The network of so many minutes in this folder; if there is none, one learns from what is drawn, and is kept."""
    path = folder / f"unet-{learnt}-{minutes:g}-minutes-seed-{seed}.safetensors"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        save_file(trained(draw(), minutes, seed).state_dict(), path)
    network = UNet()
    network.load_state_dict(load_file(path))
    return network.eval()


def printed(seed: int) -> np.ndarray:
    """Pages in fonts to learn from."""
    return pages(families_to_learn_from(), PAGES, seed) > 127


def families_to_learn_from() -> list[Family]:
    """As the data set's, without its warning of packages that are missing."""
    from training.data import text

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return text.families_to_learn_from()
