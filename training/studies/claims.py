"""The figures of claims.md, from the records of the studies, by the number of the claim."""

from __future__ import annotations

import json
import math
import re
import statistics
from functools import cache
from itertools import pairwise, product
from typing import Any

import dcp_large
from bands import by_chance, separation
from bslm import REPORTED, STARTS, TOLERANCE
from bslm_paper import CUTS
from crbm import PAPER, TASKS
from crbm_noise import reported
from dcp_slow import LOCAL, SLOW, leaves
from dcp_small import RATES, REACHABLE, Trials
from denoising import AGAIN
from dynamics_causes import BY_ALL, BY_PAPER, PAPERS
from dynamics_measure import MANY, Moment
from dynamics_measure import STARTS as STARTED
from harness import TRAINING

from restore.console import tell
from restore.zoo.structure import structure

Record = dict[str, Any]

# Where figures are besides the records.
BENCHMARKS = TRAINING.parent / "benchmarks" / "README.md"

BARS, STRIPES = "shifting-bar", "bars-and-stripes"


@cache
def record(name: str) -> Record:
    """A study's record."""
    found: Record = json.loads((TRAINING / "studies" / "records" / f"{name}.json").read_text("utf-8"))
    return found


def entry(study: str, group: str, **wanted: Any) -> Record:
    """The one entry of a list in a record that has these values."""
    (found,) = (each for each in record(study)[group] if all(each[key] == value for key, value in wanted.items()))
    return dict(found)


def bench(text: str) -> str:
    """A figure that the benchmarks have."""
    assert text in BENCHMARKS.read_text("utf-8"), text
    return text


# -------------------------------------------------------------------------------------------------- Frank-Wolfe RBMs


def grown(name: str, hidden: int = 0) -> Record:
    return entry("growth", "points", name=name, **({"hidden": hidden} if hidden else {}))


def nats(name: str, hidden: int = 0) -> str:
    return f"{grown(name, hidden)['likelihood']:.2f}"


def gain(fewer: Record, more: Record) -> str:
    """What 40 units bring on average between two sizes, in nats."""
    return f"{40 * (more['likelihood'] - fewer['likelihood']) / (more['hidden'] - fewer['hidden']):.2f}"


def at_most(name: str) -> str:
    """What a likelihood by few AIS runs is at most in 19 of 20 cases: Z, unbiased, is then not 20 times too high."""
    return f"{grown(name)['likelihood'] + math.log(20):.2f}"


def counted(name: str) -> str:
    """Effective AIS runs."""
    return f"{grown(name)['effective']:.1f}"


def gap_of(name: str, hidden: int = 0) -> str:
    """Mean log-probability of training images minus that of validation images."""
    return f"{grown(name, hidden)['gap']:.2f}"


def exact(name: str) -> str:
    """The exact log-likelihood of a small prior."""
    return f"{entry('likelihoods', 'priors', name=name)['likelihoods']['exact']['mean']:.2f}"


def error(name: str, hidden: int = 0) -> str:
    return f"{100 * grown(name, hidden)['error']:.2f}"


def by_all(name: str) -> str:
    """The classification error with all labels."""
    return f"{100 * entry('classification', 'priors', name=name)['wrong']:.2f}"


def minutes(name: str, hidden: int = 0) -> str:
    return f"{grown(name, hidden)['minutes']:.1f}"


def letter(penalty: float, units: int) -> Record:
    """A machine of algorithm 1 to the letter."""
    return entry("frank-wolfe-paper", "grown", penalty=penalty, units=units)


def rounds(name: str) -> str:
    """Rounds of growth, from the card of a published prior."""
    found = re.search(r"(\d+) rounds", (TRAINING.parent / "models" / name / "card.md").read_text("utf-8"))
    return found[1] if found else ""


def fractional(free: str, units: int = 20) -> str:
    """The exact test likelihood of a small machine of which so much is free."""
    return f"{entry('fractional', 'grown', free=free, units=units)['test']:.3f}"


def power_gain() -> str:
    """What α could gain `fw-mnist`, in nats."""
    return f"{entry('fractional', 'slopes', prior='fw-mnist')['gain']:.4f}"


def accepted() -> str:
    """Share of the proposals accepted with powers of .9, in per cent."""
    return f"{100 * entry('fractional', 'slopes', prior='fw-mnist')['accepted'][0]:.1f}"


# ------------------------------------------------------------------------------------------------------------- S-DCP


def cost(algorithm: str) -> str:
    """CPU time of a mini-batch over that of CD."""
    return f"{entry('dcp-cost', 'costs', algorithm=algorithm)['ratio']:.2f}"


def trials(data: str, algorithm: str, rate: float) -> Record:
    return entry("dcp", "small", data=data, algorithm=algorithm, rate=rate)


