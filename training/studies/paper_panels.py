"""What the papers' figures show, from the records of the studies alone, beside the numbers that the papers print."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import itemgetter
from typing import Any

import adaptive
import bslm
import crbm
import dcp_large
import dcp_small
import growth
from bslm_paper import STARTS
from claims import Record, record
from dcp_learners import ALGORITHMS, TITLES

from restore.zoo.structure import structure

# A curve is drawn with so many points at most.
POINTS = 80

# What the papers print: where growth stops and the range of errors (FW), and bounds and a local maximum (S-DCP).
STOPS = {"mnist": 460, "caltech": 550}
ERRORS = {"mnist": (2.0, 3.5), "caltech": (34.0, 42.0)}
PRINTED = {
    "shifting-bar": {"the paper's bound": -2.2, "the paper's local maximum": -3.15},
    "bars-and-stripes": {"the paper's bound": -2.6, "reachable with 4 units": dcp_small.REACHABLE["bars-and-stripes"]},
}


@dataclass(frozen=True)
class Line:
    """A curve: points, how it is drawn, and its colour, from 0; -1 is black."""

    label: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    style: str = "-"
    colour: int = 0


@dataclass(frozen=True)
class Panel:
    """Axes: words, curves, and what else.

    Attributes:
        across, upright: values at which a dotted line is drawn, by its label.
        logs: the axes that are logarithmic, such as "xy".
        names: words instead of numbers 0, 1, ... along x.
        limits: of y, if not all is shown.
    """

    title: str
    along: str
    up: str
    lines: tuple[Line, ...]
    across: Mapping[str, float] = field(default_factory=dict)
    upright: Mapping[str, float] = field(default_factory=dict)
    logs: str = ""
    names: tuple[str, ...] = ()
    limits: tuple[float, float] | None = None


def line(label: str, x: Iterable[float], y: Iterable[float], style: str = "-", colour: int = 0) -> Line:
    """A curve of few points, to six digits."""
    pairs = list(zip(x, y, strict=True))
    step = max(1, -(-len(pairs) // POINTS))
    kept = [*pairs[:-1:step], *pairs[-1:]]
    rounded = [[float(f"{value:.6g}") for value in values] for values in zip(*kept, strict=True)]
    return Line(label, tuple(rounded[0]), tuple(rounded[1]), style, colour)


# -------------------------------------------------------------------------------------------------- Frank-Wolfe RBMs


def _grown(value: Callable[[Record], float | None], data: str) -> tuple[Line, ...]:
    """A curve per training over hidden units, through the best of each size."""
    lines = []
    for colour, method in enumerate((growth.GROWN, growth.TUNED, growth.RANDOM)):
        points = [
            (one["hidden"], found)
            for one in record("growth")["points"]
            if (one["data"], one["method"]) == (data, method) and (found := value(one)) is not None
        ]
        if points:
            lines.append(line(method, *_axes(sorted(points)), "o-", colour))
    return tuple(lines)


def fw_likelihood() -> list[Panel]:
    """FW, Fig. 1: likelihood over hidden units."""
    return [
        Panel(
            title,
            "hidden units",
            "test log-likelihood, nats",
            _grown(lambda one: float(one["likelihood"]), data),
            upright={"growth stops in the paper": STOPS[data]},
        )
        for data, title in growth.DATA.items()
    ]


def fw_classification() -> list[Panel]:
    """FW, Fig. 2: classification by hidden units."""
    return [
        Panel(
            title,
            "hidden units",
            "classification error, %",
            _grown(lambda one: None if one["error"] is None else 100 * one["error"], data),
            {"the paper's best": ERRORS[data][0], "the paper's worst": ERRORS[data][1]},
        )
        for data, title in growth.DATA.items()
    ]


def fw_algorithm() -> list[Panel]:
    """Algorithm 1 to the letter beside growth as here, and fractional RBMs."""
    found = record("frank-wolfe-paper")["grown"]
    letter = [
        line(f"to the letter, λ {penalty:g}", *_columns(found, "units", "likelihood", penalty=penalty), "o-", colour)
        for colour, penalty in enumerate(sorted({one["penalty"] for one in found}, reverse=True), 1)
    ]
    here = [one for one in record("growth")["points"] if (one["data"], one["method"]) == ("mnist", growth.GROWN)]
    powers = record("fractional")["grown"]
    kinds = list(dict.fromkeys(one["free"] for one in powers))
    return [
        Panel(
            "Algorithm 1, MNIST",
            "units added",
            "test log-likelihood, nats",
            (line("growth as here", *_columns(here, "hidden", "likelihood"), "o-"), *letter),
            logs="x",
        ),
        Panel(
            "Fractional RBMs, 16 pixels",
            "units",
            "test log-likelihood, nats",
            tuple(
                line(f"free: {kind}", *_columns(powers, "units", "test", free=kind), "o-", colour)
                for colour, kind in enumerate(kinds)
            ),
        ),
    ]


def _columns(found: Iterable[Record], x: str, y: str, **wanted: Any) -> tuple[list[float], list[float]]:
    """Two entries of the records that have these values, in the order of the first."""
    pairs = sorted((one[x], one[y]) for one in found if all(one[key] == value for key, value in wanted.items()))
    return _axes(pairs)


def _axes(pairs: Sequence[tuple[float, float]]) -> tuple[list[float], list[float]]:
    """Points as two lists."""
    return [pair[0] for pair in pairs], [pair[1] for pair in pairs]


# ------------------------------------------------------------------------------------------------------------- S-DCP


def _small(data: str) -> list[Panel]:
    """S-DCP, Figs. 1 and 2: exact likelihood along training, CD and CG also at three times the rate."""
    panels = []
    for rate in dcp_small.RATES:
        lines = []
        for one in record("dcp")["small"]:
            times = one["rate"] / rate
            if one["data"] == data and any(abs(times - factor) < 1e-6 for factor in (1, dcp_small.INNER)):
                label = one["algorithm"] + ("" if times < 2 else f", {dcp_small.INNER} x the rate")
                colour = ALGORITHMS.index(one["algorithm"])
                lines.append(line(label, one["epochs"], one["mean"], "-" if times < 2 else ":", colour))
        top = dcp_small.BEST[data]
        title = f"{TITLES[data]}, rate {rate:g}"
        limits = (top - 2.2, top + 0.1)
        panels.append(Panel(title, "epoch", "log-likelihood, nats", tuple(lines), PRINTED[data], limits=limits))
    return panels


def sdcp_shifting_bar() -> list[Panel]:
    """S-DCP, Fig. 1, and CG at a third of the rates."""
    usual = _small("shifting-bar")
    slow = tuple(
        line(f"{one['algorithm']}, rate {one['rate']:g}", one["epochs"], one["mean"], "-", colour)
        for colour, one in enumerate(record("dcp-slow")["trials"])
    )
    title = f"{TITLES['shifting-bar']}, a third of the rates"
    return [*usual, replace(usual[0], title=title, lines=slow)]


def sdcp_bars_and_stripes() -> list[Panel]:
    """S-DCP, Fig. 2, and the same without chains."""
    usual, exact = _small("bars-and-stripes"), []
    for panel, rate in zip(usual, dcp_small.RATES, strict=True):
        lines = tuple(
            line(one["algorithm"], one["epochs"], one["mean"], "-", ALGORITHMS.index(one["algorithm"]))
            for one in record("dcp")["exact"]
            if one["rate"] == rate
        )
        exact.append(replace(panel, title=f"rate {rate:g}{dcp_small.EXACTLY}", lines=lines))
    return [*usual, *exact]


def _large(*names: str) -> list[Panel]:
    """Panels of large sets, by their figures in the paper."""
    curves = {(one := structure(dcp_large.Curve, each)).plan: one for each in record("dcp")["large"]}
    plans, panels = dcp_large.plans(), []
    for name in names:
        how, there = dcp_large.SHOWN[name], [curves[plan] for plan in plans[name] if plan in curves]
        lines = tuple(
            line(how.label(one.plan), one.epochs, one.likelihood, "o-", colour) for colour, one in enumerate(there)
        )
        if len(lines) > 1:  # one alone compares nothing
            panels.append(Panel(how.panel, "epoch", "test log-likelihood, nats", lines))
    return panels


def sdcp_large() -> list[Panel]:
    """S-DCP, Figs. 3 and 4."""
    return _large("3", "3-long", "4")


def sdcp_settings() -> list[Panel]:
    """S-DCP, Figs. 5 to 7."""
    return _large("5", "6a", "6b", "6b-long", "7a", "7a-long", "7b")


# -------------------------------------------------------------------------------------------------- conditional RBMs


def crbm_tables() -> list[Panel]:
    """CRBM-BP, tables 1 to 3: all 48 errors beside the paper's."""
    cells = {(one["method"], one["task"]): one["everywhere"][0] for one in record("crbm")["cells"]}
    names = tuple(crbm.METHODS.values())
    return [
        Panel(
            title,
            "method",
            "wrong pixels, %",
            (
                line("here", range(len(names)), [cells[method, task] for method in crbm.METHODS], "o"),
                line("paper", range(len(names)), [crbm.PAPER[name][place][0] for name in crbm.METHODS], "x", -1),
            ),
            names=names,
        )
        for place, (task, title) in enumerate(crbm.TASKS.items())
    ]


