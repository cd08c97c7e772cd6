"""The tables of a recipe except the learner's own: plain dataclasses that refuse values out of range."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal

from restore.channels import parse_task
from restore.data.gathering import Gathering
from restore.errors import require
from restore.families import Spec

# How often a prior is judged and kept during a run, if a recipe does not say.
TIMES_JUDGED = 30


@dataclass(frozen=True)
class Variations:
    """[data.variations]: learn from every image `copies` times, each time varied; with 0 from the images as they are.

    `shift` is the most pixels that it moves in either direction, `mirror` whether it is mirrored half of the time,
    `contrast` the lowest and the highest factor for its contrast, `bend` the most pixels that its parts move, down and
    sideways; see `restore.data.varied`.
    """

    copies: int = 0
    shift: int = 0
    mirror: bool = False
    contrast: tuple[float, ...] = (1.0, 1.0)
    bend: float = 0.0

    def __post_init__(self) -> None:
        for name in ("copies", "shift"):
            require(getattr(self, name) >= 0, f"{name} must not be negative, not {getattr(self, name)}")
        require(
            len(self.contrast) == 2 and 0 < self.contrast[0] <= self.contrast[1] < math.inf,
            f"contrast is a lowest and a highest factor, such as [0.5, 1.0], not {list(self.contrast)}",
        )
        require(0 <= self.bend < math.inf, f"bend must be a number of pixels, at least 0, not {self.bend}")
        alike = (self.shift, self.mirror, self.contrast, self.bend) == (0, False, (1.0, 1.0), 0.0)
        require(not self.copies or not alike, "copies would all be alike; give shift, mirror, contrast or bend as well")
        require(bool(self.copies) or alike, "copies is missing; say how often every image is varied")


@dataclass(frozen=True)
class Data:
    """[data]: a data set's name or path; a pixel is 1 when its grey level (0 to 255) is above the threshold.

    With `binarisation = "sampled"` training images are drawn once, by the seed: each pixel is 1 with probability grey
    level / 255. Images to restore are cut at the threshold all the same.

    For conditional priors `task` is the damage they learn to undo, such as "flip:0.1". `validation` images, drawn by
    the seed, are held out of the training images: the conditional prior that restores them best is kept, and hidden
    units are added as long as these images gain too. Other priors are trained without them.

    With `variations` none of the images can be held out. With `count` only the first images of the data set are used; 0
    uses all. With `gathering`, whose `levels` then are "binary", "grey" or "pairs", images of any size are brought to
    one, and files are held out, instead of images by `validation`.
    """

    source: str
    threshold: int = 127
    task: str = ""
    validation: int = 0
    binarisation: Literal["threshold", "sampled"] = "threshold"
    variations: Variations = field(default_factory=Variations)
    count: int = 0
    gathering: Gathering = field(default_factory=lambda: Gathering(levels=""))

    def __post_init__(self) -> None:
        require(self.gathering.levels != "auto", "[data.gathering] levels is missing; give binary, grey or pairs")
        require(
            not (self.gathered and (self.validation or self.count)),
            "validation and count are not for gathered images, of which [data.gathering] holds out files; leave them "
            "out",
        )
        require(0 <= self.threshold < 255, f"threshold must lie in 0 ... 254, not {self.threshold}")
        require(self.validation >= 0, f"validation must not be negative, not {self.validation}")
        require(self.count == 0 or self.count > 1, f"count must be 0, for all images, or at least 2, not {self.count}")
        require(
            not (self.validation and self.variations.copies),
            "validation images would be held out from variations of themselves; leave validation or variations out",
        )
        if self.task:
            parse_task(self.task)

    def check(self, prior: PriorShape) -> None:
        words = prior.kind.words
        if prior.kind.learnt:
            require(bool(self.task), f'[data] task is missing; a {words} undoes a damage, such as "flip:0.1"')
        else:
            require(not self.task, f"[data] task is for priors that undo one damage; leave it out for a {words}")
        pairs = self.gathering.levels == "pairs"
        require(
            pairs == prior.kind.pages,
            f'[data.gathering] levels = "pairs" is for pages and their truth; a {words} '
            + ("takes them" if prior.kind.pages else "takes binary or grey"),
        )
        require(
            not prior.grey or self.binarisation == "threshold",
            "[data] binarisation is for black and white pixels, and these are grey; leave it out",
        )
        require(
            not prior.grows or self.holds_out, '[data] validation is missing; hidden = "auto" needs held-out images'
        )

    @property
    def gathered(self) -> bool:
        return bool(self.gathering.levels)

    @property
    def holds_out(self) -> bool:
        """True if some images are held out to judge the prior."""
        return self.validation > 0 or self.gathered


@dataclass(frozen=True, kw_only=True)
class PriorShape(Spec):
    """[prior]: the machine to train, and the standard deviation of its first weights (0 only for logistic regression).

    `hidden` is the number of hidden units; "auto" grows them one by one (see [growth]) until held-out images say that
    there are enough. If time or the limit of units ends growth before that, units with random weights are added up to
    `filled`. A fully visible machine ("fvbm") has no hidden units, and starts without couplings. A machine with several
    hidden layers ("deep") has `hidden` units next to the image; `deeper` gives the numbers in the layers above.

    `start` is the name or path of another prior, from whose machine training goes on; hidden units beyond its own start
    from random weights, or are added one by one ("frank_wolfe").

    The other keys are those of `restore.families.Spec`. Grey pixels learn from unchanged levels.
    """

    weight_scale: float = 0.01
    filled: int = 0
    start: str = ""

    def __post_init__(self) -> None:
        self.check()
        require(self.filled >= 0, f"filled must not be negative, not {self.filled}")
        require(not self.filled or self.grows, 'filled is for hidden = "auto"; leave it out')
        require(not (self.start and self.grows), "hidden is a number where start is given; give one")
        require(not self.start or self.kind.continues, f"a {self.kind.words} begins by itself; leave start out")
        components = (self.visible, self.hidden_type) == ("truncated-gaussian", "gaussian")
        require(self.binary or components or not self.grows, 'hidden = "auto" grows binary units only; give a number')

    @property
    def grows(self) -> bool:
        """True if the number of hidden units is found by growing them, or by held-out images."""
        return self.hidden == "auto"


@dataclass(frozen=True)
class Optimizer:
    """[optimizer]: "sgd", "adam" or "muon"; weight decay acts on the weights, not on biases.

    `schedule` is "constant", or says how the rate falls to `end` times its value over the whole run: "linear", or
    "geometric", by the same factor at each step.

    `average` is the share that a moving average of the parameters keeps at each step; if it is not 0, the average is
    validated and kept.
    """

    name: Literal["sgd", "adam", "muon"] = "sgd"
    rate: float = 0.05
    momentum: float = 0.5
    weight_decay: float = 1e-4
    schedule: Literal["constant", "linear", "geometric"] = "linear"
    average: float = 0.0
    end: float = 0.0

    def __post_init__(self) -> None:
        require(0 <= self.end <= 1, f"end is the share of the rate left at the end, in [0, 1], not {self.end}")
        require(self.schedule != "geometric" or self.end > 0, "end is missing; a geometric schedule never reaches 0")
        require(self.schedule != "constant" or not self.end, "end has no meaning for a constant rate; leave it out")
        require(0 < self.rate < math.inf, f"rate must be positive, not {self.rate}")
        require(0 <= self.momentum < 1, f"momentum must lie in [0, 1), not {self.momentum}")
        require(0 <= self.average < 1, f"average must lie in [0, 1), not {self.average}")
        require(0 <= self.weight_decay < math.inf, f"weight_decay must be 0 or positive, not {self.weight_decay}")


@dataclass(frozen=True)
class Training:
    """[training]: passes over the data, mini-batch size, and how many epochs lie between two checkpoints.

    A learner that works in rounds knows its own end and has no epochs; its checkpoints lie that many rounds apart.

    `watch` is the damage by which an unconditional prior is judged, such as "flip:0.1": every `watch_every` epochs and
    after the last it restores the held-out images, and the prior that did so best is kept.

    `minutes` is the time that the whole run may take, 0 for no limit: the rate falls as it is used, if that is faster
    than over the `epochs`, and a prior is judged and kept by the time. `last` ends a run after that many `epochs`,
    while the rate falls over all of them; 0 has no effect.
    """

    epochs: int = 0
    batch: int = 100
    checkpoint_every: int = 1
    watch: str = ""
    watch_every: int = 1
    minutes: float = 0.0
    last: int = 0

    def __post_init__(self) -> None:
        for name in ("batch", "checkpoint_every", "watch_every"):
            require(getattr(self, name) >= 1, f"{name} must be at least 1, not {getattr(self, name)}")
        require(self.epochs >= 0, f"epochs must be at least 1, not {self.epochs}")
        require(0 <= self.last <= self.epochs, f"last must lie in 0 ... {self.epochs} (epochs), not {self.last}")
        require(0 <= self.minutes < math.inf, f"minutes must be 0, for no limit, or positive, not {self.minutes}")
        require(self.watch_every == 1 or bool(self.watch), "watch_every has no meaning without watch; leave it out")

    def check(self, prior: PriorShape, data: Data, *, by: str, in_rounds: bool) -> None:
        """Refuse settings that have no meaning for a learner (`by`), or lack images to judge by."""
        if in_rounds:
            require(not self.epochs, f"[training] epochs has no meaning for {by}; leave it out")
            require(not self.watch, f"[training] watch has no meaning for {by}; leave it out")
        else:
            require(self.epochs > 0 or self.minutes > 0, "[training] epochs is missing; add it")
        if self.watch:
            require(not data.task, "[training] watch has no meaning for a prior judged by [data] task; leave it out")
            require(data.holds_out, "[data] validation is missing; [training] watch needs held-out images")
            prior.task_of(self.watch)


@dataclass(frozen=True)
class Pretraining:
    """[pretraining]: passes over the data for each layer of a deep machine, before all are trained together.

    With a time limit there may be fewer, so that half of the time is left.
    """

    epochs: int = 0

    def __post_init__(self) -> None:
        require(self.epochs >= 0, f"epochs must be 0, for none, or positive, not {self.epochs}")

    def check(self, prior: PriorShape) -> None:
        if self.epochs:
            require(bool(prior.deeper), "[pretraining] is for several layers of hidden units; leave it out")
            require(prior.hidden_type == "bernoulli", "[pretraining] is for binary hidden units; leave it out")
