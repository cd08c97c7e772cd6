"""The files that a probe writes: its pictures and one JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from settling import AGAIN
from torch import Tensor

from probing import pictures
from probing.embedding import FEWEST, isomap
from probing.findings import Findings
from probing.receptive import receptive_fields
from probing.solutions import PROBING, Solutions
from restore.priors import BoltzmannMachine

JSON = "probe.json"
SOLUTIONS, ENERGIES, MAP, FIELDS, EPOCHS = (
    "solutions.png",
    "free-energy.png",
    "isomap.png",
    "receptive-fields.png",
    "epochs.png",
)


# How the solutions were found.
SOLVER = {
    "solver": "tap",
    "damping": PROBING.damping,
    "tol": PROBING.tol,
    "max_iter": PROBING.max_iter,
    "further_tries": AGAIN,
}


@dataclass(frozen=True)
class Report:
    """The files of a probe.

    Attributes:
        pictures: contents of PNG files by name.
        facts: what the JSON holds besides the findings.
        notes: sentences on pictures that were left out.
    """

    pictures: dict[str, bytes]
    facts: Mapping[str, Any]
    notes: tuple[str, ...]


def report(machine: BoltzmannMachine, solutions: Solutions, images: Tensor, shape: tuple[int, int]) -> Report:
    """Make the pictures of one prior.

    Args:
        machine: the prior.
        solutions: its solutions.
        images: the images they started from, (N, D).
        shape: (H, W) of the images.
    """
    made: dict[str, bytes] = {}
    facts: dict[str, Any] = {}
    notes = []
    if solutions.count:
        made[SOLUTIONS] = pictures.png(pictures.solution_grid(solutions, machine.layers[0].support, shape))
        made[ENERGIES] = pictures.png(pictures.histogram(solutions))
        places = isomap(images.double().cpu().numpy(), solutions.means[0].cpu().numpy().astype(np.float64))
        if places is None:
            notes.append(f"no {MAP}: fewer than {FEWEST} different images span no plane")
        else:
            made[MAP] = pictures.png(pictures.map_of(places, solutions))
    else:
        notes.append(f"no {SOLUTIONS}, {ENERGIES} and {MAP}: there is no solution to show")
    fields = receptive_fields(machine, images)
    if fields is None:
        notes.append(f"no {FIELDS}: the prior has no hidden units")
    else:
        made[FIELDS] = pictures.png(pictures.receptive_grid(fields, shape))
        facts["receptive_fields"] = {"spread": fields.spread.tolist(), "activity": fields.activity.tolist()}
    return Report(made, facts, tuple(notes))


def course(found: Sequence[Findings]) -> dict[str, bytes]:
    """The picture of the priors of a run, by its name; empty for a single prior."""
    return {} if found[-1].epoch is None else {EPOCHS: pictures.png(pictures.along(found))}


def as_json(found: Sequence[Findings], settings: Mapping[str, Any], facts: Mapping[str, Any]) -> str:
    """The findings about the last prior; for a run, those about all of its priors are under `epochs`."""
    last = asdict(found[-1])
    epochs = {"epochs": [asdict(entry) for entry in found]} if found[-1].epoch is not None else {}
    return json.dumps(last | {"settings": dict(settings)} | dict(facts) | epochs, allow_nan=False)