def crbm_patch() -> list[Panel]:
    """CRBM-BP, Fig. 3: errors over the size of the patch."""
    lines = []
    for colour, method in enumerate(crbm.CURVES):
        found = [
            (int(size[1]), one["everywhere"][0])
            for one in record("crbm")["cells"]
            if one["method"] == method and (size := crbm.PATCH.fullmatch(one["task"]))
        ]
        lines.append(line(crbm.METHODS[method], *_axes(sorted(found)), "o-", colour))
    place = list(crbm.TASKS).index("mnist-patch8")
    for colour, method in enumerate(crbm.CURVES):
        published = [crbm.PAPER[method][place][0], crbm.PAPER[method][place + 1][0]]
        lines.append(line(f"{crbm.METHODS[method]}, paper", (8, 12), published, "x", colour))
    return [Panel("MNIST", "side of the hidden patch", "wrong pixels, %", tuple(lines))]


def crbm_convergence() -> list[Panel]:
    """CRBM-BP, Fig. 4: inferences that converge along training."""
    by_recipe = tuple(
        line(task, range(1, len(shares) + 1), [100 * share for share in shares], "-", colour)
        for colour, (task, shares) in enumerate(record("crbm")["converged"].items())
    )
    courses = [one for one in record("crbm-inference")["courses"] if one["task"] == "patch:8"]
    plain = tuple(
        line(
            f"rate {one['rate']:g}",
            [(part + 1) / len(one["converged"]) for part in range(len(one["converged"]))],
            [100 * share for share in one["converged"]],
            "o-",
            colour,
        )
        for colour, one in enumerate(courses)
    )
    up = "converged, %"
    return [
        Panel("this project's recipes", "epoch", up, by_recipe),
        Panel("plain steps, MNIST, 8x8 patch", "share of the first epoch", up, plain),
    ]