def end(data: str, algorithm: str, rate: float) -> str:
    return f"{statistics.fmean(trials(data, algorithm, rate)['ends']):.3f}"


def exactly(algorithm: str, rate: float) -> list[str]:
    """The mean and the median end of the trials with exact expectations on Bars & Stripes."""
    found = entry("dcp", "exact", algorithm=algorithm, rate=rate)
    return [f"{found['mean'][-1]:.3f}", f"{statistics.median(found['ends']):.3f}"]


def fall() -> str:
    """How far the mean over trials with exact expectations is at most below an earlier one, in nats."""
    means = [one["mean"] for one in record("dcp")["exact"]]
    return f"{max(max(mean[: at + 1]) - value for mean in means for at, value in enumerate(mean)):.3f}"


def worst(data: str, algorithm: str, rate: float) -> str:
    return f"{min(trials(data, algorithm, rate)['ends']):.1f}"


def top(data: str, algorithm: str, rate: float) -> str:
    return f"{max(trials(data, algorithm, rate)['mean']):.3f}"


def near(data: str, algorithm: str, rate: float) -> str:
    return str(sum(first is not None for first in trials(data, algorithm, rate)["learnt"]))


def reaches(data: str, algorithm: str, rate: float, level: float) -> int:
    """The first epoch whose mean likelihood over trials is at a level."""
    found = trials(data, algorithm, rate)
    return next(epoch for epoch, mean in zip(found["epochs"], found["mean"], strict=True) if mean >= level)


def passes(rate: float) -> str:
    """The epoch in which CG passes the highest mean of CS-DCP on Shifting Bar."""
    return f"{reaches(BARS, 'CG', rate, max(trials(BARS, 'CS-DCP', rate)['mean'])):,}"


def overtakes() -> str:
    """The epoch in which CD passes the highest mean of S-DCP on Shifting Bar by rate .3."""
    return f"{reaches(BARS, 'CD', 0.3, max(trials(BARS, 'S-DCP', 0.3)['mean'])):,}"


def passing(rate: float) -> str:
    """The same times the rate."""
    return f"{rate * reaches(BARS, 'CG', rate, max(trials(BARS, 'CS-DCP', rate)['mean'])):,.0f}"


def leaving(algorithm: str, rate: float) -> str:
    """The epoch in which the mean over trials leaves the local maximum of Shifting Bar, or how many have gone by."""
    study, group = ("dcp", "small") if rate in RATES else ("dcp-slow", "trials")
    found = structure(Trials, entry(study, group, data=BARS, algorithm=algorithm, rate=rate))
    return f"{leaves(found) or found.epochs[-1]:,}"


def left(algorithm: str, rate: float) -> str:
    """The same times the rate."""
    return f"{rate * int(leaving(algorithm, rate).replace(',', '')):,.0f}"


def later(rate: float) -> str:
    """How many epochs CG comes later than CS-DCP to 90 % on Bars & Stripes."""
    cg, cs = (reaches(STRIPES, name, rate, REACHABLE[STRIPES] / 0.9) for name in ("CG", "CS-DCP"))
    return f"{cg - cs:,}"


def large(figure: str, algorithm: str, epoch: int, **plan: Any) -> str:
    """The likelihood of a curve of Figs. 3 to 7, or of the long ones, after an epoch."""
    usual = {
        "data": "omniglot" if figure == "4" else "mnist",
        "images": 0 if figure in ("3", "4") else 10_000,
        "rate": 0.01 if figure == "long" else 0.05,
        "epochs": {"3": 8, "4": 60, "5": 30, "long": 200}.get(figure, 10),
    }
    wanted = usual | {"batch": 200, "inner": 6, "sweeps": 24, "weight_scale": 0.01, "zero_bias": False} | plan
    (found,) = (
        curve
        for curve in record("dcp")["large"]
        if curve["plan"]["algorithm"] == algorithm and all(curve["plan"][key] == wanted[key] for key in wanted)
    )
    return f"{found['likelihood'][found['epochs'].index(epoch)]:.1f}"


def lost(images: str, of: str = "machine") -> str:
    """Nats that images lose from epoch 30 to 40 where S-DCP falls, under the machine or the average."""
    before, after = (entry("dcp-fall", "moments", epoch=epoch)[of][images] for epoch in (30, 40))
    return f"{before - after:.1f}"


def arrives(algorithm: str) -> str:
    """The epoch in which a long curve comes to 90 % of the highest end of the four algorithms."""
    curves = long_curves()
    return f"{dcp_large.arrival(curves[algorithm], max(one.likelihood[-1] for one in curves.values())):.0f}"


def arrives_alone(algorithm: str) -> str:
    """The epoch in which a long curve comes to 90 % of its own highest likelihood."""
    curve = long_curves()[algorithm]
    return f"{dcp_large.arrival(curve, max(curve.likelihood)):.0f}"


