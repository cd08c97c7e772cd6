"""Restricted Boltzmann machines for scikit-learn: `restore.sklearn.BoltzmannMachine`.

Needs the extra `restore-prior[sklearn]`. It uses the learners of `restore train`.
"""

from __future__ import annotations

import warnings
from numbers import Integral, Real
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from restore.console import progress
from restore.errors import RestoreWarning, UsageError, extra, require
from restore.evaluation.likelihoods.ais import estimate, log_weights
from restore.evaluation.likelihoods.exact import exact_log_partition, unnormalised

try:
    import torch
    from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
    from sklearn.utils import Tags, check_random_state
    from sklearn.utils.validation import check_is_fitted, check_scalar, validate_data
except ModuleNotFoundError as fault:
    message = f"restore.sklearn: needs {fault.name}; {extra('sklearn')}"
    raise ModuleNotFoundError(message, name=fault.name) from fault

from restore.learning.course import CleanImages, pixel_means
from restore.learning.finish import own_modes
from restore.learning.learners import LEARNERS
from restore.learning.learners import METHODS as OFFERED
from restore.learning.recipe.plan import usual_inference
from restore.learning.recipe.recipe import Data, PriorShape, Recipe, Training
from restore.learning.recipe.spec import Optimizer
from restore.learning.run.outcome import description_of
from restore.learning.run.session import Session
from restore.learning.steps import Steps
from restore.priors import RBM
from restore.solvers.samplers.gibbs import gibbs_steps
from restore.zoo import TrainedPrior
from restore.zoo.inference import Inference

# The methods of `restore train` that learn RBMs by gradient steps, from data as they are.
RBM_METHODS = ("pcd", "cd", "tap")

# log Z is summed exactly if one layer has at most this number of units, which takes less than a second.
SUMMED = 16

# Otherwise it is annealed by this schedule, in this number of runs, for a second or two.
ANNEALING, ANNEALING_RUNS = "linear:1000", 100

# Training rows that are kept as starts of the chains of `sample`.
KEPT_ROWS = 100