# -------------------------------------------------------------------------------------------------------------- BSLM


def bslm_sweeps() -> list[Panel]:
    """BSLM, Fig. 1: how far five sequences of sweeps are from the highest end."""
    sequences, panels = record("bslm")["sequences"], []
    for units in bslm.REPORTED:
        own = [one for one in sequences if one["units"] == units]
        top = max(one["values"][-1] for one in own)
        lines = []
        for colour, one in enumerate(own):
            # Sweep 0 has no place on a logarithmic axis.
            pairs = [(at, top - value) for at, value in zip(one["sweeps"], one["values"], strict=True) if at]
            pairs = [(at, below) for at, below in pairs if below > 1e-5]
            lines.append(line(f"start {colour + 1}", *_axes(pairs), "-", colour))
        panels.append(Panel(f"{units} units", "sweep", "nats below the highest end", tuple(lines), logs="xy"))
    return panels


def bslm_errors() -> list[Panel]:
    """BSLM: mean squared errors, beside the paper's and what no unbiased estimate is below."""
    found = [one for one in record("bslm")["errors"] if one["variance"] == 0.5]
    units = list(bslm.REPORTED)
    paper = list(bslm.REPORTED.values())
    terms = [size * (size + 1) / 2 * STARTS for size in units]
    lines = (
        line("here", *_columns(found, "units", "error"), "o-"),
        line("no variance below", *_columns(found, "units", "bound"), "s:", 1),
        line("paper", units, paper, "x-", -1),
        line("paper x q R", units, [value * count for value, count in zip(paper, terms, strict=True)], "x:", -1),
    )
    return [Panel("parameters N(0, .5)", "units", "mean squared error", lines, logs="y")]