def rises(algorithm: str) -> str:
    """In how many intervals of 20 epochs a long curve rises."""
    return str(sum(after > before for before, after in pairwise(long_curves()[algorithm].likelihood)))


def long_curves() -> dict[str, dcp_large.Curve]:
    """The curves of 200 epochs, by algorithm."""
    found = {one.plan: one for one in (structure(dcp_large.Curve, each) for each in record("dcp")["large"])}
    return {plan.algorithm: found[plan] for plan in dcp_large.plans()["3-long"]}


# -------------------------------------------------------------------------------------------------- conditional RBMs


def wrong(method: str, task: str) -> str:
    return f"{entry('crbm', 'cells', method=method, task=task)['everywhere'][0]:.3f}"


def changed(method: str, task: str) -> str:
    return f"{entry('crbm', 'cells', method=method, task=task)['changed'][0]:.2f}"


def settles(method: str, task: str) -> str:
    """How many inferences on the test images converge, in per cent."""
    return f"{100 * entry('crbm', 'cells', method=method, task=task)['converged']:.0f} %"


def spare(method: str, task: str) -> str:
    return f"{entry('crbm', 'cells', method=method, task=task)['everywhere'][1]:.3f}"


def ahead(task: str) -> str:
    """By how many per cent MLE-BP has fewer wrong pixels than CD-PercLoss."""
    bp, percloss = (entry("crbm", "cells", method=name, task=task)["everywhere"][0] for name in ("bp", "percloss"))
    return f"{100 - 100 * bp / percloss:.0f}"


def below() -> list[str]:
    """How far all errors of tables 1 to 3 are below the paper's, in per cent: least and most."""
    shares = [
        1 - entry("crbm", "cells", method=method, task=task)["everywhere"][0] / pairs[0]
        for method, row in PAPER.items()
        for task, pairs in zip(TASKS, row, strict=True)
    ]
    return [f"{100 * min(shares):.1f}", f"{100 * max(shares):.0f}"]


def drawn(damage: str, method: str = "lr", task: str = "caltech-flip20") -> str:
    """What a method leaves wrong if its damage is drawn in some way, in per cent."""
    found = entry("crbm-noise", "changed", change=f"damage drawn {damage}", method=method, task=task)
    return f"{found['error'][0]:.3f}"


def converged(task: str, epoch: int) -> str:
    return f"{record('crbm')['converged'][TASKS[task]][epoch - 1]:.0%}".replace("%", " %")


def matched(prior: str, inference: str = "its own", task: str = "mnist-patch12") -> str:
    found = entry("crbm-inference", "answers", prior=f"crbm-{prior}-{task}", inference=inference)
    return f"{found['error'][0]:.2f}"


def course(task: str, rate: float, hidden: int, damping: float = 0.0) -> Record:
    return entry("crbm-inference", "courses", task=task, rate=rate, hidden=hidden, damping=damping)


def settled(rate: float, part: int) -> str:
    """How many inferences converge in a fifth of the first epoch, in per cent."""
    return f"{100 * course('patch:8', rate, 256)['converged'][part]:.0f} %"


# -------------------------------------------------------------------------------------------------------------- BSLM


def fit(units: int, field: str = "error") -> str:
    return f"{entry('bslm', 'errors', units=units, variance=0.5)[field]:.1e}"


def early() -> str:
    """The least share of its rise that a sequence has made after a hundredth of its sweeps, in per cent."""
    shares = []
    for each in record("bslm")["sequences"]:
        values, sweeps = each["values"], each["sweeps"]
        hundredth = max(place for place, sweep in enumerate(sweeps) if sweep <= sweeps[-1] / 100)
        shares.append((values[hundredth] - values[0]) / (values[-1] - values[0]))
    return f"{100 * min(shares):.1f}"


def ascents(units: int, factor: float = 1.0) -> list[Record]:
    """Sequences in the paper's order."""
    found = record("bslm-paper")["ascents"]
    return [each for each in found if (each["units"], each["factor"]) == (units, factor)]


def ends_of(units: int, count: str = "sweeps") -> list[float]:
    """How many sweeps each machine takes, from few to many; infinite for those that are cut off."""
    mine = [each for each in record("bslm-paper")["instances"] if each["units"] == units]
    return sorted(each[count] if each["last"] < TOLERANCE else math.inf for each in mine)


def quantile(units: int, share: float, count: str = "sweeps") -> str:
    """The sweeps that a share of the machines take less than."""
    counts = ends_of(units, count)
    return f"{counts[int(share * len(counts))]:,.0f}"


def within(units: int, limit: int) -> int:
    """How many machines end within so many sweeps."""
    return sum(count <= limit for count in ends_of(units))