class BoltzmannMachine(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """A restricted Boltzmann machine of binary units, in place of scikit-learn's `BernoulliRBM`.

    Rows are binary, or probabilities in [0, 1]; values outside are clipped, with a warning. Computed on the CPU.

    >>> import numpy as np
    >>> bars = np.repeat(np.eye(4), 50, axis=0)
    >>> model = BoltzmannMachine(n_components=4, n_iter=20, random_state=0).fit(bars)
    >>> model.transform(bars).shape, model.sample(3).shape
    ((200, 4), (3, 4))
    >>> bool(model.score(bars) > model.score(1 - bars))
    True

    Args:
        n_components: number of hidden units.
        method: "pcd" (persistent contrastive divergence, as `BernoulliRBM`), "cd" (with ten sweeps) or "tap" (maximum
            likelihood with log Z from TAP).
        learning_rate: the rate at the first step; it falls linearly to 0.
        batch_size: rows to a step.
        n_iter: passes over the rows.
        verbose: 1 to show the passes that are done, with the learner's own measures; 0 for silence.
        random_state: seed or generator of all randomness.

    Attributes:
        components_: weights, (n_components, n_features).
        intercept_hidden_, intercept_visible_: biases, (n_components,) and (n_features,).
        feature_means_: means of the training rows, kept inside (0, 1) by a pseudo-count, (n_features,).
        starts_: up to 100 training rows, where samples start.
    """

    def __init__(
        self,
        n_components: int = 256,
        *,
        method: str = "pcd",
        learning_rate: float = 0.1,
        batch_size: int = 10,
        n_iter: int = 10,
        verbose: int = 0,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.n_components = n_components
        self.method = method
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.n_iter = n_iter
        self.verbose = verbose
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: object = None) -> Self:
        """Learn from rows (n_samples, n_features), dense or sparse; y is ignored.

        Raises:
            ValueError: for rows or settings out of range.
            TrainingError: if training diverges.
        """
        rows = self._checked(X, reset=True)
        generator = check_random_state(self.random_state)
        images = torch.tensor(rows, dtype=torch.float32)
        # In memory, without checkpoints.
        name = type(self).__name__
        work = Steps(self._recipe(generator), CleanImages(images), Session(Path(name)))
        with torch.inference_mode(), progress(name, int(self.n_iter), bool(self.verbose)) as meter:
            work.begin()
            while not work.finished:
                if lap := work.advance():
                    measures = lap.progress.monitors.items()
                    meter(lap.progress.done, ", ".join(f"{measure} {value:.4g}" for measure, value in measures))
        machine = work.best().machine
        assert isinstance(machine, RBM)
        self.components_ = machine.weights.T.numpy().astype(rows.dtype)
        self.intercept_hidden_ = machine.hidden.parameters["bias"].numpy().astype(rows.dtype)
        self.intercept_visible_ = machine.visible.parameters["bias"].numpy().astype(rows.dtype)
        self.feature_means_ = pixel_means(images).numpy().astype(rows.dtype)
        self.starts_ = rows[generator.permutation(len(rows))[:KEPT_ROWS]]
        return self

    def transform(self, X: ArrayLike) -> NDArray[np.floating]:
        """P(h = 1 | v), exact, for rows (n_samples, n_features); shape (n_samples, n_components)."""
        check_is_fitted(self)
        rows = self._checked(X)
        return self._machine(rows.dtype).transform(torch.from_numpy(rows)).numpy()

    def score_samples(self, X: ArrayLike) -> NDArray[np.float64]:
        """Log-likelihood of rows (n_samples, n_features), in nats; shape (n_samples,).

        log Z is exact with at most 16 columns or hidden units. With more, it is by annealed importance sampling from
        the columns' means, with a seed of its own: the same machine always has the same log Z.
        """
        check_is_fitted(self)
        rows = torch.from_numpy(self._checked(X).astype(np.float64))
        machine = self._machine(np.float64)
        if min(self.components_.shape) <= SUMMED:
            log_z = exact_log_partition(machine, machine.visible.parameters["bias"])
        else:
            base = torch.logit(torch.from_numpy(self.feature_means_))
            result = estimate(log_weights(machine, ANNEALING, ANNEALING_RUNS, torch.Generator().manual_seed(0), base))
            if result.warning:
                warnings.warn(f"{type(self).__name__}: {result.warning}", RestoreWarning, stacklevel=2)
            log_z = result.log_partition
        return unnormalised(machine, rows).numpy() - log_z

    def score(self, X: ArrayLike, y: object = None) -> float:
        """Mean log-likelihood of rows in nats, see `score_samples`; y is ignored."""
        return float(self.score_samples(X).mean())

    def sample(self, n_samples: int = 1, sweeps: int = 1000) -> NDArray[np.float64]:
        """Draw binary rows (n_samples, n_features): ends of Gibbs chains that start at `starts_`."""
        check_is_fitted(self)
        seeds = check_random_state(self.random_state)
        chosen = torch.tensor(self.starts_[seeds.randint(len(self.starts_), size=n_samples)], dtype=torch.float32)
        drawn = torch.Generator().manual_seed(int(seeds.randint(np.iinfo(np.int32).max)))
        return gibbs_steps(self._machine(np.float32), chosen, sweeps, drawn).numpy().astype(np.float64)

    def to_prior(self, image_shape: tuple[int, int], name: str = "untitled") -> TrainedPrior:
        """The machine as a prior that restores images of shape (H, W); `restore.zoo.save` writes it to a folder.

        Raises:
            UsageError: if the shape has another number of pixels than a row.
        """
        check_is_fitted(self)
        if image_shape[0] * image_shape[1] != self.n_features_in_:
            raise UsageError(f"image_shape {tuple(image_shape)} does not fit rows of {self.n_features_in_} pixels")
        recipe = self._recipe(check_random_state(self.random_state), name)
        machine = self._machine(np.float32)
        starts = torch.tensor(self.starts_, dtype=torch.float32)
        draw = torch.Generator().manual_seed(recipe.seed)
        modes = own_modes(machine, starts, recipe.inference, draw)
        means = torch.tensor(self.feature_means_, dtype=torch.float32)
        header = description_of(recipe, image_shape, machine, recipe.inference, means)
        return TrainedPrior(header, machine, means, modes)

    def _recipe(self, generator: np.random.RandomState, name: str = "untitled") -> Recipe:
        """The recipe of `restore train` with these settings."""
        for setting in ("n_components", "batch_size", "n_iter"):
            check_scalar(getattr(self, setting), setting, Integral, min_val=1)
        check_scalar(self.learning_rate, "learning_rate", Real, min_val=0, include_boundaries="neither")
        require(self.method in RBM_METHODS, f"method must be one of {', '.join(RBM_METHODS)}, not {self.method!r}")
        offered = OFFERED[self.method]
        return Recipe(
            name=name,
            data=Data("rows"),
            prior=PriorShape(hidden=int(self.n_components)),
            method=offered.learner,
            learner=LEARNERS[offered.family][offered.learner].load()(**offered.settings),
            training=Training(int(self.n_iter), int(self.batch_size)),
            optimizer=Optimizer(rate=float(self.learning_rate)),
            inference=Inference(**usual_inference(int(self.n_components))),
            seed=int(generator.randint(np.iinfo(np.int32).max)),
            storage="float32",
        )

    def _machine(self, dtype: Any) -> RBM:
        arrays = (self.components_.T, self.intercept_visible_, self.intercept_hidden_)
        return RBM.binary(*(torch.from_numpy(np.ascontiguousarray(array, dtype)) for array in arrays))

    def _checked(self, X: ArrayLike, *, reset: bool = False) -> NDArray[np.floating]:
        """Rows as a dense array in [0, 1], in float64 or float32."""
        data = validate_data(self, X, accept_sparse="csr", dtype=(np.float64, np.float32), reset=reset)
        rows = data if isinstance(data, np.ndarray) else data.toarray()
        if rows.min() < 0 or rows.max() > 1:
            message = f"{type(self).__name__} takes values in [0, 1] and clips others; scale them, as MinMaxScaler does"
            warnings.warn(message, RestoreWarning, stacklevel=3)
        return np.ascontiguousarray(rows.clip(0, 1))

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