def bslm_ascent() -> list[Panel]:
    """BSLM, eqs. 4.1 and 4.2: gradient ascent in sweeps with steps of several lengths."""
    found = record("bslm-paper")["ascents"]
    lines, rises = [], []
    for colour, units in enumerate(sorted({one["units"] for one in found})):
        own = [one for one in found if (one["units"], one["start"]) == (units, 0)]
        # With μ = 1 there was no limit of 2,000 sweeps.
        top = max(one["value"] for one in found if one["units"] == units)
        ends = [one | {"below": max(top - one["value"], 1e-4)} for one in own if one["factor"] != 1]
        lines.append(line(f"{units} units", *_columns(ends, "factor", "below"), "o-", colour))
        rises.append(line(f"{units} units", *_columns(own, "factor", "least"), "o-", colour))
    return [
        Panel("end after at most 2,000 sweeps", "μ", "nats below the best end", tuple(lines), logs="y"),
        Panel("smallest rise of a sweep", "μ", "nats", tuple(rises), logs="y"),
    ]


# ------------------------------------------------------------------------------------------------------ TAP machines


def _course(run: str, starts: int = 500) -> list[Record]:
    """The moments of a run, by epoch."""
    found = [
        one
        for one in record("dynamics")["moments"]
        if one["run"] == f"dynamics-{run}" and one["probe"]["starts"] == starts
    ]
    return sorted(found, key=lambda one: int(one["probe"]["epoch"]))


RUNS = {"mnist-25": "25", "mnist-50": "50", "mnist-100": "100", "mnist-500": "500"}
OTHERS = {"mnist-real-100": "grey MNIST, 100", "cbcl": "CBCL, 256"}


def tap_likelihood() -> list[Panel]:
    """TAP machine, Figs. 3 and 11: likelihood per unit along training."""

    def of(run: str, label: str, colour: int, part: str = "train") -> Line:
        pairs = [(one["probe"]["epoch"], one[part]["mean"]) for one in _course(run) if one[part]]
        return line(label, *_axes(pairs), "o-", colour)

    up = "TAP log-likelihood per unit, nats"
    binary = tuple(of(run, f"{hidden} hidden units", colour) for colour, (run, hidden) in enumerate(RUNS.items()))
    deep = tuple(
        of(f"deep-{layers}", f"{layers} layers, {part}", 2 * layers + (part == "test") - 4, part)
        for layers in (2, 3)
        for part in ("train", "test")
    )
    grey = tuple(of(run, f"{label} hidden units", colour) for colour, (run, label) in enumerate(OTHERS.items()))
    return [
        Panel("Fig. 3, binary MNIST", "epoch", up, binary, logs="x"),
        Panel("Fig. 3, grey pixels", "epoch", up, grey, logs="x"),
        Panel("Fig. 11, deep machines", "epoch", up, deep, logs="x"),
    ]


def tap_solutions() -> list[Panel]:
    """TAP machine, Fig. 5: numbers of solutions, and free energies."""
    lines, energies = [], []
    for colour, (run, label) in enumerate((RUNS | OTHERS).items()):
        found = _course(run)
        epochs = [one["probe"]["epoch"] for one in found]
        shares = [100 * one["probe"]["solutions"] / one["probe"]["starts"] for one in found]
        lines.append(line(f"{label} hidden units", epochs, shares, "o-", colour))
        if run in RUNS:
            means = [one["probe"]["free_energy"] for one in found]
            energies.append(line(f"{label} hidden units", epochs, means, "o-", colour))
    (many,) = (one for one in _course("mnist-100", 10_000))
    share = 100 * many["probe"]["solutions"] / many["probe"]["starts"]
    lines.append(line("100, from 10,000 starts", [many["probe"]["epoch"]], [share], "*", 2))
    counts: dict[int, int] = {}
    for energy in many["probe"]["free_energies"]:
        counts[round(energy)] = counts.get(round(energy), 0) + 1
    bands = line("100 hidden units, epoch 100", sorted(counts), [counts[at] for at in sorted(counts)], "-", 2)
    return [
        Panel(
            "solutions from 500 starts",
            "epoch",
            "distinct solutions, % of the starts",
            tuple(lines),
            {"the paper's bound for 100": 10.0},
            logs="x",
        ),
        Panel("mean over solutions, binary MNIST", "epoch", "free energy, nats", tuple(energies), logs="x"),
        Panel("the paper has two bands", "free energy, nats", "solutions within 1 nat", (bands,)),
    ]


