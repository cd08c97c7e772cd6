"""Show what a prior has learnt: its receptive fields."""

from __future__ import annotations

from restore.inference.torch_engine import Engine
from restore.priors import FullyVisible
from restore.report.images import fitting, receptive_fields, strip, strongest
from restore.report.page import Section, Sentence, Strips
from restore.report.pictures import signed

# Rows of receptive fields.
FIELDS = 5


def field_section(engine: Engine) -> Section:
    """The receptive fields of hidden units: their weights to the pixels."""
    about, machine = engine.trained.description, engine.trained.machine
    title = "What the hidden units look at"
    if isinstance(machine, FullyVisible) or not about.hidden:
        return Section(title, [Sentence("This prior has no hidden units: pixels are coupled directly.")])
    chosen = strongest(receptive_fields(machine, about.image_shape), fitting(about.image_shape, FIELDS))
    count = f"all {about.hidden}" if len(chosen) == about.hidden else f"the strongest {len(chosen)} of {about.hidden}"
    said = f"The weights of {count} hidden units to the pixels, strongest first: red where a unit calls for white, "
    said += "blue for black; each on its own scale."
    return Section(title, [Sentence(said), Strips([strip(chosen, about.image_shape, colours=signed)])])
