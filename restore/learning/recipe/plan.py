"""Plan a recipe: turn facts about images, and options, into the tables of an ordinary recipe."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from restore.errors import require
from restore.families import Spec
from restore.learning.learners import LEARNERS, METHODS
from restore.learning.options import TrainOptions
from restore.learning.recipe.spec import JUDGED
from restore.learning.rules.frank_wolfe import FrankWolfe

Tables = dict[str, dict[str, Any]]

# The order of the tables in a recipe.
ORDER = ("data", "prior", "growth", "learner", "optimizer", "training", "inference")
# Share of black pixels from which the pixels' units may be exactly black.
MOSTLY_BLACK = 0.3
# Steps of a learner, whatever the number of images.
STEPS = 8000
CONDITIONAL_STEPS = 3000
CONVOLUTIONAL_STEPS = 10_000
# How often a convolutional prior is judged, which takes longer than for others.
SELDOM = 12
# The damage by which an unconditional prior is judged during training.
WATCHED = {"binary": "flip:0.1", "grey": "noise:0.2"}
# Images with at most this many pixels get as many hidden units as pixels.
SMALL = 200
# Features of a convolutional prior, and their side in pixels.
FEATURES = 12
KERNEL = 7
# The least side of images for one, in pixels.
LEAST_SIDE = 5
# Flip probabilities that a convolutional prior learns to undo.
LEARNT_FLIPS = (0.05, 0.1, 0.15, 0.2, 0.3)
# Pixels of its mini-batches.
AT_ONCE = 8000
# Pixels in all, some 3,000 images of 28x28, beyond which machines of whole images learn more than convolutional ones.
MANY = 2_500_000
# The most hidden units of conditional priors, unless the number is given.
CONDITIONAL_UNITS = 256
# How many modes binary priors carry, from how many starts they restore, and when from one alone.
STARTS: Mapping[str, Any] = {"modes": 500, "starts": 6, "clear": 0.3}
# The most variations of each image if there are few.
MOST_COPIES = 20
# Their largest shift is the smaller side over this number.
PIXELS_PER_SHIFT = 7
# Variations in all that the principal components of grey images are found from; lighting varies.
VARIED = 40_000
# With fewer images a prior is held back in proportion, at most by this factor: it knows less about such images.
PLENTY = 5000
MOST_HELD_BACK = 20.0


@dataclass(frozen=True)
class Facts:
    """What a plan must know about training images.

    Attributes:
        images, image_shape: their number, and (H, W).
        levels, threshold, patches: as in `restore.data.Gathered`.
        black: the share of pixels that are exactly black.
    """

    images: int
    image_shape: tuple[int, int]
    levels: Literal["binary", "grey"]
    threshold: int = 127
    black: float = 0.0
    patches: int = 0

    @property
    def pixels(self) -> int:
        return self.image_shape[0] * self.image_shape[1]

    @property
    def grey(self) -> bool:
        return self.levels == "grey"

    @property
    def held_back(self) -> float:
        """The factor for penalties on weights; above 1 if there are few images."""
        return min(MOST_HELD_BACK, max(1.0, PLENTY / self.images))


def written(tables: Mapping[str, Any]) -> str:
    import tomli_w

    return tomli_w.dumps(tables)


def plan(name: str, source: str, facts: Facts, options: TrainOptions) -> dict[str, Any]:
    """Make the tables of the recipe that fits the images, called `source` in it, and what a user asks for.

    Raises:
        UsageError: if the options do not suit the images.

    >>> made = plan("mine", "./images", Facts(1000, (28, 28), "binary"), TrainOptions(method="tap"))
    >>> made["prior"], made["learner"], made["training"]["epochs"]
    ({'hidden': 261}, {'method': 'tap', 'starts': 'redrawn'}, 80)
    """
    options.check_length()
    method = _method(facts, options)
    tables = _tables(method, facts, options)
    data: dict[str, Any] = {"source": source} | ({} if facts.grey else {"threshold": facts.threshold})
    data |= {"task": options.task} if options.task else {}
    # The recipe states all of it, so that it does not change with the defaults.
    data["gathering"] = {"levels": facts.levels, "shape": list(facts.image_shape)}
    data["gathering"] |= {"patches": facts.patches, "held_out": options.gathering.held_out}
    tables["data"] = data | tables.get("data", {})
    training = tables.setdefault("training", {})
    if options.minutes is not None:
        # The number of epochs stays as the most: with more a prior restores worse, not better.
        training["minutes"] = float(options.minutes)
    if options.epochs is not None:
        # Judged and kept as often as with the usual number of epochs. A learner without epochs refuses them itself.
        for key in {"watch_every", "checkpoint_every"} & training.keys():
            training[key] = min(training[key], _every(options.epochs))
        training["epochs"] = options.epochs
    if "method" in options.tables.get("learner", {}):
        # Settings of one method mean nothing to another.
        tables["learner"] = {}
    for key, table in options.tables.items():
        tables[key] = tables.get(key, {}) | dict(table)
    # In float16 principal components would not cancel where images do not vary.
    head = {"name": name, "seed": options.seed or 0} | ({"storage": "float32"} if method == "principal" else {})
    return head | {key: tables[key] for key in (*ORDER, *sorted(tables.keys() - {*ORDER})) if tables.get(key)}


def _method(facts: Facts, options: TrainOptions) -> str:
    method, learner = options.method or "auto", options.tables.get("learner", {}).get("method", "")
    if method == "auto":
        # If the user names a learner, the rest of the plan must suit it.
        fitting = {name: known for name, known in METHODS.items() if known.learnt == bool(options.task)}
        by_learner = {known.learner: name for name, known in fitting.items()}
        of_family = [name for name, known in fitting.items() if learner in LEARNERS[known.family]]
        usual = next(iter(fitting)) if options.task else "auto"
        method = by_learner.get(learner) or (of_family[0] if len(of_family) == 1 else usual)
    if method == "auto" and facts.grey:
        by_steps = options.epochs is not None or "optimizer" in options.tables
        method = "tap" if facts.black >= MOSTLY_BLACK or by_steps else "principal"
    elif method == "auto":
        few = min(facts.image_shape) >= LEAST_SIDE and facts.images * facts.pixels <= MANY
        method = "convolutional" if few and options.hidden is None and not options.tables else "tap"
    fit = [name for name, known in METHODS.items() if facts.levels in known.levels]
    other = "binary" if facts.grey else "grey"
    require(
        method in fit,
        f"{method} does not learn from {facts.levels} images; take {fit[0]}, or levels {other}",
    )
    return method


def _tables(method: str, facts: Facts, options: TrainOptions) -> Tables:
    known = METHODS[method]
    if known.learnt:
        return _conditional(method, facts, options)
    if method == "convolutional":
        made = _convolutional(facts, options)
    elif method == "fw":
        made = {"prior": {"hidden": options.hidden or "auto"}, "learner": _growth(facts)}
        made["inference"] = usual_inference(None)
    elif method == "fvbm":
        require(options.hidden is None, "fvbm has no hidden units; leave hidden out")
        made = {"prior": {}, "learner": {"l2": 0.001 * facts.held_back}}
    elif method == "principal":
        made = _principal(facts, options)
    else:
        made = (_grey if facts.grey else _binary)(facts, options)
    learner = {"method": known.learner, **known.settings} | made.get("learner", {})
    family = {} if known.family == Spec.family else {"family": known.family}
    return made | {"learner": learner, "prior": family | made["prior"]}


def _usual(facts: Facts) -> int:
    """The usual number of hidden units: a third of the pixels, all in small images; at most a fourth of the images."""
    return max(8, min(500, max(facts.pixels // 3, min(facts.pixels, SMALL)), facts.images // 4))


def _filled(facts: Facts, options: TrainOptions, most: int) -> dict[str, int]:
    """How many hidden units to fill up to if time ends growth; none if the user limits the growth."""
    limited = "units" in options.tables.get("growth", {})
    return {"filled": 0 if limited else min(most, facts.pixels, max(8, facts.images // 4))}


def _passes(facts: Facts, steps: int, largest: int) -> tuple[int, int]:
    """Number of epochs and size of mini-batches for a number of steps."""
    batch = max(5, min(largest, facts.images // 10))
    return max(10, round(steps * batch / facts.images)), batch


def _every(epochs: int, judged: int = JUDGED) -> int:
    """How many epochs lie between two that are judged, or kept."""
    return max(1, epochs // judged)


def _training(facts: Facts, epochs: int, batch: int, judged: int = JUDGED) -> dict[str, Any]:
    every = {key: _every(epochs, judged) for key in ("watch_every", "checkpoint_every")}
    return {"epochs": epochs, "batch": batch, "watch": WATCHED[facts.levels]} | every


def _growth(facts: Facts) -> dict[str, Any]:
    return {"penalty": 0.003 * facts.held_back}


def usual_inference(hidden: int | Literal["auto"] | None) -> dict[str, Any]:
    """Settings of TAP; with few hidden units couplings are strong, and it needs damping."""
    strong = isinstance(hidden, int) and hidden <= 100
    return {**STARTS} | ({"damping": 0.7, "max_iter": 300} if strong else {})


def _binary(facts: Facts, options: TrainOptions) -> Tables:
    """Tables for binary images; a few images are also learnt shifted."""
    copies = min(MOST_COPIES, -(-PLENTY // facts.images))
    # Taken before copies are counted, which tell nothing new.
    growth, held_back = _growth(facts), facts.held_back
    moved: Tables = {}
    if copies > 1:
        shift = max(1, min(facts.image_shape) // PIXELS_PER_SHIFT)
        moved = {"data": {"variations": {"copies": copies, "shift": shift}}}
        facts = replace(facts, images=copies * facts.images)
    hidden = options.hidden or _usual(facts)
    # With more units than usual, variations of few images would be learnt too well.
    most = _usual(facts) if copies > 1 else FrankWolfe.units
    return moved | {
        "prior": {"hidden": hidden} | (_filled(facts, options, most) if hidden == "auto" else {}),
        "growth": growth if hidden == "auto" else {},
        "optimizer": {"rate": 0.05, "momentum": 0.5, "weight_decay": 1e-4 * held_back},
        "training": _training(facts, *_passes(facts, STEPS, 50)),
        "inference": usual_inference(hidden),
    }


def _grey(facts: Facts, options: TrainOptions) -> Tables:
    """Tables for grey images, as for the published priors of digits, which are mostly black, and of faces."""
    dark = facts.black >= MOSTLY_BLACK
    visible = "truncated-gauss-bernoulli" if dark else "truncated-gaussian"
    return {
        "prior": {"hidden": options.hidden or _usual(facts), "visible": visible},
        "learner": {"grey_unit": 0.2 if dark else 0.1},
        "optimizer": {"rate": 0.03 if dark else 0.01, "average": 0.999, "weight_decay": 1e-4 * facts.held_back},
        "training": _training(facts, *_passes(facts, STEPS, 50)),
        "inference": {"max_iter": 200 if dark else 500, "tol": 1e-3},
    }


def _convolutional(facts: Facts, options: TrainOptions) -> Tables:
    """Tables for binary images: few parameters, learnt by restoring, which a hundred images suffice for."""
    require(options.hidden != "auto", "hidden of convolutional is a number of features; give one, or leave it out")
    batch = max(2, min(facts.images, round(AT_ONCE / facts.pixels)))
    epochs = max(1, round(CONVOLUTIONAL_STEPS * batch / facts.images))
    tasks = [f"flip:{p}" for p in LEARNT_FLIPS]
    prior = {"hidden": options.hidden or FEATURES, "kernel": min(KERNEL, *facts.image_shape), "weight_scale": 0.05}
    return {
        "prior": prior,
        "learner": {"tasks": tasks, "iterations": 8, "damping": 0.1, "unrolled": 4},
        "optimizer": {"name": "adam", "rate": 0.02, "momentum": 0.9, "weight_decay": 0.0, "average": 0.99},
        "training": _training(facts, epochs, batch, SELDOM),
        "inference": {"max_iter": 40, "tol": 1e-4, "damping": 0.1},
    }


def _principal(facts: Facts, options: TrainOptions) -> Tables:
    """Tables for principal components of grey images, shifted by a pixel and with varied contrast.

    The number of components that makes held-out images likeliest would leave solvers almost no variance to work with.
    """
    hidden = options.hidden or max(1, min(7 * facts.pixels // 10, facts.images // 4))
    copies = max(1, min(MOST_COPIES, VARIED // facts.images))
    return {
        "data": {"variations": {"copies": copies, "shift": 1, "contrast": [0.5, 1.1]}},
        "prior": {"hidden": hidden, "visible": "truncated-gaussian", "hidden_type": "gaussian"},
    }


def _conditional(method: str, facts: Facts, options: TrainOptions) -> Tables:
    known = METHODS[method]
    rate, scale = known.rate, known.scale
    # Weights that stay 0 leave hidden units without effect.
    alone = not scale
    require(not alone or options.hidden in (None, 1), f"{method} uses no hidden unit; leave hidden out")
    epochs, batch = _passes(facts, CONDITIONAL_STEPS, 40)
    hidden = 1 if alone else options.hidden or min(CONDITIONAL_UNITS, _usual(facts))
    filled = _filled(facts, options, CONDITIONAL_UNITS) if hidden == "auto" else {}
    # The iteration limit grows by one per epoch; with very many epochs it is fixed instead.
    limits = {"iterations": 25, "growth": 0} if epochs > 30 and not alone else {}
    decay = 1e-4 * facts.held_back if facts.held_back > 1 else 0.0
    return {
        "prior": {"family": known.family, "hidden": hidden, "weight_scale": scale} | filled,
        "growth": _growth(facts) if hidden == "auto" else {},
        "learner": {"method": known.learner} | limits,
        "optimizer": {"rate": rate, "momentum": 0.9, "weight_decay": decay, "average": 0.999},
        "training": {"epochs": epochs, "batch": batch, "checkpoint_every": _every(epochs)},
    }
