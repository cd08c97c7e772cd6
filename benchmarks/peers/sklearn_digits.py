"""`restore.sklearn.BoltzmannMachine` against scikit-learn's `BernoulliRBM` on the 8x8 digits, in the same time.

    python benchmarks/peers/sklearn_digits.py [--repeats 3]

Half of the digits are learnt from. The exact log-likelihood of the others is that of binary digits under 16 hidden
units, the accuracy that of a logistic regression on 100 features of grey ones. `BernoulliRBM` has as many passes as our
ten take processor time; both rates are tried at the same values.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from statistics import mean, stdev
from typing import Any

import numpy as np
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.neural_network import BernoulliRBM
from threadpoolctl import threadpool_limits

from benchmarks.measures.script import command_line, head, row
from benchmarks.measures.timing import on_processors
from restore.sklearn import BoltzmannMachine

RATES = (0.1, 0.2)
PASSES, UNITS, FEATURES = 10, 16, 100

Made = Callable[[int, int, int], Any]


def seconds(fit: Callable[[], object]) -> float:
    """Processor time, so that other work on the machine counts little."""
    started = time.process_time()
    fit()
    return time.process_time() - started


def likelihood(fitted: Any, rows: np.ndarray) -> float:
    """Exact mean log-likelihood of binary rows under a fitted machine of either library."""
    model = BoltzmannMachine(UNITS, n_iter=1).fit(rows[:10])
    for name in ("components_", "intercept_hidden_", "intercept_visible_"):
        setattr(model, name, np.asarray(getattr(fitted, name)))
    return model.score(rows)


def measured(make: Made, passes: int, seed: int) -> tuple[float, float, float]:
    """Seconds of both fits, mean log-likelihood and accuracy; `make` takes units, passes and a seed."""
    rows, labels = load_digits(return_X_y=True)
    train, test, known, wanted = train_test_split(rows / 16, labels, test_size=0.5, random_state=seed)
    small, large = make(UNITS, passes, seed), make(FEATURES, passes, seed)
    spent = seconds(lambda: small.fit((train > 0.5).astype(float))) + seconds(lambda: large.fit(train))
    classifier = LogisticRegression(C=10, max_iter=100).fit(large.transform(train), known)
    found = classifier.score(large.transform(test), wanted)
    return spent, likelihood(small, (test > 0.5).astype(float)), found


def ours(method: str, rate: float) -> Made:
    return lambda units, passes, seed: BoltzmannMachine(
        units, method=method, learning_rate=rate, n_iter=passes, random_state=seed
    )


def theirs(rate: float) -> Made:
    return lambda units, passes, seed: BernoulliRBM(units, learning_rate=rate, n_iter=passes, random_state=seed)


def main() -> None:
    chosen = command_line(__doc__, repeats=3).parse_args()
    on_processors(chosen.threads)
    warnings.simplefilter("ignore", ConvergenceWarning)
    head("", "rate", "passes", "s", "log-likelihood, nats", "accuracy")

    def compared(name: str, rate: float, make: Made, passes: int) -> float:
        figures = [measured(make, passes, seed) for seed in range(chosen.repeats)]
        spent, likely, right = ([figure[place] for figure in figures] for place in range(3))
        spread = (stdev(likely), stdev(right)) if chosen.repeats > 1 else (0.0, 0.0)
        scores = f"{mean(likely):.2f} ± {spread[0]:.2f}", f"{mean(right):.1%} ± {spread[1]:.1%}"
        row(name, rate, passes, f"{mean(spent):.1f}", *scores)
        return mean(spent)

    with threadpool_limits(chosen.threads):
        spent = [compared("restore, PCD", rate, ours("pcd", rate), PASSES) for rate in RATES]
        compared("restore, TAP", RATES[-1], ours("tap", RATES[-1]), PASSES)
        for rate in RATES:
            at_ten = compared("BernoulliRBM", rate, theirs(rate), PASSES)
            compared("BernoulliRBM", rate, theirs(rate), round(PASSES * mean(spent) / at_ten))


if __name__ == "__main__":
    main()
