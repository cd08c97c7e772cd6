"""An epoch of PCD-1 against scikit-learn's BernoulliRBM, a plain PyTorch loop, and the matrix products alone.

    python benchmarks/peers/pcd_epoch.py [--images 10000]

784 visible and 500 hidden units, mini-batches of 100, float32, the same number of threads for all. Ours is a whole run
of `restore.learning.loop`, with momentum, weight decay, centring, finiteness checks, log and checkpoint; the plain loop
is the five products of PCD-1 with the least around them. scikit-learn computes in the precision of the images it is
given, in float64 if they are integers.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import torch
from sklearn.neural_network import BernoulliRBM
from threadpoolctl import threadpool_limits
from torch import Tensor

from benchmarks.measures.script import command_line
from benchmarks.measures.timing import medians, report
from restore.learning.course import CleanImages
from restore.learning.recipe.recipe import Data, PriorShape, Recipe, Training
from restore.learning.rules.contrastive import ContrastiveDivergence
from restore.learning.run.session import Session
from restore.learning.steps import fit

VISIBLE, HIDDEN, BATCH, RATE = 784, 500, 100, 0.05


def recipe() -> Recipe:
    return Recipe(
        name="benchmark",
        data=Data("synthetic"),
        prior=PriorShape(hidden=HIDDEN),
        method="contrastive",
        learner=ContrastiveDivergence(starts="persistent", chains=BATCH),
        training=Training(epochs=1, batch=BATCH),
    )


def ours(images: Tensor) -> None:
    with tempfile.TemporaryDirectory() as folder:
        fit(recipe(), CleanImages(images), Session(Path(folder)))


def plain_loop(images: Tensor) -> None:
    weights = 0.01 * torch.randn(VISIBLE, HIDDEN)
    visible_bias, hidden_bias = torch.zeros(VISIBLE), torch.zeros(HIDDEN)
    chains = torch.zeros(BATCH, HIDDEN)
    for batch in images[torch.randperm(len(images))].split(BATCH):
        hidden = torch.sigmoid(torch.addmm(hidden_bias, batch, weights))
        visible = torch.bernoulli(torch.sigmoid(torch.addmm(visible_bias, chains, weights.T)))
        free = torch.sigmoid(torch.addmm(hidden_bias, visible, weights))
        chains = torch.bernoulli(free)
        step = RATE / len(batch)
        weights.addmm_(batch.T, hidden, alpha=step).addmm_(visible.T, free, alpha=-step)
        visible_bias += step * (batch.sum(0) - visible.sum(0))
        hidden_bias += step * (hidden.sum(0) - free.sum(0))


def products(images: Tensor) -> None:
    weights, chains = torch.zeros(VISIBLE, HIDDEN), torch.zeros(BATCH, HIDDEN)
    for batch in images.split(BATCH):
        _ = batch @ weights, chains @ weights.T, batch @ weights, batch.T @ chains, batch.T @ chains


def main() -> None:
    parser = command_line(__doc__, repeats=5)
    parser.add_argument("--images", type=int, default=10_000, help="a multiple of 100 [%(default)s]")
    chosen = parser.parse_args()
    torch.set_num_threads(chosen.threads)
    # A fifth of the pixels is white, as in MNIST. The time of an epoch does not depend on which.
    images = (torch.rand(chosen.images, VISIBLE, generator=torch.Generator().manual_seed(0)) < 0.2).float()
    peer = BernoulliRBM(n_components=HIDDEN, learning_rate=RATE, batch_size=BATCH, n_iter=1, random_state=0)
    single, double = images.numpy(), images.double().numpy()
    candidates = {
        "restore, PCD-1": lambda: ours(images),
        "scikit-learn BernoulliRBM": lambda: peer.fit(single),
        "scikit-learn BernoulliRBM, float64": lambda: peer.fit(double),
        "plain PyTorch loop": lambda: plain_loop(images),
        "five products": lambda: products(images),
    }
    with threadpool_limits(chosen.threads), torch.inference_mode():
        seconds = medians(candidates, chosen.repeats)
    print(f"{chosen.images} images per epoch")
    report(seconds, "scikit-learn BernoulliRBM")


if __name__ == "__main__":
    main()
