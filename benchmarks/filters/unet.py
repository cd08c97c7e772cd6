"""A U-Net of 117,000 weights that restores: what learning without a prior makes of the same time.

    python benchmarks/filters/unet.py training/recipes/conv-text.toml --data PATH --seconds 200 --device cuda -o FILE

It learns from the images of a recipe, under its tasks, in its mini-batches, by the same loss and with the same kind of
optimizer. `reader` learns from grey pages. Other benchmarks take it from the file.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits, max_pool2d, pad

from benchmarks.filters.binary import Seen
from benchmarks.measures.script import command_line
from restore.channels import parse_task
from restore.channels.views import VIEWS, views_of
from restore.errors import TrainingError
from restore.learning.course import Pages, RestoredImages, course_of
from restore.learning.lesson import lesson_of
from restore.learning.optimizers import OF_BIASES, Muon
from restore.learning.options import TrainOptions
from restore.learning.recipe.recipe import read_recipe
from restore.learning.rules.matched import LEAST_LOSS, LOSS_MEMORY
from restore.priors.page import views_of_page
from restore.units import Bernoulli
from training.data.pages import Family, pages

# Log-odds beyond this are as good as known.
STRONGEST = 5.0
BATCH, CROP, RATE, MOMENTUM = 16, 48, 0.01, 0.95
READER = Path(__file__).parents[2] / "training" / "recipes" / "conv-scan.toml"
# Drawn to learn from, and how many windows of these.
PAGES, CROPS = 1000, 60_000
# As in the recipe of `conv-text`.
TASKS = (*(f"flip:{p}" for p in (0.02, 0.05, 0.1, 0.15, 0.2, 0.3)), "holes:8:0.1", "holes:8:0.1")


def _pair(inside: int, outside: int) -> nn.Sequential:
    layers: list[nn.Module] = []
    for channels in (inside, outside):
        layers += [nn.Conv2d(channels, outside, 3, padding=1, bias=False), nn.BatchNorm2d(outside), nn.ReLU()]
    return nn.Sequential(*layers)


class UNet(nn.Module):
    """Three scales. Its two channels are the log-odds of ink, scaled, and whether a pixel is hidden; or any `seen`."""

    def __init__(self, width: int = 16, seen: int = 2) -> None:
        super().__init__()
        self.down = nn.ModuleList([_pair(seen, width), _pair(width, 2 * width), _pair(2 * width, 4 * width)])
        self.rise = nn.ModuleList([nn.ConvTranspose2d(2 * size, size, 2, stride=2) for size in (width, 2 * width)])
        self.up = nn.ModuleList([_pair(2 * size, size) for size in (width, 2 * width)])
        self.last = nn.Conv2d(width, 1, 1)

    def forward(self, seen: Tensor) -> Tensor:
        """Log-odds of ink (N, 1, H, W) of what is seen of pages (N, C, H, W); sides are multiples of four."""
        fine = self.down[0](seen)
        middle = self.down[1](max_pool2d(fine, 2))
        coarse = self.down[2](max_pool2d(middle, 2))
        middle = self.up[1](torch.cat([middle, self.rise[1](coarse)], dim=1))
        return self.last(self.up[0](torch.cat([fine, self.rise[0](middle)], dim=1)))

    def repair(self, seen: Seen, _: float) -> np.ndarray:
        with torch.inference_mode():
            return (self._of_any_size(_seen(torch.from_numpy(seen.evidence)[None, None])) > 0).numpy()

    def read(self, page: np.ndarray) -> np.ndarray:
        """The ink of a grey page (H, W), uint8: True is ink."""
        grey = torch.from_numpy(page / np.float32(255))[None, None]
        with torch.inference_mode():
            return (self._of_any_size(views_of(grey, torch.ones_like(grey))) < 0).numpy()

    def _of_any_size(self, seen: Tensor) -> Tensor:
        """The log-odds (H, W) of one page (1, C, H, W)."""
        height, width = seen.shape[-2:]
        return self(pad(seen, (0, -width % 4, 0, -height % 4), mode="replicate"))[0, 0, :height, :width]


def _seen(odds: Tensor) -> Tensor:
    """What the network sees of log-odds of ink (N, 1, H, W)."""
    return torch.cat([odds.clamp(-STRONGEST, STRONGEST) / STRONGEST, (odds == 0).to(odds.dtype)], 1)


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


def crops(clean: np.ndarray, seed: int) -> np.ndarray:
    """Random windows (N, CROP, CROP) of pictures (M, H, W)."""
    draw = np.random.default_rng(seed)
    corners = [draw.integers(0, size - CROP + 1, CROPS) for size in clean.shape[1:]]
    windows = np.lib.stride_tricks.sliding_window_view(clean, (CROP, CROP), axis=(1, 2))
    return windows[draw.integers(len(clean), size=CROPS), *corners]


def optimizer_for(network: nn.Module) -> Muon:
    """Muon for kernels, Adam for all others."""
    kernels = [weights for weights in network.parameters() if weights.ndim == 4]
    others = [weights for weights in network.parameters() if weights.ndim != 4]
    groups = [{"params": kernels, "share": 1.0}, {"params": others, "share": OF_BIASES}]
    return Muon(groups, lr=RATE, betas=(MOMENTUM, 0.99), weight_decay=0.0)


def trained(course: RestoredImages | Pages, seconds: float, seed: int, *, width: int = 16, batch: int = BATCH) -> UNet:
    """A network that has learnt from the images, under the tasks and by the loss, of a prior that learns by restoring.

    Of grey pages it sees the views that a reader of pages sees.

    It learns for so many seconds of processor time, or on a GPU of the clock's.
    """
    device, clock = course.images.device, time.perf_counter if course.images.is_cuda else time.process_time
    torch.manual_seed(seed)
    channels, tasks = (VIEWS, 1) if isinstance(course, Pages) else (2, len(course.tasks))
    draw, network = torch.Generator(device).manual_seed(seed), UNet(width, channels).train().to(device)
    network = network.to(memory_format=torch.channels_last)
    optimizer, began, used = optimizer_for(network), clock(), 0.0
    usual = torch.zeros(tasks, device=device)
    while used < 1:
        for group in optimizer.param_groups:
            group["lr"] = RATE * group["share"] * min(1.0, used / 0.05 + 0.01, 1.02 - used)
        index = torch.randint(len(course.images), (batch,), generator=draw, device=device)
        given = course.batch(index, draw)
        optimizer.zero_grad()
        if isinstance(course, Pages):
            seen = views_of_page(given.evidence, course.image_shape)
        else:
            seen = _seen(given.evidence.linear.view(-1, 1, *course.image_shape))
        with torch.autocast(device.type, torch.bfloat16, enabled=course.images.is_cuda):
            answers = network(seen)
        wanted = given.clean.view_as(answers)
        losses = binary_cross_entropy_with_logits(answers.float(), wanted, reduction="none").sum((1, 2, 3))
        if not bool(losses.isfinite().all()):
            raise TrainingError("the network has diverged; nothing is kept")
        # As in `restore.learning.rules.matched`, each task counts in proportion to how far its loss changes.
        nothing, count = torch.zeros_like(usual), torch.bincount(given.tasks, minlength=len(usual))
        mean = nothing.index_add(0, given.tasks, losses.detach()) / count.clamp_min(1)
        usual = torch.where((usual > 0) & (count > 0), usual + (mean - usual) / LOSS_MEMORY, torch.maximum(usual, mean))
        (losses / usual[given.tasks].clamp_min(LEAST_LOSS)).mean().backward()
        optimizer.step()
        used = (clock() - began) / seconds
    return network.cpu().eval()


def course_for(images: Tensor, shape: tuple[int, int], tasks: Sequence[str]) -> RestoredImages:
    """Images (N, D) to learn to restore from tasks."""
    even = Bernoulli(torch.zeros(images.shape[1], device=images.device))
    return RestoredImages(images, image_shape=shape, tasks=tuple(map(parse_task, tasks)), independent=even)


def kept(folder: Path, learnt: str, draw: Callable[[], np.ndarray], minutes: float, seed: int) -> UNet:
    """The network of so many minutes in this folder; if there is none, one learns from what is drawn, and is kept."""

    def learn() -> UNet:
        images = torch.from_numpy(crops(draw(), seed)).flatten(1).float()
        return trained(course_for(images, (CROP, CROP), TASKS), 60 * minutes, seed)

    return stored(folder / f"unet-{learnt}-{minutes:g}-minutes-seed-{seed}.safetensors", learn)


def reader(folder: Path, data: Path, minutes: float) -> UNet:
    """The network that has learnt from the pages of `conv-scan` for so many minutes; kept in this folder."""

    def learn() -> UNet:
        recipe = read_recipe(READER)
        lesson = lesson_of(recipe, TrainOptions(data=data))
        course = course_of(recipe, lesson.pixels(torch.device("cpu")), lesson.image_shape)
        assert isinstance(course, Pages)
        return trained(course, 60 * minutes, recipe.seed, batch=recipe.training.batch)

    return stored(folder / f"unet-scans-{minutes:g}-minutes.safetensors", learn, seen=VIEWS)


def stored(path: Path, learn: Callable[[], UNet], width: int = 16, seen: int = 2) -> UNet:
    """The network in a file; if there is none, one learns and is put there."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        save_file({name: value.contiguous() for name, value in learn().state_dict().items()}, path)
    network = UNet(width, seen)
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


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("recipe", type=Path, help="of a prior that learns by restoring")
    parser.add_argument("--data", type=Path, help="folder of named data sets")
    parser.add_argument("--seconds", type=float, default=300, help="of processor time, or on a GPU [%(default)s]")
    parser.add_argument("--device", default="cpu", help="[%(default)s]")
    parser.add_argument("--width", type=int, default=16, help="features at full resolution [%(default)s]")
    parser.add_argument("-o", "--output", type=Path, required=True, help="the file to make")
    asked = parser.parse_args()
    recipe = read_recipe(asked.recipe)
    lesson = lesson_of(recipe, TrainOptions(data=asked.data))
    course = course_for(lesson.pixels(torch.device(asked.device)), lesson.image_shape, recipe.learner.tasks)
    stored(
        asked.output,
        lambda: trained(course, asked.seconds, recipe.seed, width=asked.width, batch=recipe.training.batch),
        asked.width,
    )


if __name__ == "__main__":
    main()
