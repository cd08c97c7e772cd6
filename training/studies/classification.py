"""Judge a prior's features by a multinomial logistic regression on its hidden units (FW, sec. 5, Fig. 2).

    python training/studies/classification.py fw-mnist --data mnist --n 10000

prints the share of test images that a regression fitted to N training images classifies wrongly; with `--record` it is
kept, too.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from harness import checksum, read, run, with_others, write
from labels import load_labels
from numpy.typing import NDArray
from opened import features

from restore.console import say, tell
from restore.data import Split, load
from restore.errors import InputError
from restore.inference.torch_engine import Engine
from restore.zoo import find

# Inverse strengths of the penalty, scikit-learn's C: (1/2)|w|² + C Σ_n loss_n.
PENALTIES = (1e-3, 1e-2, 1e-1, 1.0, 10.0)

# The share of the training images on which the penalty is chosen.
HELD_OUT = 1 / 6

MAX_ITER = 1000


@dataclass(frozen=True)
class Examples:
    """Features (N, H), in [0, 1], and the classes (N,) of images."""

    features: NDArray[np.float32]
    labels: NDArray[np.int64]


@dataclass(frozen=True)
class Judged:
    """The share of test images that was wrong by a prior's features, with so many training images of a data set."""

    name: str
    data: str
    images: int
    seed: int
    wrong: float
    weights: str


def examples_of(engine: Engine, data: str, split: Split, n: int | None, root: Path | None = None) -> Examples:
    """The hidden units E[h | v] and the classes of the first images of a data set.

    Raises:
        InputError: if the data have no labels, or not one for each image.
    """
    images, labels = load(data, split=split, root=root).images, load_labels(data, split=split, root=root)
    if len(labels) != len(images):
        raise InputError(f"{data}: has {len(labels)} labels for {len(images)} images; get both again")
    return Examples(features(engine, images[:n] / 255), labels[:n])


def wrong_share(training: Examples, test: Examples, generator: np.random.Generator) -> float:
    """The share of test examples that a regression fitted to training examples classifies wrongly.

    Features need no scaling, as they are activations in [0, 1]. A random sixth of the training examples is held out,
    and the penalty with the fewest errors on it is chosen, the weakest of equals. The final fit uses all examples.

    Raises:
        InputError: if there are fewer than two classes, or too few examples to hold some out.

    >>> labels = np.arange(60) % 3
    >>> examples = Examples(np.eye(3, dtype=np.float32)[labels], labels)  # each class has a feature of its own
    >>> wrong_share(examples, examples, np.random.default_rng(0))
    0.0
    """
    return _wrong(training, test, best_penalty(training, generator))


def best_penalty(training: Examples, generator: np.random.Generator) -> float:
    """The penalty with the fewest errors on a random sixth of the examples, the weakest of equals."""
    order = generator.permutation(len(training.labels))
    aside, kept = np.split(order, [max(1, round(len(order) * HELD_OUT))])
    if len(np.unique(training.labels[kept])) < 2:
        raise InputError(f"{len(training.labels)} training images are too few to tell classes by; give more")
    held_out = {penalty: _wrong(_part(training, kept), _part(training, aside), penalty) for penalty in PENALTIES}
    return min(PENALTIES, key=lambda penalty: (held_out[penalty], -penalty))


def _part(examples: Examples, index: NDArray[np.intp]) -> Examples:
    return Examples(examples.features[index], examples.labels[index])


def _wrong(training: Examples, test: Examples, penalty: float) -> float:
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression(C=penalty, max_iter=MAX_ITER)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(training.features, training.labels)
    if int(model.n_iter_.max()) == MAX_ITER:
        say(f"the fit with penalty {penalty:g} did not settle within {MAX_ITER} iterations")
    return float(np.mean(model.predict(test.features) != test.labels))


def classification(
    model: Annotated[str, typer.Argument(help="Name or folder of a prior with one layer of hidden units.")],
    data: Annotated[
        str, typer.Option(help="Data set with labels: a name, or an idx file of images beside its labels.")
    ],
    n: Annotated[int | None, typer.Option("--n", min=2, help="Fit to the first N training images [all].")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the images that choose the penalty.")] = 0,
    data_root: Annotated[Path | None, typer.Option(help="Where named data sets lie [RESTORE_DATA].")] = None,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda[:N].")] = "auto",
    record: Annotated[
        Path | None, typer.Option(help="Keep the result in this JSON file, beside those of others.")
    ] = None,
) -> None:
    """Measure how well a prior's hidden units tell classes apart."""
    engine = Engine.load(model, device)
    training = examples_of(engine, data, "train", n, data_root)
    test = examples_of(engine, data, "test", None, data_root)
    wrong = wrong_share(training, test, np.random.default_rng(seed))
    tell(f"{100 * wrong:.2f}% of {len(test.labels)} test images wrong, by {len(training.labels)} training images")
    if record is not None:
        folder = find(model)
        judged = Judged(folder.name, data, len(training.labels), seed, wrong, checksum(folder))
        write(record, {"priors": with_others([judged], read(record, {}, priors=Judged)["priors"])})


if __name__ == "__main__":
    run(classification)
