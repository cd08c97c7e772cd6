"""Judge a prior's features by a multinomial logistic regression on its hidden units (FW, sec. 5, Fig. 2)."""

from __future__ import annotations

import json
import math
import time
import warnings
from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray

from restore.errors import InputError

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
class Classification:
    """Errors of a classifier.

    Attributes:
        features: number of features.
        classes: number of classes among the training images.
        trained: number of training images, including those held out.
        tested: number of test images.
        error: share of test images classified wrongly.
        standard_error: binomial standard error of `error`.
        validation_error: share of held-out training images classified wrongly, with the penalty chosen by it.
        penalty: that penalty, see `PENALTIES`.
        warnings: sentences on what is wrong with the fit.
        seconds: wall-clock time.
    """

    features: int
    classes: int
    trained: int
    tested: int
    error: float
    standard_error: float
    validation_error: float
    penalty: float
    warnings: tuple[str, ...]
    seconds: float

    def as_json(self) -> str:
        """One line of JSON."""
        return json.dumps(asdict(self), allow_nan=False)

    def as_text(self) -> str:
        """A few lines for people; errors in per cent."""
        return "\n".join(
            [
                f"logistic regression: {self.features} features, {self.classes} classes, in {self.seconds:.1f} s",
                f"  {f'wrong of {self.tested} test images':<34} {self.error:8.2%} ± {self.standard_error:.2%}",
                f"  {f'wrong of {self.held_out} held-out images':<34} {self.validation_error:8.2%}",
                f"  {'inverse penalty C, chosen on those':<34} {self.penalty:8g}",
            ]
        )

    @property
    def held_out(self) -> int:
        """Number of training images on which the penalty was chosen."""
        return held_out(self.trained)


def held_out(count: int) -> int:
    """How many of this many training images the penalty is chosen on."""
    return max(1, round(count * HELD_OUT))


def classify(training: Examples, test: Examples, generator: np.random.Generator) -> Classification:
    """Fit a multinomial logistic regression to training examples, and count its errors on others.

    Features need no scaling, as they are activations in [0, 1]. A random sixth of the training examples is held out,
    and the penalty with the fewest errors on it is chosen, the weakest of equals. The final fit uses all examples.

    Raises:
        InputError: if there are fewer than two classes, or too few examples to hold some out.

    >>> labels = np.arange(60) % 3
    >>> examples = Examples(np.eye(3, dtype=np.float32)[labels], labels)  # each class has a feature of its own
    >>> found = classify(examples, examples, np.random.default_rng(0))
    >>> found.classes, found.error
    (3, 0.0)
    """
    started = time.perf_counter()
    order = generator.permutation(len(training.labels))
    aside, kept = np.split(order, [held_out(len(order))])
    classes = len(np.unique(training.labels))
    if len(np.unique(training.labels[kept])) < 2:
        raise InputError(
            f"{len(training.labels)} training images of {classes} classes are too few to tell classes by; give more"
        )
    errors = {}
    for penalty in PENALTIES:
        found, _ = _wrong(_part(training, kept), _part(training, aside), penalty)
        errors[penalty] = found
    best = min(PENALTIES, key=lambda penalty: (errors[penalty], -penalty))
    error, settled = _wrong(training, test, best)
    said = () if settled else (f"the fit did not settle within {MAX_ITER} iterations",)
    return Classification(
        features=training.features.shape[1],
        classes=classes,
        trained=len(training.labels),
        tested=len(test.labels),
        error=error,
        standard_error=math.sqrt(error * (1 - error) / len(test.labels)),
        validation_error=errors[best],
        penalty=best,
        warnings=said,
        seconds=time.perf_counter() - started,
    )


def _part(examples: Examples, index: NDArray[np.intp]) -> Examples:
    return Examples(examples.features[index], examples.labels[index])


def _wrong(training: Examples, test: Examples, penalty: float) -> tuple[float, bool]:
    """Share of wrongly classified test examples, and whether the fit converged."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression(C=penalty, max_iter=MAX_ITER)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(training.features, training.labels)
    wrong = float(np.mean(model.predict(test.features) != test.labels))
    return wrong, int(model.n_iter_.max()) < MAX_ITER
