"""The Python interface: denoise, complete, load, train and list_models."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from restore import zoo
from restore.description import Solver
from restore.engines import Choice, open_engine, require_torch
from restore.kinds import Collection, in_kind, unpack, unpack_masks
from restore.marginals import Marginals
from restore.restoration import Fit, PictureEngine, check_sigma, restore_pictures, whole

if TYPE_CHECKING:
    from restore.learning.recipe import Recipe

# Standard deviations of noise by which a float of a noisy image may lie outside [0, 1].
FARTHEST = 6.0


@dataclass(frozen=True)
class Restorer:
    """A loaded prior; `restore.load` makes it once, so that many calls need not load it again."""

    engine: PictureEngine

    @property
    def description(self) -> zoo.Description:
        """Name, image shape, number of hidden units, how it restores, and what damage it has learnt to undo."""
        return self.engine.description

    def denoise(
        self,
        image: Any,
        p: float | np.ndarray | None = None,
        *,
        sigma: float | None = None,
        fit: Fit = "error",
        invert: bool = False,
        soft: bool = False,
        channel_axis: int | None = None,
        return_solution: bool = False,
        solver: Solver | None = None,
    ) -> Any:
        """As `restore.denoise`, with this prior."""
        collection = unpack(image, channel_axis, _beyond(sigma))
        return self._solved_by(solver)._restored(collection, p, sigma, None, fit, invert, soft, return_solution)

    def complete(
        self,
        image: Any,
        mask: Any,
        p: float | np.ndarray | None = None,
        *,
        sigma: float | None = None,
        fit: Fit = "error",
        invert: bool = False,
        soft: bool = False,
        channel_axis: int | None = None,
        return_solution: bool = False,
        solver: Solver | None = None,
    ) -> Any:
        """As `restore.complete`, with this prior."""
        collection = unpack(image, channel_axis, _beyond(sigma))
        return self._solved_by(solver)._restored(
            collection, p, sigma, _masks(mask, collection), fit, invert, soft, return_solution
        )

    def transform(self, images: Any, *, invert: bool = False, channel_axis: int | None = None) -> Any:
        """Features of images for other methods, such as a classifier: the expected hidden units given each image.

        Args:
            images: as in `restore.denoise`, of the prior's size.
            invert, channel_axis: as in `restore.denoise`.

        Returns:
            E[h | v], shape (N, hidden units), float32 in [0, 1], also for a single image: a tensor for tensors, else an
            array.

        Raises:
            ModelError: if an image has another size; if the prior is a conditional one, or a graph by itself.
        """
        grey = whole([item.pixels for item in unpack(images, channel_axis).items], self.description)
        return in_kind(self.engine.features(1 - grey if invert else grey), images)

    def _solved_by(self, solver: Solver | None) -> Restorer:
        return self if solver is None else Restorer(self.engine.with_solver(solver))

    def _restored(
        self,
        collection: Collection,
        p: float | np.ndarray | None,
        sigma: float | None,
        hidden: list[np.ndarray] | None,
        fit: Fit,
        invert: bool,
        soft: bool,
        return_solution: bool,
    ) -> Any:
        pixels = [item.pixels for item in collection.items]
        restored, marginals = restore_pictures(
            self.engine, pixels, p=p, hidden=hidden, fit=fit, invert=invert, sigma=sigma
        )
        found = [
            item.back(part.means if soft else part.estimate, part.replaced)
            for item, part in zip(collection.items, restored, strict=True)
        ]
        together = collection.together(found)
        return (together, marginals) if return_solution else together


def load(model: str | Path, device: str = "auto", max_memory: int | None = None, engine: Choice = "auto") -> Restorer:
    """Load a prior by its name or the path of its folder.

    Args:
        model: see `list_models` for the names; or a file of `restore export`.
        device: "auto", "cpu" or "cuda[:N]".
        max_memory: bytes that the messages of belief propagation, or the matrices of adaptive TAP, may take, by default
            2 GiB; larger batches are solved in parts.
        engine: "onnx", "torch", or "auto" for the one that is sooner done with a few images; for many at a time a
            conditional prior is faster in "torch". See `restore.engines.open_engine`.

    Raises:
        ModelError: if there is no such model, or its file is damaged.
        UsageError: if there is no such device or engine, or it lacks a library.
    """
    return Restorer(open_engine(str(model), engine, device, max_memory))


def list_models() -> list[str]:
    """Names of the published priors and of those trained by this user."""
    return [folder.name for folder in zoo.folders()]


def denoise(
    image: Any,
    model: str | Restorer = "auto",
    p: float | np.ndarray | None = None,
    *,
    sigma: float | None = None,
    fit: Fit = "error",
    invert: bool = False,
    soft: bool = False,
    channel_axis: int | None = None,
    return_solution: bool = False,
    device: str = "auto",
    engine: Choice = "auto",
    solver: Solver | None = None,
) -> Any:
    """Remove flipped pixels from a binary image, noise from a grey one, or damage that a prior has learnt to undo.

    Args:
        image: a path, a PIL image, an (H, W) array or tensor (uint8, uint16, bool, or float in [0, 1]), an (N, H, W)
            batch, or a list of them. A pixel counts as white above the prior's threshold (half of white for MNIST).
        model: name or path of a prior, a loaded `Restorer`, or "auto" for the one that knows images of this size and
            any flips; it never picks a conditional one.
        p: probability that a pixel was inverted, in [0, 1]; or one per pixel, with the prior's shape. All priors need
            it but conditional ones, which take none: they have learnt what to undo (`Restorer.description.task`). For
            priors of grey images it is the probability that a pixel shows black or white instead of itself.
        sigma: for priors of grey images, the standard deviation of Gaussian noise, where black is 0 and white is 1.
            Floats may then lie up to 6 sigma outside [0, 1]; noise that was cut off there is undone less well.
        fit: "resize" brings images of another size to the prior's and back; "error" refuses them.
        invert: dark strokes on a light ground.
        soft: return posterior probabilities as grey values instead of black and white.
        channel_axis: axis of colour channels, which must be equal.
        return_solution: return (image, `Marginals`): marginals, iterations and more, at the prior's size.
        device, engine: as in `load`; for a model given by name.
        solver: what to solve the prior with in place of its own: "tap", "mean_field", "relaxed_bp", "adaptive_tap",
            "sum_product", "max_product" or "mixed_product". Another than its own takes torch; conditional priors keep
            theirs.

    Returns:
        What came in: the same kind, type and shape. A path gives a PIL image.

    Raises:
        RestoreError: see `restore.errors`; all messages name the fault and the remedy.

    Source: TAP machine, sec. VII.D; CRBM-BP, sec. 6.
    """
    collection = unpack(image, channel_axis, _beyond(sigma))
    chosen = _chosen(model, collection, device, engine, sigma is not None, solver)
    return chosen._restored(collection, p, sigma, None, fit, invert, soft, return_solution)


def complete(
    image: Any,
    mask: Any,
    model: str | Restorer = "auto",
    p: float | np.ndarray | None = None,
    *,
    sigma: float | None = None,
    fit: Fit = "error",
    invert: bool = False,
    soft: bool = False,
    channel_axis: int | None = None,
    return_solution: bool = False,
    device: str = "auto",
    engine: Choice = "auto",
    solver: Solver | None = None,
) -> Any:
    """Fill the pixels under a mask.

    Args:
        image: as in `denoise`.
        mask: True or white = to fill; of the image's size, one for each image or one for all, of any kind of image.
        model: as in `denoise`, but no conditional prior: those see a damaged image and nothing else.
        p, sigma: damage of the *visible* pixels, as in `denoise`. Without them these are returned bit for bit.
        fit, invert, soft, channel_axis, return_solution, device, engine, solver: as in `denoise`.

    Returns:
        What came in: the same kind, type and shape. A path gives a PIL image.

    Raises:
        RestoreError: see `restore.errors`.
    """
    collection = unpack(image, channel_axis, _beyond(sigma))
    chosen = _chosen(model, collection, device, engine, sigma is not None, solver)
    return chosen._restored(collection, p, sigma, _masks(mask, collection), fit, invert, soft, return_solution)


def train(
    images: Any,
    *,
    name: str = "untitled",
    hidden: int | Literal["auto"] = 500,
    epochs: int = 30,
    threshold: int = 127,
    seed: int = 0,
    task: str = "",
    run: str | Path | None = None,
    resume: bool = False,
    device: str = "auto",
    **tables: dict[str, Any],
) -> Restorer:
    """Train a binary RBM on images by TAP maximum likelihood, or a conditional one by belief propagation.

    Args:
        images: images of one size, of any kind `denoise` takes.
        name: what to call the prior.
        hidden: number of hidden units; "auto" grows as many as it takes (FW, Alg. 1), judged by a tenth of the images,
            and goes on from there.
        epochs: passes over the images; no meaning to a learner that works in rounds.
        threshold: grey level, 0 to 255, above which a pixel is 1.
        seed: of everything random.
        task: for a conditional prior, which is not told of the damage: what it learns to undo, such as "flip:0.1" or
            "patch:8". A tenth of the images is held out, and the prior that restores those best is returned.
        run: folder for checkpoints and log; by default a temporary one, so that nothing can be resumed.
        resume: go on from the newest checkpoint in `run`.
        device: "auto", "cpu" or "cuda[:N]".
        tables: more tables of a recipe (`prior`, `learner`, `growth`, `optimizer`, `training`, `inference`), as in
            training/*.toml; what they say goes before the defaults here.

    Returns:
        The prior, ready to restore; `restore.zoo.save` keeps it.

    Raises:
        UsageError: for settings out of range, or if torch is not installed.
        TrainingError: if the images have different sizes, or training fails.

    Source: TAP machine, Alg. 2; CRBM-BP, sec. 4.
    """
    require_torch("restore.train")
    from dataclasses import asdict

    from restore.data import Dataset, as_pixels, varied
    from restore.data.dataset import checked
    from restore.devices import pick_device
    from restore.engine import Engine
    from restore.errors import TrainingError
    from restore.learning.pipeline import train as train_prior

    pixels = [item.pixels for item in unpack(images).items]
    data_table = {"source": name, "threshold": threshold}
    if task:
        data_table |= {"task": task}
    if task or hidden == "auto":
        data_table |= {"validation": max(int(hidden == "auto"), len(pixels) // 10)}
    recipe = _recipe(name, hidden, epochs, seed, data_table, tables)
    if len({values.shape for values in pixels}) > 1:
        raise TrainingError("the images have different sizes; bring them to one size first")
    grey = np.rint(np.stack(pixels) * 255).astype(np.uint8)
    dataset: Dataset = checked(grey, name, "train").first(recipe.data.count)
    import torch

    learnt_from = varied(dataset.images, **asdict(recipe.data.variations), seed=seed)
    pixels_to_learn = as_pixels(learnt_from, recipe.manner, threshold, seed)
    data = torch.from_numpy(pixels_to_learn).to(pick_device(device))
    shape = (grey.shape[1], grey.shape[2])
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary if run is None else run)
        trained = train_prior(recipe, data, shape, folder, fingerprint=dataset.fingerprint, resume=resume)
    return Restorer(Engine.of(trained.prior, pick_device(device)))


def _recipe(
    name: str,
    hidden: int | Literal["auto"],
    epochs: int,
    seed: int,
    data: dict[str, Any],
    tables: dict[str, dict[str, Any]],
) -> Recipe:
    from restore.learning.recipe import IN_ROUNDS, parse

    defaults: dict[str, dict[str, Any]] = {"data": data, "prior": {"hidden": hidden}, "training": {"epochs": epochs}}
    if data.get("task"):
        # As the published conditional priors were trained.
        defaults["prior"] |= {"family": "crbm", "weight_scale": 0.05}
        defaults["learner"] = {"method": "belief_propagation"}
        defaults["optimizer"] = {"rate": 0.03, "momentum": 0.9, "weight_decay": 0.0, "average": 0.999}
        defaults["training"] |= {"batch": 40}
    else:
        defaults["learner"] = {"method": "tap", "starts": "redrawn"}
    if "method" in tables.get("learner", {}):
        # The settings of one method mean nothing to another.
        del defaults["learner"]
        if tables["learner"]["method"] in IN_ROUNDS:
            del defaults["training"]
    if tables.get("prior", {}).get("family") == "fvbm":
        # It has no hidden units.
        defaults["prior"] = {}
    merged = {key: defaults.get(key, {}) | tables.get(key, {}) for key in defaults.keys() | tables.keys()}
    return parse({"name": name, "seed": seed} | merged)


def _chosen(
    model: str | Restorer, collection: Collection, device: str, engine: Choice, grey: bool, solver: Solver | None
) -> Restorer:
    if isinstance(model, Restorer):
        return model._solved_by(solver)
    if model == "auto":
        model = zoo.auto(collection.items[0].pixels.shape, grey)
    return Restorer(open_engine(str(model), engine, device, images=len(collection.items), solver=solver))


def _beyond(sigma: float | None) -> float:
    """How far Gaussian noise may carry floats out of [0, 1]."""
    if sigma is None:
        return 0.0
    check_sigma(sigma)
    return FARTHEST * sigma


def _masks(masks: Any, collection: Collection) -> list[np.ndarray]:
    return unpack_masks(masks, [(item.pixels.shape[0], item.pixels.shape[1]) for item in collection.items])


__all__ = ["Marginals", "Restorer", "complete", "denoise", "list_models", "load", "train"]