def apart(units: int) -> str:
    """How far sequences in the paper's order end apart, in nats."""
    ends = [each["value"] for each in ascents(units)]
    return f"{max(ends) - min(ends):.3f}"


def falls() -> str:
    """How many of the sequences, of any factor, ever fall."""
    return str(sum(each["least"] < 0 for each in record("bslm-paper")["ascents"]))


def twice(units: int) -> str:
    """The paper's error times the number of its terms."""
    return f"{REPORTED[units] * units * (units + 1) / 2 * STARTS:.1e}"


# ------------------------------------------------------------------------------------------------------ TAP machines


def moment(run: str, epoch: int, starts: int = 500) -> Record:
    (found,) = (
        each
        for each in record("dynamics")["moments"]
        if (each["run"], each["probe"]["epoch"], each["probe"]["starts"]) == (f"dynamics-{run}", epoch, starts)
    )
    return dict(found)


def likelihood(run: str, epoch: int, part: str = "train") -> str:
    return f"{moment(run, epoch)[part]['mean']:.4f}"


def solutions(run: str, epoch: int = 1) -> str:
    return str(moment(run, epoch)["probe"]["solutions"])


def energy(run: str, epoch: int) -> str:
    return f"{moment(run, epoch)['probe']['free_energy']:.1f}"


def parted(run: str, epoch: int, starts: int = STARTED) -> str:
    """How far apart two bands of the solutions' free energies are."""
    found = (each["probe"] for each in record("dynamics")["moments"] if each["run"] == f"dynamics-{run}")
    (probe,) = (each for each in found if (each["epoch"], each["starts"]) == (epoch, starts))
    return f"{separation(probe['free_energies']):.2f}"


def sought(change: str, epoch: int) -> Record:
    """Solutions along training with a change."""
    return entry("dynamics-causes", "sought", change=change, epoch=epoch, damping=None)


def searched(damping: float) -> Record:
    """Solutions of the trained machine that a search with this damping finds."""
    return entry("dynamics-causes", "sought", damping=damping)


def counts(criterion: str, starts: int = BY_ALL) -> list[str]:
    """Distinct solutions after 10 epochs by the thresholds, and by the share of pixels that differ."""
    found = entry("dynamics-causes", "counted", epoch=10, criterion=criterion, starts=starts)
    return [str(count) for count in (*found["apart"], found["by_share"])]


def ink(hidden: int) -> str:
    """How much ink the estimate of one digit has at flips of .4, over its own."""
    return f"{entry('one-digit', 'estimates', name=f'tap-mnist-{hidden}, one start')['ink'][8]:.2f}"


def nearest(place: int) -> str:
    """How much ink the nearest training image has, for one digit, at the flips with a number."""
    return f"{entry('one-digit', 'estimates', name='1-NN')['ink'][place]:.2f}"


def inks(name: str) -> str:
    """The same over many digits, by a method."""
    return f"{entry('one-digit', 'many', name=name)['mean']:.2f}"


def summed(run: str, epoch: int) -> str:
    """The likelihood per unit of training images with log Z by log-sum-exp over the solutions."""
    return f"{structure(Moment, moment(run, epoch)).summed:.4f}"


def deep(before: int, what: str, layer: int) -> str:
    """Weights or the spread of means of a layer, after so many epochs of each layer alone."""
    return f"{entry('deep-joint', 'machines', before=before)[what][layer]:.4f}"


def mcc(name: str, p: float) -> str:
    return f"{entry('denoising', 'curves', name=name)['mcc'][round(20 * p)]['mean']:.3f}"


def alone(hidden: int, p: float) -> str:
    return mcc(f"tap-mnist-{hidden}, one start", p)


def paper(hidden: int, p: float) -> str:
    """A machine of the paper's table 1, from one start."""
    return mcc(f"dynamics-mnist-{hidden}, one start", p)


def pseudo(strategy: str) -> float:
    found: float = entry("adaptive", "curves", name=f"adaptive-fast-{strategy}")["points"][-1]["pseudo"]
    return found


def blind(strategy: str, epoch: int) -> str:
    """The pseudo-likelihood after an epoch of training from A = B = 0, at rate .005."""
    found = entry("adaptive", "curves", name=f"adaptive-fast-{strategy}, from A = B = 0")["points"]
    (value,) = (point["pseudo"] for point in found if point["epoch"] == epoch)
    return f"{value:.2f}"


def gap() -> str:
    """How far the strategies of Fig. 10 end apart at rate .005, from the batch."""
    curves = record("adaptive")["curves"]
    names = [one["name"] for one in curves if one["name"].startswith("adaptive-fast-") and not one["start"]]
    ends = [pseudo(name.removeprefix("adaptive-fast-")) for name in names]
    return f"{max(ends) - min(ends):.2f}"


