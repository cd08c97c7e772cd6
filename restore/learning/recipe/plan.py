"""Plan a recipe: turn facts about images, and options, into the tables of an ordinary recipe."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from importlib.resources import files
from typing import Any, Literal

from restore.data.gathering import Levels
from restore.errors import require
from restore.learning.learners import LEARNERS, METHODS
from restore.learning.options import TrainOptions
from restore.learning.recipe.spec import TIMES_JUDGED
from restore.learning.rules.frank_wolfe import FrankWolfe

Tables = dict[str, dict[str, Any]]

# The order of the tables in a recipe.
ORDER = ("data", "prior", "growth", "learner", "optimizer", "training", "inference")
# Keys of [training] that follow from the number of epochs.
EVERY = {"watch_every", "checkpoint_every"}
# Share of black pixels from which the pixels' units may be exactly black.
MOSTLY_BLACK = 0.3
# Images with at most this many pixels get as many hidden units as pixels.
SMALL_IMAGE = 200
# The least side of images for a convolutional prior, in pixels.
LEAST_SIDE = 5
# Binary priors: the number of modes, of starts to restore from, and the entropy up to which one is enough.
STARTS: Mapping[str, Any] = {"modes": 500, "starts": 6, "clear": 0.3}
# The fewest epochs, however many images there are.
FEWEST_EPOCHS = 10
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
    """Facts about training images that a plan depends on.

    Attributes:
        images, image_shape: their number, and (H, W).
        levels, threshold, patches: as in `restore.data.Gathered`.
        black: the share of pixels that are exactly black.
    """

    images: int
    image_shape: tuple[int, int]
    levels: Levels
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
        for key in EVERY & training.keys():
            training[key] = min(training[key], _every(options.epochs))
        training["epochs"] = options.epochs
    if "method" in options.tables.get("learner", {}):
        # Settings of one method mean nothing to another.
        tables["learner"] = {}
    for key, table in options.tables.items():
        tables[key] = tables.get(key, {}) | dict(table)
    # In float16 principal components would not cancel where images do not vary.
    head = {"name": name, "seed": options.seed or 0} | ({"storage": "float32"} if method == "principal" else {})
    order = (*ORDER, *sorted(tables.keys() - {*ORDER}))
    return head | {key: tables[key] for key in order if tables.get(key)}


def _method(facts: Facts, options: TrainOptions) -> str:
    """The method that is named, or fits a learner that is named, or suits the images."""
    method = options.method or "auto"
    if method == "auto":
        method = _of_learner(options) or (_of_grey if facts.grey else _of_binary)(facts, options)
    fit = [name for name, known in METHODS.items() if facts.levels in known.levels]
    other = "binary" if facts.grey else "grey"
    require(method in fit, f"{method} does not learn from {facts.levels} images; take {fit[0]}, or levels {other}")
    return method


def _of_learner(options: TrainOptions) -> str:
    """The method for a learner that the user names, which the rest of a plan must suit, or for a task; or nothing."""
    learner = options.tables.get("learner", {}).get("method", "")
    fitting = {name: known for name, known in METHODS.items() if known.learnt == bool(options.task)}
    by_learner = {known.learner: name for name, known in fitting.items()}
    of_family = [name for name, known in fitting.items() if learner in LEARNERS[known.family]]
    if learner in by_learner:
        return by_learner[learner]
    if len(of_family) == 1:
        return of_family[0]
    return next(iter(fitting)) if options.task else ""


def _of_grey(facts: Facts, options: TrainOptions) -> str:
    by_steps = options.epochs is not None or "optimizer" in options.tables
    return "tap" if facts.black >= MOSTLY_BLACK or by_steps else "principal"


def _of_binary(facts: Facts, options: TrainOptions) -> str:
    plain = options.hidden is None and not options.tables
    return "convolutional" if plain and min(facts.image_shape) >= LEAST_SIDE else "tap"


def usual(name: str) -> Tables:
    """The tables of `restore/learning/usual/NAME.toml`, and [plan], from which some of their numbers follow."""
    return tomllib.loads((files("restore.learning") / "usual" / f"{name}.toml").read_text("utf-8"))


def _tables(method: str, facts: Facts, options: TrainOptions) -> Tables:
    """Fill in the template of a method."""
    known = METHODS[method]
    name = known.template or ("binary" if not facts.grey else "dark" if facts.black >= MOSTLY_BLACK else "grey")
    tables = usual(name)
    tables["learner"] = {"method": known.learner, **known.settings, **tables["learner"]}
    if known.rate:
        tables["optimizer"]["rate"], tables["prior"]["weight_scale"] = known.rate, known.scale
    FILL[name](tables, facts, options, **tables.pop("plan", {}))
    return tables


def _usual_hidden(facts: Facts) -> int:
    """The usual number of hidden units: a third of the pixels, all in small images; at most a fourth of the images."""
    return max(8, min(500, max(facts.pixels // 3, min(facts.pixels, SMALL_IMAGE)), facts.images // 4))


def _grown(tables: Tables, facts: Facts, options: TrainOptions, most: int, images: int) -> None:
    """Add how hidden units grow, if they do, and how many, at most, to fill up to if time ends that.

    None are filled up if the user limits the growth. `images` counts copies, which tell nothing new.
    """
    if tables["prior"]["hidden"] == "auto":
        limited = "units" in options.tables.get("growth", {})
        tables["prior"]["filled"] = 0 if limited else min(most, facts.pixels, max(8, images // 4))
        tables["growth"] = {"penalty": usual("frank_wolfe")["learner"]["penalty"] * facts.held_back}


def _batch(images: int, largest: int) -> int:
    return max(5, min(largest, images // 10))


def _every(epochs: int, judged: int = TIMES_JUDGED) -> int:
    """The number of epochs from one that is judged, or kept, to the next."""
    return max(1, epochs // judged)


def _set_length(tables: Tables, images: int, batch: int, steps: int, judged: int) -> None:
    """Fill in mini-batches, and epochs for a number of steps."""
    epochs = max(FEWEST_EPOCHS, round(steps * batch / images))
    training = tables["training"]
    training |= {"epochs": epochs, "batch": batch}
    for key in EVERY & training.keys():
        training[key] = _every(epochs, judged)


def usual_inference(hidden: int | Literal["auto"] | None) -> dict[str, Any]:
    """Settings of TAP; with few hidden units couplings are strong, and it needs damping."""
    strong = isinstance(hidden, int) and hidden <= 100
    return {**STARTS} | ({"damping": 0.7, "max_iter": 300} if strong else {})


def _binary(tables: Tables, facts: Facts, options: TrainOptions, *, steps: int, batch: int, judged: int) -> None:
    """A few images are also learnt shifted."""
    copies = min(MOST_COPIES, -(-PLENTY // facts.images))
    tables["optimizer"]["weight_decay"] *= facts.held_back
    counted = facts
    if copies > 1:
        shift = max(1, min(facts.image_shape) // PIXELS_PER_SHIFT)
        tables["data"] = {"variations": {"copies": copies, "shift": shift}}
        counted = replace(facts, images=copies * facts.images)
    hidden = tables["prior"]["hidden"] = options.hidden or _usual_hidden(counted)
    # With more units than usual, variations of few images would be learnt too well.
    most = _usual_hidden(counted) if copies > 1 else FrankWolfe.units
    _grown(tables, facts, options, most, counted.images)
    _set_length(tables, counted.images, _batch(counted.images, batch), steps, judged)
    tables["inference"] = usual_inference(hidden)


def _grey(tables: Tables, facts: Facts, options: TrainOptions, *, steps: int, batch: int, judged: int) -> None:
    tables["prior"]["hidden"] = options.hidden or _usual_hidden(facts)
    tables["optimizer"]["weight_decay"] *= facts.held_back
    _set_length(tables, facts.images, _batch(facts.images, batch), steps, judged)


def _frank_wolfe(tables: Tables, facts: Facts, options: TrainOptions) -> None:
    tables["prior"]["hidden"] = options.hidden or "auto"
    tables["learner"]["penalty"] *= facts.held_back
    tables["inference"] = usual_inference(None)


def _fully_visible(tables: Tables, facts: Facts, options: TrainOptions) -> None:
    require(options.hidden is None, "fvbm has no hidden units; leave hidden out")
    tables["learner"]["l2"] *= facts.held_back


def _convolutional(
    tables: Tables,
    facts: Facts,
    options: TrainOptions,
    *,
    steps: int,
    pixels: int,
    judged: int,
    few: int,
    bend: float,
) -> None:
    require(options.hidden != "auto", "hidden of convolutional is a number of features; give one, or leave it out")
    prior = tables["prior"]
    if options.hidden:
        first = prior["layers"][0][0]
        prior["layers"] = [[options.hidden * number // first, *window] for number, *window in prior["layers"]]
    copies = min(MOST_COPIES, -(-few // (facts.images * facts.pixels)))
    if copies > 1:
        tables["data"] = {"variations": {"copies": copies, "bend": bend}}
        facts = replace(facts, images=copies * facts.images)
    else:
        # Weights are held back where there is little to learn them from.
        tables["optimizer"]["weight_decay"] = 0.0
    batch = max(2, min(facts.images, round(pixels / facts.pixels)))
    _set_length(tables, facts.images, batch, steps, judged)


def _principal(tables: Tables, facts: Facts, options: TrainOptions) -> None:
    """The number of components that makes held-out images likeliest would leave solvers almost no variance."""
    tables["prior"]["hidden"] = options.hidden or max(1, min(7 * facts.pixels // 10, facts.images // 4))
    tables["data"]["variations"]["copies"] = max(1, min(MOST_COPIES, VARIED // facts.images))


def _conditional(
    tables: Tables, facts: Facts, options: TrainOptions, *, steps: int, batch: int, most: int, fixed: int
) -> None:
    # Weights that stay 0 leave hidden units without effect.
    alone = not tables["prior"]["weight_scale"]
    require(not alone or options.hidden in (None, 1), "logistic regression uses no hidden unit; leave hidden out")
    tables["prior"]["hidden"] = 1 if alone else options.hidden or min(most, _usual_hidden(facts))
    _grown(tables, facts, options, most, facts.images)
    _set_length(tables, facts.images, _batch(facts.images, batch), steps, TIMES_JUDGED)
    if tables["training"]["epochs"] > fixed and not alone:
        # The limit of iterations grows by one per epoch; with very many epochs it is fixed instead.
        tables["learner"] |= {"iterations": 25, "growth": 0}
    tables["optimizer"]["weight_decay"] *= facts.held_back if facts.held_back > 1 else 0.0


# What fills in a template, by its name.
FILL: Mapping[str, Callable[..., None]] = {
    "binary": _binary,
    "grey": _grey,
    "dark": _grey,
    "frank_wolfe": _frank_wolfe,
    "fully_visible": _fully_visible,
    "convolutional": _convolutional,
    "principal": _principal,
    "conditional": _conditional,
}
