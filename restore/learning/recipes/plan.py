"""Plan a recipe: turn facts about images, and what a user asks for, into the tables of a recipe.

Nothing here reads or trains anything. The result is an ordinary recipe that can be written to a file, edited by hand,
and repeated.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Literal

from restore.learning.recipes.tables import require
from restore.learning.recipes.wishes import CONDITIONAL, OF_CONDITIONAL, OF_GREY, OF_PLAIN, PLAIN, PLENTY, Facts, Wishes
from restore.learning.rules.frank_wolfe import FrankWolfe

Tables = dict[str, dict[str, Any]]

# With at least this share of black pixels, the pixels' units may be exactly black.
MOSTLY_BLACK = 0.3

# How many steps a learner takes, whatever the number of images, and how often it is judged.
STEPS = 8000
CONDITIONAL_STEPS = 3000
JUDGED = 30

# The damage by which an unconditional prior is judged during training.
WATCHED = {"binary": "flip:0.1", "grey": "noise:0.2"}

# Images with at most this many pixels get as many hidden units as pixels.
SMALL = 200

# Features of a convolutional prior, their side in pixels where images are as large, the least side of such images, its
# steps, which take longer than those of others, and the damage that it learns to undo.
FEATURES, KERNEL, LEAST_SIDE = 12, 7, 5
LEARNT_FLIPS = (0.05, 0.1, 0.15, 0.2, 0.3)
CONVOLUTIONAL_STEPS = 10_000

# From more pixels than this in all, some 3,000 images of 28x28, a machine of whole images can learn more; and an epoch
# of a convolutional one would take minutes.
MANY = 2_500_000

# Pixels of a mini-batch for a convolutional prior, which learns the same at every place; and how often it is judged.
AT_ONCE, SELDOM = 8000, 12

# The most hidden units of conditional priors, unless the number is given.
CONDITIONAL_UNITS = 256

# A minute best trains a prior with this product of pixels and squared hidden units: 400 units for 28x28 pixels. More
# time goes to steps rather than to units, whose number grows with its fourth root.
TRAINED = 1.26e8

# How many modes binary priors carry, from how many starts they restore, and when from one alone.
STARTS: Mapping[str, Any] = {"modes": 500, "starts": 6, "clear": 0.3}

# The most variations of each image if there are few; and their largest shift: the smaller side over this number.
MOST_COPIES, PIXELS_PER_SHIFT = 20, 7

# How many variations in all the principal components of grey images are found from; lighting varies.
VARIED = 40_000


def plan(
    name: str, source: str, facts: Facts, wishes: Wishes, *, seed: int, gathering: Mapping[str, Any]
) -> dict[str, Any]:
    """Make the tables of the recipe that fits the images and a user's wishes.

    Args:
        name: name of the prior.
        source: name of the images.
        facts: facts about the images.
        wishes: what the user asks for.
        seed: seed of all randomness.
        gathering: the table [data.gathering] by which the images were gathered.

    Raises:
        UsageError: if the wishes do not suit the images.
    """
    method = _method(facts, wishes)
    data: dict[str, Any] = {"source": source} | ({} if facts.grey else {"threshold": facts.threshold})
    data |= ({"task": wishes.task} if wishes.task else {}) | {"gathering": dict(gathering)}
    tables = MADE[method](method, facts, wishes)
    tables |= {"data": data | tables.get("data", {})}
    if wishes.minutes is not None:
        # The number of epochs stays as the most: with more a prior restores worse, not better.
        tables["training"] = tables.get("training", {}) | {"minutes": float(wishes.minutes)}
    if wishes.epochs is not None:
        training = tables.get("training", {})
        # Judged and kept as often as with the usual number of epochs.
        often = {
            key: min(training[key], _every(wishes.epochs))
            for key in ("watch_every", "checkpoint_every")
            if key in training
        }
        # A learner without epochs refuses them itself.
        tables["training"] = training | often | {"epochs": wishes.epochs}
    told = wishes.tables
    if "method" in told.get("learner", {}):
        # Settings of one method mean nothing to another.
        tables["learner"] = {}
    together = {key: dict(tables.get(key, {})) | dict(told.get(key, {})) for key in tables.keys() | told.keys()}
    order = [key for key in ORDER if key in together] + sorted(together.keys() - set(ORDER))
    # In float16 principal components would not cancel where images do not vary.
    head = {"name": name, "seed": seed} | ({"storage": "float32"} if method == "principal" else {})
    return head | {key: together[key] for key in order if together[key]}


# The order of the tables in a recipe.
ORDER = ("data", "prior", "growth", "learner", "optimizer", "training", "inference")


def _method(facts: Facts, wishes: Wishes) -> str:
    method, learner = wishes.method, wishes.tables.get("learner", {}).get("method", "")
    if method == "auto":
        # If the user names a learner, the rest of the plan must suit it.
        method = (OF_CONDITIONAL if wishes.task else OF_PLAIN).get(learner, "auto")
    if method == "auto" and wishes.task:
        method = "crbm-bp"
    if method == "auto":
        closed = facts.grey and facts.black < MOSTLY_BLACK and not wishes.by_steps
        local = min(facts.image_shape) >= LEAST_SIDE and facts.images * facts.pixels <= MANY
        asked = wishes.hidden is not None or wishes.tables
        usual = "convolutional" if local and not (facts.grey or asked) else "tap"
        method = "principal" if closed else usual
    if facts.grey:
        require(
            method in OF_GREY,
            f"{method} learns from black and white images, and these are grey; take {' or '.join(OF_GREY)}, or levels "
            "binary",
        )
    else:
        require(method != "principal", "principal learns from grey levels; take tap, or levels grey")
    return method


def _size(facts: Facts, wishes: Wishes) -> int | Literal["auto"]:
    return wishes.hidden or _usual(facts)


def _usual(facts: Facts) -> int:
    """The usual number of hidden units: a third of the pixels, all in small images; at most a fourth of the images."""
    return max(8, min(500, max(facts.pixels // 3, min(facts.pixels, SMALL)), facts.images // 4))


def _largest(facts: Facts, wishes: Wishes, most: int) -> int:
    """How many hidden units to fill up to if time ends growth: as many as it can train, at most `most`.

    None are filled if the user limits the growth.
    """
    if "units" in wishes.tables.get("growth", {}):
        return 0
    in_time = math.inf if wishes.minutes is None else math.sqrt(math.sqrt(wishes.minutes) * TRAINED / facts.pixels)
    return int(min(most, facts.pixels, max(8, min(in_time, facts.images // 4))))


def _passes(facts: Facts, steps: int, largest: int) -> tuple[int, int]:
    """Number of epochs and size of mini-batches for so many steps."""
    batch = max(5, min(largest, facts.images // 10))
    return max(10, round(steps * batch / facts.images)), batch


def _every(epochs: int) -> int:
    """How many epochs lie between two that are judged, or kept."""
    return max(1, epochs // JUDGED)


def _training(facts: Facts, steps: int = STEPS) -> dict[str, Any]:
    epochs, batch = _passes(facts, steps, 50)
    every = _every(epochs)
    return {
        "epochs": epochs,
        "batch": batch,
        "watch": WATCHED[facts.levels],
        "watch_every": every,
        "checkpoint_every": every,
    }


def _growth(facts: Facts) -> dict[str, Any]:
    return {"penalty": 0.003 * facts.held_back}


def usual_inference(hidden: int | Literal["auto"] | None) -> dict[str, Any]:
    """Settings of TAP; with few hidden units couplings are strong, and it needs damping."""
    strong = isinstance(hidden, int) and hidden <= 100
    return {**STARTS} | ({"damping": 0.7, "max_iter": 300} if strong else {})


def _in_steps(method: str, facts: Facts, wishes: Wishes) -> Tables:
    return (_grey if facts.grey else _binary)(method, facts, wishes)


def _frank_wolfe(method: str, facts: Facts, wishes: Wishes) -> Tables:
    growth = PLAIN[method] | _growth(facts)
    return {"prior": {"hidden": wishes.hidden or "auto"}, "learner": growth, "inference": usual_inference(None)}


def _fully_visible(method: str, facts: Facts, wishes: Wishes) -> Tables:
    require(wishes.hidden is None, f"{method} has no hidden units; leave hidden out")
    return {"prior": {"family": "fvbm"}, "learner": PLAIN[method] | {"l2": 0.001 * facts.held_back}}


def _binary(method: str, facts: Facts, wishes: Wishes) -> Tables:
    """Tables for binary images; a few images are also learnt shifted."""
    copies = min(MOST_COPIES, -(-PLENTY // facts.images))
    # Taken before copies are counted, which tell nothing new.
    growth, held_back = _growth(facts), facts.held_back
    moved: Tables = {}
    if copies > 1:
        shift = max(1, min(facts.image_shape) // PIXELS_PER_SHIFT)
        moved = {"data": {"variations": {"copies": copies, "shift": shift}}}
        facts = replace(facts, images=copies * facts.images)
    hidden = _size(facts, wishes)
    # With more units than usual, variations of few images would be learnt too well.
    most = _usual(facts) if copies > 1 else FrankWolfe.units
    filled = {"filled": _largest(facts, wishes, most)} if hidden == "auto" else {}
    return moved | {
        "prior": {"hidden": hidden} | filled,
        "growth": growth if hidden == "auto" else {},
        "learner": PLAIN[method],
        "optimizer": {"rate": 0.05, "momentum": 0.5, "weight_decay": 1e-4 * held_back},
        "training": _training(facts),
        "inference": usual_inference(hidden),
    }


def _grey(method: str, facts: Facts, wishes: Wishes) -> Tables:
    """Tables for grey images, as for the published priors of digits, which are mostly black, and of faces."""
    dark = facts.black >= MOSTLY_BLACK
    return {
        "prior": {
            "hidden": _size(facts, wishes),
            "visible": "truncated-gauss-bernoulli" if dark else "truncated-gaussian",
        },
        "learner": PLAIN[method] | {"grey_unit": 0.2 if dark else 0.1},
        "optimizer": {
            "rate": 0.03 if dark else 0.01,
            "average": 0.999,
            "weight_decay": 1e-4 * facts.held_back,
        },
        "training": _training(facts),
        "inference": {"max_iter": 200 if dark else 500, "tol": 1e-3},
    }


def _convolutional(method: str, facts: Facts, wishes: Wishes) -> Tables:
    """Tables for binary images: few parameters, learnt by restoring, which a hundred images suffice for."""
    require(wishes.hidden != "auto", f"hidden of {method} is a number of features; give one, or leave it out")
    batch = max(2, min(facts.images, round(AT_ONCE / facts.pixels)))
    epochs = max(1, round(CONVOLUTIONAL_STEPS * batch / facts.images))
    every = max(1, epochs // SELDOM)
    return {
        "prior": {
            "family": "convolutional",
            "hidden": wishes.hidden or FEATURES,
            "kernel": min(KERNEL, *facts.image_shape),
            "weight_scale": 0.05,
        },
        "learner": PLAIN[method]
        | {"tasks": [f"flip:{p}" for p in LEARNT_FLIPS], "iterations": 8, "damping": 0.1, "unrolled": 4},
        "optimizer": {"name": "adam", "rate": 0.02, "momentum": 0.9, "weight_decay": 0.0, "average": 0.99},
        "training": {
            "epochs": epochs,
            "batch": batch,
            "watch": WATCHED["binary"],
            "watch_every": every,
            "checkpoint_every": every,
        },
        "inference": {"max_iter": 40, "tol": 1e-4, "damping": 0.1},
    }


def _principal(method: str, facts: Facts, wishes: Wishes) -> Tables:
    """Tables for principal components of grey images, shifted by a pixel and with varied contrast.

    The number of components that makes held-out images likeliest would leave solvers almost no variance to work with.
    """
    hidden = wishes.hidden or max(1, min(7 * facts.pixels // 10, facts.images // 4))
    copies = max(1, min(MOST_COPIES, VARIED // facts.images))
    return {
        "data": {"variations": {"copies": copies, "shift": 1, "contrast": [0.5, 1.1]}},
        "prior": {
            "hidden": hidden,
            "visible": "truncated-gaussian",
            "hidden_type": "gaussian",
        },
        "learner": PLAIN[method],
    }


def _conditional(method: str, facts: Facts, wishes: Wishes) -> Tables:
    learner, rate, scale = CONDITIONAL[method]
    require(learner != "logistic" or wishes.hidden in (None, 1), f"{method} uses no hidden unit; leave hidden out")
    epochs, batch = _passes(facts, CONDITIONAL_STEPS, 40)
    hidden = 1 if learner == "logistic" else wishes.hidden or min(CONDITIONAL_UNITS, _size(facts, wishes))
    filled = {"filled": _largest(facts, wishes, CONDITIONAL_UNITS)} if hidden == "auto" else {}
    # The iteration limit grows by one per epoch; with very many epochs it is fixed instead.
    limits = {"iterations": 25, "growth": 0} if epochs > 30 and learner != "logistic" else {}
    return {
        "prior": {"family": "crbm", "hidden": hidden, "weight_scale": scale} | filled,
        "growth": _growth(facts) if hidden == "auto" else {},
        "learner": {"method": learner} | limits,
        "optimizer": {
            "rate": rate,
            "momentum": 0.9,
            "weight_decay": 1e-4 * facts.held_back if facts.held_back > 1 else 0.0,
            "average": 0.999,
        },
        "training": {"epochs": epochs, "batch": batch, "checkpoint_every": _every(epochs)},
    }


# What makes the tables of each method.
MADE: dict[str, Callable[[str, Facts, Wishes], Tables]] = {
    **dict.fromkeys(PLAIN, _in_steps),
    "convolutional": _convolutional,
    "fw": _frank_wolfe,
    "fvbm": _fully_visible,
    "principal": _principal,
    **dict.fromkeys(CONDITIONAL, _conditional),
}
