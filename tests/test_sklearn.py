"""The scikit-learn estimator: its contract, its likelihood against enumeration, and what it learns."""

from __future__ import annotations

import itertools
import pickle
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from scipy.special import expit, logsumexp
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import estimator_checks_generator, parametrize_with_checks

from restore.sklearn import RBM_METHODS, BoltzmannMachine

# Every row is one of these with the same probability: log p = -log 4, far above that of independent columns.
PATTERNS = np.kron(np.eye(4), np.ones(2))


def patterns(count: int = 200) -> np.ndarray:
    return PATTERNS[np.arange(count) % len(PATTERNS)]


def quick(**settings: Any) -> BoltzmannMachine:
    return BoltzmannMachine(**{"n_components": 5, "n_iter": 2, "random_state": 0} | settings)


def states(columns: int) -> np.ndarray:
    """All binary rows."""
    return np.array(list(itertools.product([0.0, 1.0], repeat=columns)))


def with_weights(columns: int, hidden: int, scale: float) -> BoltzmannMachine:
    """A fitted machine whose parameters are replaced by random ones."""
    rng = np.random.default_rng(columns + hidden)
    model = quick(n_components=hidden).fit(rng.integers(0, 2, (50, columns)))
    model.components_ = rng.normal(0, scale, (hidden, columns))
    model.intercept_hidden_, model.intercept_visible_ = rng.normal(0, scale, hidden), rng.normal(0, scale, columns)
    return model


def enumerated(model: BoltzmannMachine, rows: np.ndarray) -> np.ndarray:
    """log p of binary rows, summed over every state of both layers with numpy alone."""
    hidden = states(len(model.components_))
    weights, above, below = model.components_, model.intercept_hidden_, model.intercept_visible_
    # log p(h) up to a constant, the columns summed out; then log p(v, h) up to the same.
    log_z = logsumexp(hidden @ above + np.logaddexp(0, hidden @ weights + below).sum(1))
    joint = rows @ weights.T @ hidden.T + (rows @ below)[:, None] + hidden @ above
    return logsumexp(joint, 1) - log_z


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore:BoltzmannMachine takes values in:UserWarning")
@parametrize_with_checks([quick(n_components=2, n_iter=1)])
def test_it_keeps_the_contract_of_scikit_learn(estimator: BoltzmannMachine, check: Any) -> None:
    check(estimator)


# The most telling checks; all others are in the test above.
QUICK = {
    "check_estimator_cloneable",
    "check_no_attributes_set_in_init",
    "check_estimators_pickle",
    "check_fit_idempotent",
    "check_dict_unchanged",
    "check_estimator_sparse_array",
    "check_transformer_preserve_dtypes",
}


@pytest.mark.filterwarnings("ignore:BoltzmannMachine takes values in:UserWarning")
@pytest.mark.parametrize("name", sorted(QUICK))
def test_it_is_an_estimator(name: str) -> None:
    checks = estimator_checks_generator(quick(n_components=2, n_iter=1))
    chosen = [(model, check) for model, check in checks if check.func.__name__ == name]
    assert chosen
    for model, check in chosen:
        check(model)


def test_clones_and_pickles() -> None:
    model = quick().fit(patterns())
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copy.transform(patterns()), model.transform(patterns()))
    np.testing.assert_array_equal(clone(model).fit(patterns()).components_, model.components_)
    assert copy.score(patterns()) == model.score(patterns())
    assert list(model.get_feature_names_out()) == [f"boltzmannmachine{index}" for index in range(5)]


def test_features_are_exact() -> None:
    model, rows = with_weights(6, 3, 1.0), states(6)
    np.testing.assert_allclose(model.transform(rows), expit(rows @ model.components_.T + model.intercept_hidden_))
    np.testing.assert_array_equal(model.transform(csr_matrix(rows)), model.transform(rows))


@pytest.mark.parametrize(("columns", "hidden"), [(6, 3), (3, 6)])
def test_a_small_machine_s_likelihood_is_exact(columns: int, hidden: int) -> None:
    model, rows = with_weights(columns, hidden, 1.5), states(columns)
    scores = model.score_samples(rows)
    np.testing.assert_allclose(scores, enumerated(model, rows), atol=1e-9)
    assert logsumexp(scores) == pytest.approx(0, abs=1e-9)  # probabilities of all rows sum to 1


@pytest.mark.thorough
@pytest.mark.parametrize("method", RBM_METHODS)
def test_it_learns_a_distribution(method: str) -> None:
    """No model is better than the truth, log(1/4) a row; independent columns, where training starts, reach -4.50."""
    model = quick(n_components=8, method=method, n_iter=30, learning_rate=0.2).fit(patterns())
    start, truth = 8 * (0.25 * np.log(0.25) + 0.75 * np.log(0.75)), np.log(0.25)
    assert (start + truth) / 2 < model.score(patterns()) <= truth
    drawn = model.sample(400)
    assert drawn.shape == (400, 8) and set(np.unique(drawn)) == {0.0, 1.0}
    # Samples of independent columns are one of the four patterns in 4 of 100 cases.
    assert np.mean([(row == PATTERNS).all(1).any() for row in drawn]) > 0.5


def test_other_values_are_clipped_with_a_warning() -> None:
    model = quick().fit(patterns())
    with pytest.warns(UserWarning):
        result = model.transform(3 * patterns() - 1)
    np.testing.assert_array_equal(result, model.transform(patterns()))


@pytest.mark.parametrize(
    ("setting", "value"),
    [("n_components", 0), ("batch_size", 0), ("n_iter", 0), ("learning_rate", 0.0), ("method", "fw")],
)
def test_wrong_settings_are_named(setting: str, value: Any) -> None:
    with pytest.raises(ValueError) as fault:
        quick(**{setting: value}).fit(patterns())
    assert setting in str(fault.value)


def test_what_is_not_fitted_says_so() -> None:
    model = quick()
    for call in (model.sample, lambda: model.score_samples(patterns()), lambda: model.to_prior((2, 4))):
        with pytest.raises(NotFittedError):
            call()