def tap_denoising() -> list[Panel]:
    """TAP machine, Fig. 8: restoring flipped digits from one start."""
    curves = {one["name"]: [score["mean"] for score in one["mcc"]] for one in record("denoising")["curves"]}
    chances = [step / 20 for step in range(11)]
    base = (line("OPE", chances, curves["OPE"], "--", -1), line("1-NN", chances, curves["1-NN"], "-", -1))
    panels = []
    for title, name in (("machines of table 1", "dynamics-mnist-{}"), ("this project's training", "tap-mnist-{}")):
        own = tuple(
            line(f"{hidden} hidden units", chances, curves[label], "o-", colour)
            for colour, hidden in enumerate(RUNS.values())
            if (label := name.format(hidden) + ", one start") in curves
        )
        crossing = {"1-NN above OPE in the paper": 0.2}
        panels.append(Panel(title, "flip probability", "Matthews correlation", base + own, upright=crossing))
    return panels


# How learning by either fixed point is drawn.
STYLES = {"tap": "o-", "adaptive_tap": "s--"}


def tap_adaptive() -> list[Panel]:
    """TAP machine, Fig. 10: learning by TAP and by adaptive TAP, and by how much each is ahead of the first.

    The last panel has those that start each step from fields without an image, beside the first.
    """
    curves, panels = record("adaptive")["curves"], []
    for rate in sorted({one["rate"] for one in curves}):
        own = [one for one in curves if one["rate"] == rate and not one["start"]]
        own.sort(key=lambda one: (one["method"] != "tap", one["iterations"]))
        first = {point["epoch"]: point["pseudo"] for point in own[0]["points"]}
        whole, ahead = [], []
        for colour, one in enumerate(own):
            label, style = f"{adaptive.METHODS[one['method']]}, {one['iterations']}", STYLES[one["method"]]
            epochs, values = _columns(one["points"], "epoch", "pseudo")
            lead = [value - first[epoch] for epoch, value in zip(epochs, values, strict=True)]
            whole.append(line(label, epochs, values, style, colour))
            ahead.append(line(label, epochs, lead, style, colour))
        panels.append(Panel(f"rate {rate:g}", "epoch", "pseudo-likelihood, nats", tuple(whole)))
        panels.append(Panel(f"rate {rate:g}, ahead of TAP, 3", "epoch", "nats", tuple(ahead)))
    elsewhere = sorted(filter(itemgetter("start"), curves), key=itemgetter("start", "method", "iterations"))
    others = [
        line(
            f"{adaptive.METHODS[one['method']]}, {one['iterations']}, from {one['start']}",
            *_columns(one["points"], "epoch", "pseudo"),
            STYLES[one["method"]],
            colour,
        )
        for colour, one in enumerate(elsewhere, 1)
    ]
    title = f"rate {elsewhere[0]['rate']:g}, other starts"
    return [*panels, replace(panels[-2], title=title, lines=(panels[-2].lines[0], *others), limits=(-260.0, -150.0))]


def tap_orders() -> list[Panel]:
    """TAP machine, Fig. 12: three likelihoods along training."""
    along = sorted((int(epoch), one["likelihoods"]) for epoch, one in record("likelihoods")["along"].items())
    kinds = {"ais": "AIS", "tap": "TAP", "pseudo": "pseudo-likelihood"}
    lines = tuple(
        line(label, [epoch for epoch, _ in along], [one[kind]["mean"] for _, one in along], "o-", colour)
        for colour, (kind, label) in enumerate(kinds.items())
    )
    return [Panel("MNIST, 500 hidden units", "epoch", "test log-likelihood, nats", lines, logs="x")]


FIGURES: dict[str, Callable[[], list[Panel]]] = {
    "fw-fig1": fw_likelihood,
    "fw-fig2": fw_classification,
    "fw-algorithm1": fw_algorithm,
    "sdcp-fig1": sdcp_shifting_bar,
    "sdcp-fig2": sdcp_bars_and_stripes,
    "sdcp-fig3-4": sdcp_large,
    "sdcp-fig5-7": sdcp_settings,
    "crbm-tables": crbm_tables,
    "crbm-fig3": crbm_patch,
    "crbm-fig4": crbm_convergence,
    "bslm-fig1": bslm_sweeps,
    "bslm-errors": bslm_errors,
    "bslm-ascent": bslm_ascent,
    "tap-fig3-11": tap_likelihood,
    "tap-fig5": tap_solutions,
    "tap-fig8": tap_denoising,
    "tap-fig10": tap_adaptive,
    "tap-fig12": tap_orders,
}