def rank(pair: str) -> str:
    return f"{record('likelihoods')['rank_correlations'][pair]:.3f}"


FIGURES: dict[str, list[str]] = {
    "F1": [
        format(letter(0.5, 100)["likelihood"], ".2f"),
        format(letter(0.1, 5)["likelihood"], ".2f"),
        format(letter(0.1, 20)["likelihood"], ".2f"),
        nats("fw-mnist", 100),
    ],
    "F2": [
        rounds("fw-mnist"),
        gain(grown("fw-mnist", 300), grown("fw-mnist", 500)),
        gain(grown("fw-mnist", 500), grown("fw-mnist", 599)),
        gap_of("fw-mnist", 599),
        gap_of("fw-mnist-700"),
    ],
    "F3": [rounds("fw-caltech"), gap_of("fw-caltech", 536), gap_of("fw-caltech-700")],
    "F4": [
        nats("fw-mnist", 599),
        nats("fw-mnist-700"),
        gain(grown("fw-mnist", 599), grown("fw-mnist-700")),
        gain(grown("fw-mnist", 500), grown("fw-mnist", 599)),
        nats("fw-caltech", 536),
        nats("fw-caltech-700"),
        gain(grown("fw-caltech", 536), grown("fw-caltech-700")),
        gain(grown("fw-caltech", 300), grown("fw-caltech", 500)),
        nats("cd-caltech-700-0"),
        counted("cd-caltech-700-0"),
        nats("cd-caltech-536-0"),
    ],
    "F5": [nats("cd-fw-mnist"), nats("cd-mnist-599-0")],
    "F6": [
        *(figure("cd-fw-caltech-536") for figure in (nats, counted, at_most)),
        nats("cd-caltech-536-0"),
        counted("cd-caltech-536-0"),
        nats("pcd-fw-caltech-536"),
        counted("pcd-fw-caltech-536"),
        *(figure(name) for name in ("cd-fw-caltech-100", "cd-caltech-100-0") for figure in (nats, counted)),
    ],
    "F7": [
        minutes("fw-mnist", 599),
        minutes("cd-mnist-599-0"),
        minutes("fw-caltech", 536),
        minutes("cd-caltech-536-0"),
        f"{4 * grown('cd-caltech-536-0')['minutes']:.1f}",
        f"{grown('fw-caltech', 536)['minutes'] / (4 * grown('cd-caltech-536-0')['minutes']):.1f}",
    ],
    "F8": [
        error("fw-mnist", 599),
        error("cd-mnist-599-0"),
        error("fw-mnist", 500),
        error("fw-mnist-700"),
        error("cd-fw-mnist"),
        error("fw-caltech", 536),
        error("cd-caltech-536-0"),
        error("fw-caltech-700"),
        error("cd-caltech-700-0"),
        by_all("fw-mnist"),
        by_all("cd-fw-mnist"),
    ],
    "F9": [
        error("cd-fw-mnist"),
        error("cd-mnist-599-0"),
        *(error(name) for name in ("cd-fw-caltech-536", "cd-caltech-536-0", "cd-fw-caltech-100", "cd-caltech-100-0")),
    ],
    "F10": [
        error("cd-fw-mnist"),
        error("fw-mnist", 100),
        by_all("fw-mnist"),
        by_all("cd-fw-mnist"),
        error("fw-caltech-700"),
        error("cd-fw-caltech-100"),
    ],
    "F11": [exact("tap-mnist-25"), nats("fw-on-mnist-50"), nats("fw-mnist", 100)],
    "F12": [rounds("fw-mnist"), rounds("fw-caltech")],
    "F13": [fractional("nothing"), fractional("α"), fractional("all powers"), power_gain(), accepted()],
    "D2": [cost("S-DCP"), cost("CS-DCP")],
    "D3": [f"{REACHABLE[STRIPES]:.3f}"],
    "D4": [
        *(end(BARS, algorithm, rate) for algorithm in ("CD", "PCD") for rate in RATES),
        *(figure(algorithm, rate) for figure in (leaving, left) for algorithm in ("CD", "PCD") for rate in RATES),
        *(leaving(algorithm, rate) for algorithm in ("CD", "PCD") for rate in SLOW),
        str(LOCAL),
    ],
    "D5": [
        near(BARS, "CG", 0.3),
        near(BARS, "CG", 0.5),
        *(leaving("CG", rate) for rate in (*RATES, *SLOW)),
        str(LOCAL),
    ],
    "D6": [end(BARS, "S-DCP", 0.3), end(BARS, "S-DCP", 0.5), end(BARS, "CS-DCP", 0.3), end(BARS, "CS-DCP", 0.5)],
    "D7": [passes(0.3), passes(0.5), passing(0.3), passing(0.5), overtakes()],
    "D8": [
        top(STRIPES, "CG", 0.3),
        top(STRIPES, "CS-DCP", 0.3),
        top(STRIPES, "CD", 0.3),
        top(STRIPES, "S-DCP", 0.3),
        top(STRIPES, "PCD", 0.3),
        end(STRIPES, "PCD", 0.3),
        end(STRIPES, "CG", 0.3),
        end(STRIPES, "CD", 0.3),
        end(STRIPES, "S-DCP", 0.3),
        end(STRIPES, "CS-DCP", 0.3),
        *(figure for algorithm in ("CG", "CS-DCP", "S-DCP", "CD") for figure in exactly(algorithm, 0.3)),
        fall(),
    ],
    "D9": [later(0.3), later(0.5)],
    "D10": [arrives("CS-DCP"), arrives("CG"), arrives("CD"), arrives("S-DCP"), arrives_alone("CG")],
    "D11": [large("3", "CS-DCP", 2), large("3", "S-DCP", 2), large("3", "CG", 2), large("3", "CD", 2)],
    "D12": [
        *(large("long", name, 200) for name in ("CD", "CG", "S-DCP", "CS-DCP")),
        *(large("long", name, 180) for name in ("CD", "CG")),
        large("long", "S-DCP", 40),
        lost("test"),
        lost("train"),
        lost("test", "average"),
        f"{entry('dcp-fall', 'moments', epoch=40)['machine']['runs']:.0f}",
        large("long", "S-DCP", 40, batch=100, sweeps=96, epochs=40),
    ],
    "D13": [large("4", "CS-DCP", 60), large("4", "S-DCP", 60), large("4", "CG", 60), large("4", "CD", 60)],
    "D14": [
        *(large("5", "SSD", epoch, batch=1000, rate=0.002) for epoch in (10, 20, 30)),
        large("5", "SSD", 30, batch=1000, rate=0.0005),
        *(large("5", "CS-DCP", epoch, batch=1000) for epoch in (10, 20, 30)),
        *(large("5", name, 30, batch=1000) for name in ("S-DCP", "CD")),
    ],
    "D15": [how(data, "SSD", rate) for how in (end, top, worst) for data in (BARS, STRIPES) for rate in (0.3, 0.5)],
    "D16": [
        *(f"{long_curves()[name].likelihood[place]:.1f}" for name in ("CS-DCP", "S-DCP") for place in (0, -1)),
        f"{rises('CS-DCP')} of 9",
        f"falling in {9 - int(rises('S-DCP'))}",
    ],
    "D17": [
        *(large("6", "CS-DCP", epoch, inner=inner) for epoch in (5, 10) for inner in (2, 6, 24)),
        large("6", "S-DCP", 5, inner=2),
        large("6", "S-DCP", 5),
        large("6", "S-DCP", 5, inner=24),
        large("6", "S-DCP", 10, inner=2),
        large("6", "S-DCP", 10),
        large("6", "S-DCP", 10, inner=24),
        large("6", "S-DCP", 5, inner=24, sweeps=96),
        large("6", "S-DCP", 10, inner=24, sweeps=96),
        large("6", "S-DCP", 5, inner=24, rate=0.0125),
        large("6", "S-DCP", 10, inner=24, rate=0.0125),
    ],
    "D18": [
        *(large("long", "S-DCP", epoch, batch=batch) for epoch in (20, 200) for batch in (100, 200, 400)),
        *(large("long", "S-DCP", epoch, batch=batch) for batch, epoch in ((100, 20), (200, 40), (400, 80))),
    ],
    "D19": [
        *(
            large("7", name, 10, weight_scale=scale, zero_bias=zero)
            for name in ("S-DCP", "CS-DCP")
            for zero in (True, False)
            for scale in (0.001, 0.01)
        ),
        large("7", "CS-DCP", 5, weight_scale=0.001, zero_bias=True),
        large("7", "CS-DCP", 5),
    ],
    "C1": [bench("3.2e-6")],
    "C2": [bench("134.143"), bench("9.796"), bench("16868.158")],
    "C3": [bench("0.687")],
    "C4": [wrong("bp", "mnist-flip10"), wrong("mssvm", "mnist-flip10")],
    "C5": [
        wrong("mssvm", "mnist-flip20"),
        wrong("bp", "mnist-flip20"),
        *(settles(method, task) for task in ("mnist-flip20", "mnist-flip10") for method in ("bp", "mssvm")),
        *(matched("bp", how, "mnist-flip20") for how in ("its own", "200 iterations", "damping .5", "mixed-product")),
        *(drawn("once", method, "mnist-flip20") for method in ("mssvm", "bp")),
        f"{entry('crbm-noise', 'changed', change='a rate of .005')['error'][0]:.3f}",
    ],
    "C6": [wrong("bp", "mnist-patch8"), wrong("percloss", "mnist-patch8")],
    "C7": [
        wrong("mssvm", "mnist-patch12"),
        wrong("bp", "mnist-patch12"),
        settles("bp", "mnist-patch12"),
        settles("mssvm", "mnist-patch12"),
        *(matched("bp", how) for how in ("its own", "200 iterations", "damping .5", "mixed-product")),
        matched("mssvm"),
        *(drawn("once", method, "mnist-patch12") for method in ("mssvm", "bp")),
    ],
    "C8": [wrong("bp", "caltech-flip20"), wrong("mssvm", "caltech-flip20")],
    "C9": [wrong("mssvm", "caltech-patch12"), wrong("percloss", "caltech-patch12")],
    "C10": [ahead("mnist-flip10"), ahead("mnist-flip20"), ahead("mnist-patch8"), ahead("mnist-patch12")],
    "C11": [
        *(wrong(method, "mnist-flip10") for method in ("mssvm", "bp")),
        *(wrong(method, "mnist-patch8") for method in ("mssvm", "bp", "percloss")),
    ],
    "C12": [wrong("mssvm", "caltech-patch12"), wrong("lssvm", "caltech-patch12")],
    "C13": [
        wrong("cd1", "mnist-patch8"),
        wrong("cd10", "mnist-patch8"),
        wrong("lr", "mnist-patch8"),
        wrong("cd1", "mnist-patch12"),
        wrong("cd10", "mnist-patch12"),
        wrong("lr", "mnist-patch12"),
        wrong("cd1", "caltech-patch12"),
        wrong("cd10", "caltech-patch12"),
        wrong("lr", "caltech-patch12"),
    ],
    "C14": [wrong("bp", "mnist-flip10"), wrong("mf", "mnist-flip10")],
    "C15": [changed("percloss", "mnist-patch12"), changed("percloss", "caltech-patch12")],
    "C16": [
        *below(),
        drawn("anew in every epoch"),
        drawn("once, plain steps"),
        *(figure for task in TASKS for figure in (drawn("once", "lr", task), reported("lr", task))),
        *(
            figure
            for method, task in product(("bp", "mssvm"), ("mnist-flip20", "mnist-patch12"))
            for figure in (drawn("once", method, task), reported(method, task))
        ),
    ],
    "C17": [wrong("bp", "mnist-patch20"), wrong("cd10", "mnist-patch20")],
    "C18": [
        settled(0.005, 0),
        settled(0.005, 1),
        settled(0.005, 2),
        settled(0.005, 3),
        settled(0.005, 4),
        settled(0.05, 0),
        settled(0.05, 1),
        converged("mnist-patch8", 1),
        converged("mnist-patch8", 20),
    ],
    "C19": [
        *(f"{100 * share:.0f} %" for share in course("patch:12:1", 0.05, 16, 0.5)["converged"]),
        f"{100 * min(course('patch:12:1', 0.05, 16)['converged']):.0f} %",
        *(format(course("patch:12:1", 0.05, 16, damping)["error"][0], ".2f") for damping in (0.0, 0.5)),
    ],
    "C20": [
        matched("bp"),
        matched("bp", "mean field"),
        matched("bp", "mixed-product"),
        matched("bp", "3 iterations"),
        matched("bp", "200 iterations"),
        matched("mssvm"),
        matched("mssvm", "mean field"),
        matched("mssvm", "3 iterations"),
        matched("mssvm", "200 iterations"),
    ],
    "C21": [wrong("cd10", "mnist-patch28"), wrong("bp", "mnist-patch28"), spare("bp", "mnist-patch28")],
    "B2": [format(-min(each["worst"] for each in record("bslm")["errors"]), ".0e")],
    "B3": [apart(5), apart(10), str(entry("bslm", "errors", units=20, variance=0.5)["unbounded"])],
    "B4": [falls(), str(len(record("bslm-paper")["ascents"]))],
    "B5": [early(), str(len(record("bslm")["sequences"]))],
    "B6": [
        *(quantile(5, share) for share in (0.1, 0.5, 0.9)),
        quantile(10, 0.5),
        *(quantile(units, 0.5, "near") for units in (5, 10)),
        f"{100 - within(10, CUTS[10])} of 100",
        f"{within(15, CUTS[15])} of 100",
        f"half of it {max(each['half'] for each in record('bslm-paper')['instances'])} at most",
    ],
    "B7": [fit(5), fit(10), fit(15), fit(20), fit(5, "bound"), twice(5), twice(20)],
    "T5": [likelihood("mnist-25", 32), likelihood("mnist-25", 100)],
    "T7": [
        str(sought("nothing", 0)["solutions"]),
        *(solutions("mnist-100", epoch) for epoch in (1, 3, 10, 32, 100)),
        solutions("mnist-25", 32),
        solutions("mnist-25", 100),
        solutions("mnist-real-100"),
    ],
    "T8": [
        str(moment("mnist-100", 100, 10_000)["probe"]["solutions"]),
        format(100 * moment("mnist-100", 100, 10_000)["probe"]["share"], ".1f"),
        solutions("mnist-100", 10),
        str(sought("first weights", 10)["solutions"]),
        str(sought("first weights, settled steps", 10)["solutions"]),
        str(searched(0.0)["solutions"]),
        str(searched(0.5)["solutions"]),
        *counts("largest change 1e-4"),
        *counts("largest change 1e-8"),
        *counts(PAPERS, BY_PAPER),
        format(100 * int(counts(PAPERS, BY_PAPER)[0]) / BY_PAPER, ".1f"),
        solutions("mnist-real-100", 30),
    ],
    "T9": [
        format(sought("nothing", 0)["free_energy"], ".1f"),
        energy("mnist-100", 1),
        energy("mnist-100", 3),
        energy("mnist-100", 10),
        energy("mnist-500", 1),
        energy("mnist-500", 2),
    ],
    "T10": [
        parted("mnist-100", 10),
        parted("mnist-100", 32),
        parted("mnist-100", 100),
        parted("mnist-100", 100, MANY),
        parted("mnist-50", 100),
        parted("mnist-25", 100),
        f"{by_chance(57):.2f}",
        f"{by_chance(307):.2f}",
        parted("cbcl", 10),
        parted("cbcl", 100),
    ],
    "T12": [
        *(paper(hidden, p) for p in (0.05, 0.3, 0.5) for hidden in (25, 50, 100)),
        *(mcc("OPE", p) for p in (0.05, 0.3, 0.5)),
        alone(100, 0.35),
        mcc("OPE", 0.35),
        alone(25, 0.5),
    ],
    "T13": [
        *(paper(hidden, p) for hidden in (25, 50, 100) for p in (0.4, 0.45, 0.5)),
        mcc("1-NN", 0.4),
        mcc("1-NN", 0.45),
        mcc("1-NN", 0.5),
        alone(100, 0.45),
    ],
    "T14": [alone(500, 0.05), alone(100, 0.05), alone(500, 0.4), mcc("OPE", 0.4)],
    "T15": [
        *(mcc(name + again, 0.25) for name in ("OPE", "1-NN") for again in ("", AGAIN)),
        mcc("1-NN", 0.15),
        mcc("OPE", 0.15),
        mcc("1-NN", 0.1),
        mcc("OPE", 0.1),
        mcc("1-NN of 1,000", 0.15),
        mcc("1-NN of 1,000", 0.2),
        mcc("OPE", 0.2),
    ],
    "T16": [alone(25, 0), alone(50, 0), alone(100, 0), alone(500, 0)],
    "T17": [mcc(f"tap-mnist-25{starts}, one start", p) for p in (0.2, 0.3, 0.4) for starts in ("", "-data")],
    "T18": [
        *(ink(hidden) for hidden in (25, 50, 100, 500)),
        *(inks(f"tap-mnist-{hidden}, one start") for hidden in (25, 50, 100, 500)),
        inks("dynamics-mnist-100 after 10 epochs, one start"),
        inks("OPE"),
        inks("1-NN"),
        nearest(8),
        nearest(9),
    ],
    "T19": [gap()],
    "T20": [
        *(f"{pseudo(f'adatap-{iterations}'):.2f}" for iterations in (3, 10, 100)),
        *(blind(f"adatap-{iterations}", epoch) for iterations in (3, 10) for epoch in (5, 10, 15)),
        *(blind(f"tap-{iterations}", 15) for iterations in (3, 10)),
    ],
    "T21": [bench("411.60")],
    "T22": [
        likelihood("deep-2", 1),
        likelihood("deep-2", 1, "test"),
        likelihood("deep-2", 100),
        likelihood("deep-2", 100, "test"),
    ],
    "T23": [
        likelihood("deep-3", 32),
        likelihood("deep-3", 100),
        likelihood("deep-3", 32, "test"),
        likelihood("deep-3", 100, "test"),
        *(summed("deep-3", epoch) for epoch in (1, 10, 32, 100)),
        *(likelihood("deep-3-slow", epoch, part) for part in ("train", "test") for epoch in (1, 10, 32, 100)),
    ],
    "T24": [
        deep(0, "weights", 1),
        deep(20, "weights", 1),
        deep(0, "spread", 1),
        deep(20, "spread", 1),
        deep(0, "spread", 0),
        deep(20, "spread", 0),
    ],
    "T25": [rank("ais tap"), rank("ais pseudo"), rank("tap pseudo")],
}


if __name__ == "__main__":
    tell("\n".join(f"{claim}: {', '.join(figures)}" for claim, figures in FIGURES.items()))
